// See divide_backward.h.
#include "passes/gradient/divide_backward.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "graph/copier.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "passes/analysis/liveness.h"
#include "passes/structure/captures.h"

namespace janus::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Trait;
using graph::Value;

bool is_view(const Node& node) {
  return node.op->is(Trait::view) && node.outputs.size() == 1 && node.blocks.empty() &&
         node.output()->type.is_tensor() && node.inputs.front()->type.is_tensor() &&
         node.output()->type.dtype == node.inputs.front()->type.dtype;
}

/// Whether its results may be views of its operands.
bool may_be_view(const Node& node) { return node.op->is(Trait::view) || node.op == &op::opaque; }

/// Whether each part that uses it makes it for itself.
bool is_made_again(const Node& node) {
  if (!node.op->is(Trait::pure) || node.op->is(Trait::random) || !node.blocks.empty()) return false;
  return node.inputs.empty() || is_view(node);
}

/// Whether its place among other nodes matters beyond what it takes and gives.
bool has_place(const Node& node) {
  constexpr Trait lasting =
      Trait::random | Trait::reads_heap | Trait::writes_heap | Trait::writes_state;
  return graph::has(node.op->traits, lasting) || node.op == &op::state || graph::is_function(node);
}

class Division {
 public:
  Division(const Graph& graph, const std::vector<Bucket>& buckets,
           const std::vector<std::optional<size_t>>& leaf_of_input)
      : graph_(graph), buckets_(buckets), liveness_(graph) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      input_number_.emplace(graph.inputs()[i], i);
      if (leaf_of_input[i]) leaf_.emplace(graph.inputs()[i], *leaf_of_input[i]);
    }
    next_number_ = graph.inputs().size();
  }

  std::vector<BackwardPart> run() {
    if (!can_be_divided()) return {};
    for (size_t part = 0; part < buckets_.size(); ++part) {
      for (const size_t target : buckets_[part]) assign(graph_.results()[target], part);
      assign_readers(part);
    }
    join_empty();
    if (buckets_.size() < 2) return {};
    for (size_t part = 0; part < buckets_.size(); ++part) find_content(part);
    if (!can_be_handed_on_) return {};
    std::vector<BackwardPart> parts;
    for (size_t part = 0; part < buckets_.size(); ++part) parts.push_back(made(part));
    note_what_lasts(parts);
    return parts;
  }

 private:
  struct Content {
    std::unordered_set<const Node*> nodes;
    std::vector<Value*> taken;
    std::unordered_set<const Value*> is_taken;
    std::vector<Value*> given;  ///< for later parts
  };

  bool can_be_divided() const {
    bool can = graph::symbols_given_in(graph_.body()).empty();
    for (const Node* node : graph_.body().nodes)
      can &= !node->outputs.empty() && !is_other_view_of_leaf(*node);
    graph::for_each_node(graph_.body(), [&](const Node& node) { can &= !has_place(node); });
    return can;
  }

  bool is_other_view_of_leaf(const Node& node) const {
    return may_be_view(node) && !is_view(node) &&
           std::ranges::any_of(node.inputs,
                               [&](const Value* input) { return leaf_.contains(viewed(input)); });
  }

  /// What the value needs and no earlier part has belongs to this part.
  void assign(const Value* value, size_t part) {
    std::vector<const Value*> open = {value};
    std::unordered_set<const Node*> seen;
    while (!open.empty()) {
      const Node* node = open.back()->definition;
      open.pop_back();
      if (node == nullptr || part_of_.contains(node) || !seen.insert(node).second) continue;
      if (!is_made_again(*node)) part_of_.emplace(node, part);
      for (const Value* operand : operands(*node)) open.push_back(operand);
    }
  }

  /// The same for all that reads the memory of a leaf whose gradient this part gives.
  void assign_readers(size_t part) {
    const auto is_given = [&](const Value* value) {
      const auto leaf = leaf_.find(viewed(value));
      return leaf != leaf_.end() &&
             std::ranges::find(buckets_[part], leaf->second) != buckets_[part].end();
    };
    for (const Node* node : graph_.body().nodes) {
      if (!liveness_.is_live(*node) || is_made_again(*node)) continue;
      if (!std::ranges::any_of(operands(*node), is_given)) continue;
      for (const Value* output : node->outputs) assign(output, part);
    }
  }

  void join_empty() {
    std::vector<Bucket> joined;
    std::vector<size_t> now;  ///< by former part
    for (size_t part = 0; part < buckets_.size(); ++part) {
      const bool is_empty =
          std::ranges::none_of(part_of_, [&](const auto& entry) { return entry.second == part; });
      if (!is_empty || joined.empty()) joined.emplace_back();
      joined.back().insert(joined.back().end(), buckets_[part].begin(), buckets_[part].end());
      now.push_back(joined.size() - 1);
    }
    for (auto& [node, part] : part_of_) part = now[part];
    buckets_ = std::move(joined);
  }

  void find_content(size_t part) {
    contents_.emplace_back();
    for (const Node* node : graph_.body().nodes) {
      const auto own = part_of_.find(node);
      if (own == part_of_.end() || own->second != part) continue;
      contents_[part].nodes.insert(node);
      for (Value* operand : operands(*node)) need(operand, part);
    }
    for (const size_t target : buckets_[part]) need(graph_.results()[target], part);
    need_symbols(part);
  }

  void need(Value* value, size_t part) {
    const Node* node = value->definition;
    if (node == nullptr) {
      if (input_number_.contains(value)) take(value, part);
      return;
    }
    if (const auto own = part_of_.find(node); own != part_of_.end()) {
      if (own->second != part) hand_on(value, own->second, part);
    } else if (contents_[part].nodes.insert(node).second) {
      for (Value* operand : node->inputs) need(operand, part);
    }
  }

  void take(Value* value, size_t part) {
    if (contents_[part].is_taken.insert(value).second) contents_[part].taken.push_back(value);
  }

  void hand_on(Value* value, size_t from, size_t to) {
    can_be_handed_on_ &= value->type.is_tensor() || value->type.is_number();
    take(value, to);
    if (handed_number_.emplace(value, next_number_).second) {
      ++next_number_;
      contents_[from].given.push_back(value);
    }
  }

  // --- dimensions that a part uses and cannot read off what it takes otherwise

  void need_symbols(size_t part) {
    std::set<std::string> used;
    for (const Node* node : contents_[part].nodes) note_symbols(*node, used);
    for (const Value* value : contents_[part].taken)
      for (const graph::Dim& dim : value->type.shape) used.merge(symbols_of(dim));
    for (const std::string& symbol : used) {
      const auto& taken = contents_[part].taken;
      if (std::ranges::none_of(taken, [&](const Value* each) { return binds(*each, symbol); }))
        take_symbol(symbol, part);
    }
  }

  void take_symbol(const std::string& symbol, size_t part) {
    const auto inputs = graph_.inputs();
    const auto number =
        std::ranges::find_if(inputs, [&](const Value* each) { return is_number(*each, symbol); });
    if (number != inputs.end()) return take(*number, part);
    // The incoming gradients, which are there anyway, come last.
    const auto last = std::find_if(inputs.rbegin(), inputs.rend(),
                                   [&](const Value* each) { return binds(*each, symbol); });
    if (last != inputs.rend()) take(*last, part);
  }

  static bool is_number(const Value& value, const std::string& symbol) {
    return value.type == graph::Type::i64() && value.name == symbol;
  }

  static bool binds(const Value& value, const std::string& symbol) {
    return is_number(value, symbol) ||
           std::ranges::find(value.type.shape, symbol, graph::symbol_shown_by) !=
               value.type.shape.end();
  }

  static std::set<std::string> symbols_of(const graph::Dim& dim) {
    const auto symbols = dim.symbols();
    return {symbols.begin(), symbols.end()};
  }

  static void note_symbols(const Node& node, std::set<std::string>& used) {
    const auto note = [&](const graph::Shape& shape) {
      for (const graph::Dim& dim : shape) used.merge(symbols_of(dim));
    };
    for (const Value* output : node.outputs) note(output->type.shape);
    for (const auto& [name, attribute] : node.attributes) {
      if (const auto* dim = std::get_if<graph::Dim>(&attribute)) note({*dim});
      if (const auto* shape = std::get_if<graph::Shape>(&attribute)) note(*shape);
    }
    for (const auto& block : node.blocks)
      for (const Node* nested : block->nodes) note_symbols(*nested, used);
  }

  // --- the graphs

  size_t number_of(const Value* value) const {
    const auto input = input_number_.find(value);
    return input != input_number_.end() ? input->second : handed_number_.at(value);
  }

  BackwardPart made(size_t part) const {
    const Content& content = contents_[part];
    BackwardPart result{
        Graph(graph_.name() + "_" + std::to_string(part)), {}, {}, buckets_[part], {}};
    Graph& graph = result.graph;
    graph::Copier copies(graph::Copier::Unknown::error);
    for (const Value* value : content.taken) {
      copies.set(value, graph.new_parameter(graph.body(), value->type, value->name));
      result.takes.push_back(number_of(value));
    }
    graph::Builder builder(graph);
    for (const Node* node : graph_.body().nodes)
      if (content.nodes.contains(node)) copies.copy(*node, builder);
    for (const size_t target : result.targets)
      graph.body().results.push_back(copies.copy_of(graph_.results()[target]));
    for (const Value* value : content.given) {
      graph.body().results.push_back(copies.copy_of(value));
      result.gives.push_back(number_of(value));
    }
    return result;
  }

  static void note_what_lasts(std::vector<BackwardPart>& parts) {
    std::unordered_set<size_t> later;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      for (const size_t value : part->takes) part->lasts.push_back(later.contains(value));
      later.insert(part->takes.begin(), part->takes.end());
    }
  }

  const Graph& graph_;
  std::vector<Bucket> buckets_;
  std::unordered_map<const Value*, size_t> input_number_, handed_number_;
  size_t next_number_ = 0;
  std::unordered_map<const Value*, size_t> leaf_;  ///< whose memory an input is
  Liveness liveness_;
  std::unordered_map<const Node*, size_t> part_of_;
  std::vector<Content> contents_;
  bool can_be_handed_on_ = true;
};

/// Of each part but the first, so that there are not too many.
int64_t least_bytes_of_others(int64_t all, const BucketLimits& limits) {
  const auto others = static_cast<int64_t>(std::max<size_t>(limits.most, 2) - 1);
  return (all - limits.first + others - 1) / others;
}

}  // namespace

std::vector<Bucket> buckets_of(const std::vector<size_t>& order, const std::vector<int64_t>& bytes,
                               const BucketLimits& limits) {
  const int64_t all = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  const int64_t rest = std::max(limits.rest, least_bytes_of_others(all, limits));
  std::vector<Bucket> buckets(1);
  int64_t filled = 0, left = all;
  for (const size_t target : order) {
    const bool is_full = filled >= (buckets.size() == 1 ? limits.first : rest);
    if (is_full && left >= limits.first && buckets.size() < limits.most) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(target);
    filled += bytes[target];
    left -= bytes[target];
  }
  return buckets;
}

std::vector<Bucket> buckets_of(const std::vector<size_t>& order, const std::vector<int64_t>& bytes,
                               const BucketLimits& limits, const BucketNumbers& numbers) {
  const int64_t all = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  const int64_t rest = std::max(limits.first, least_bytes_of_others(all, limits));
  std::map<size_t, size_t> missing;  // of the buckets that are not sent yet
  for (const auto& number : numbers)
    if (number) ++missing[*number];
  std::vector<Bucket> buckets(1);
  int64_t filled = 0;
  bool is_sent = false;
  for (const size_t target : order) {
    if (is_sent && filled >= (buckets.size() == 1 ? limits.first : rest)) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(target);
    filled += bytes[target];
    is_sent = false;
    if (numbers[target]) --missing[*numbers[target]];
    while (!missing.empty() && missing.begin()->second == 0) {
      missing.erase(missing.begin());
      is_sent = true;
    }
  }
  return buckets;
}

std::vector<BackwardPart> divide_backward(const Graph& backward, const std::vector<Bucket>& buckets,
                                          const std::vector<std::optional<size_t>>& leaf_of_input) {
  return Division(backward, buckets, leaf_of_input).run();
}

bool may_be_other_view(const Value* value, std::span<Value* const> values) {
  std::vector<const Value*> open = {value};
  std::unordered_set<const Value*> seen;
  while (!open.empty()) {
    const Value* const each = open.back();
    open.pop_back();
    if (!seen.insert(each).second) continue;
    if (std::ranges::find(values, each) != values.end() && viewed(value) != each) return true;
    if (each->definition == nullptr || !may_be_view(*each->definition)) continue;
    for (const Value* input : each->definition->inputs) open.push_back(input);
  }
  return false;
}

const Value* viewed(const Value* value) {
  while (value->definition != nullptr && is_view(*value->definition))
    value = value->definition->inputs.front();
  return value;
}

}  // namespace janus::passes
