#include "trace/sizes.h"

#include <algorithm>
#include <map>

#include "trace/size_expression.h"

namespace janus::trace {
namespace {

/// A value with the column of each of its sizes.
struct Row {
  Pattern* pattern = nullptr;
  std::vector<SizeColumn> sizes;
};

class SizeAnalysis {
 public:
  SizeAnalysis(Nodes& nodes, std::span<const Trace> traces,
               std::span<const std::vector<NodeId>> runs)
      : nodes_(nodes), traces_(traces) {
    add_rows();
    for (size_t trace = 0; trace < traces.size(); ++trace) observe(trace, runs[trace]);
  }

  std::set<Key> run() {
    make_symbols();
    for (size_t i = 0; i < given_; ++i) classify(rows_[i], nullptr);
    for (Node& node : nodes_.nodes) {
      classify(rows_[row_of_.at(&node.sizes)], &node);
      for (Pattern& result : node.results) classify(rows_[row_of_.at(&result)], &node);
    }
    nodes_.symbol_count = static_cast<int32_t>(symbols_.size());
    std::set<Key> divided;
    for (const Node& node : nodes_.nodes)
      for (const Input& input : node.inputs)
        if (!unites(input)) divided.insert(node.key);
    return divided;
  }

 private:
  /// What is given from outside comes first: it determines symbols.
  void add_rows() {
    for (auto& [id, pattern] : nodes_.cells) add(pattern);
    for (const Slot& slot : nodes_.slots) add(nodes_.nodes[slot.node].inputs[slot.input].early);
    given_ = rows_.size();
    for (Node& node : nodes_.nodes) {
      add(node.sizes);
      for (Pattern& result : node.results) add(result);
    }
  }

  void add(Pattern& pattern) {
    row_of_[&pattern] = rows_.size();
    rows_.push_back({.pattern = &pattern,
                     .sizes = std::vector<SizeColumn>(pattern.type.shape.size(),
                                                      SizeColumn(traces_.size(), kAbsent))});
  }

  void observe(size_t trace, const std::vector<NodeId>& run) {
    for (size_t i = 0; i < run.size(); ++i) {
      const Event& event = traces_[trace].events[i];
      Node& node = nodes_.nodes[run[i]];
      note(node.sizes, trace, sizes_as_type(event.sizes));
      for (size_t r = 0; r < event.results.size(); ++r)
        note(node.results[r], trace, event.results[r]);
      for (size_t k = 0; k < event.operands.size(); ++k) {
        const Operand& operand = event.operands[k];
        if (operand.kind == Operand::Kind::cell)
          note(nodes_.cells.at(operand.cell), trace, operand.type);
        // The type of a feed is that of each use of it.
        if (operand.kind == Operand::Kind::feed && node.inputs[k].has(Source::Kind::feed))
          note(node.inputs[k].early, trace, operand.type);
      }
    }
  }

  void note(Pattern& pattern, size_t trace, const graph::Type& type) {
    const auto found = row_of_.find(&pattern);
    if (found == row_of_.end()) return;
    std::vector<SizeColumn>& sizes = rows_[found->second].sizes;
    for (size_t dim = 0; dim < sizes.size(); ++dim) sizes[dim][trace] = type.shape[dim].value();
  }

  /// What varies and comes from outside is a symbol, unless it follows from smaller ones.
  void make_symbols() {
    std::multimap<int64_t, const SizeColumn*> varying;
    for (size_t i = 0; i < given_; ++i)
      for (const SizeColumn& sizes : rows_[i].sizes)
        if (!is_constant(sizes)) varying.emplace(*std::ranges::max_element(sizes), &sizes);
    for (const auto& [largest, sizes] : varying) make_symbol(*sizes);
  }

  /// Where one was not seen, another of the same symbol may have been.
  void make_symbol(const SizeColumn& sizes) {
    for (SizeColumn& symbol : symbols_)
      if (agrees(sizes, symbol, /*with_gaps=*/true)) return fill(symbol, sizes);
    if (!expression_for(sizes, symbols_)) symbols_.push_back(sizes);
  }

  void classify(Row& row, const Node* node) {
    for (size_t dim = 0; dim < row.sizes.size(); ++dim)
      row.pattern->symbols[dim] = kind_of(row, dim, node);
  }

  /// What a size is. `node`: whose attribute or result it is.
  int32_t kind_of(Row& row, size_t dim, const Node* node) {
    const SizeColumn& sizes = row.sizes[dim];
    if (is_constant(sizes)) return node == nullptr ? Pattern::kConstant : inherited(sizes, *node);
    for (size_t i = 0; i < symbols_.size(); ++i)
      if (agrees(sizes, symbols_[i], /*with_gaps=*/false)) return static_cast<int32_t>(i);
    if (auto expression = expression_for(sizes, symbols_)) {
      row.pattern->expressions.insert_or_assign(dim, *std::move(expression));
      return Pattern::kFollows;
    }
    if (node == nullptr || row.pattern != &node->sizes) return Pattern::kDerived;
    symbols_.push_back(sizes);
    return static_cast<int32_t>(symbols_.size()) - 1;
  }

  /// A size that did not vary is the symbol that an operand has, if it was always that one's.
  int32_t inherited(const SizeColumn& sizes, const Node& node) const {
    for (const Input& input : node.inputs)
      for (const Source& source : input.sources) {
        if (source.kind == Source::Kind::number) continue;
        const Pattern& pattern =
            source.kind == Source::Kind::feed ? input.early : nodes_.pattern(source);
        for (const int32_t symbol : pattern.symbols)
          if (symbol >= 0 && agrees(sizes, symbols_[static_cast<size_t>(symbol)], false))
            return symbol;
      }
    return Pattern::kConstant;
  }

  static bool is_constant(const SizeColumn& sizes) {
    int64_t value = kAbsent;
    for (const int64_t size : sizes) {
      if (size != kAbsent && value != kAbsent && size != value) return false;
      if (size != kAbsent) value = size;
    }
    return true;
  }

  static bool agrees(const SizeColumn& sizes, const SizeColumn& symbol, bool with_gaps) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == kAbsent || (with_gaps && symbol[i] == kAbsent)) continue;
      if (sizes[i] != symbol[i]) return false;
    }
    return true;
  }

  static void fill(SizeColumn& symbol, const SizeColumn& sizes) {
    for (size_t i = 0; i < sizes.size(); ++i)
      if (symbol[i] == kAbsent) symbol[i] = sizes[i];
  }

  const Row* row(const Input& input, const Source& source) const {
    const Pattern& pattern =
        source.kind == Source::Kind::feed ? input.early : nodes_.pattern(source);
    const auto found = row_of_.find(&pattern);
    return found == row_of_.end() ? nullptr : &rows_[found->second];
  }

  bool unites(const Input& input) const {
    if (input.sources.size() < 2) return true;
    const Row* first = row(input, input.sources[0]);
    return std::all_of(input.sources.begin(), input.sources.end(), [&](const Source& source) {
      const Row* other = row(input, source);
      for (size_t dim = 0; dim < first->sizes.size(); ++dim)
        if (!unites(*first, *other, dim)) return false;
      return true;
    });
  }

  bool unites(const Row& a, const Row& b, size_t dim) const {
    const int32_t left = a.pattern->symbols[dim], right = b.pattern->symbols[dim];
    if (left == Pattern::kDerived || right == Pattern::kDerived) return true;
    if (left == Pattern::kFollows && right == Pattern::kFollows &&
        a.pattern->expressions.at(dim) == b.pattern->expressions.at(dim))
      return true;
    if (left == Pattern::kConstant && right == Pattern::kConstant &&
        a.pattern->type.shape[dim] == b.pattern->type.shape[dim])
      return true;
    return left >= 0 && left == right;
  }

  Nodes& nodes_;
  std::span<const Trace> traces_;
  std::vector<Row> rows_;
  std::map<const Pattern*, size_t> row_of_;
  size_t given_ = 0;  // rows of what comes from outside
  std::vector<SizeColumn> symbols_;
};

}  // namespace

std::set<Key> set_sizes(Nodes& nodes, std::span<const Trace> traces,
                        std::span<const std::vector<NodeId>> runs) {
  return SizeAnalysis(nodes, traces, runs).run();
}

}  // namespace janus::trace
