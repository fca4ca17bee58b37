// Text to graph. The grammar is in docs/ir.md. Shape rules run as nodes are read, so that a wrong
// result type is reported at its node.
#include <map>

#include "base/cursor.h"
#include "base/policy.h"
#include "graph/builder.h"
#include "graph/text.h"
#include "graph/text_elements.h"

namespace janus::graph {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const OpTable& ops) : cursor_(text), ops_(ops), graph_("") {}

  Graph parse() {
    if (!cursor_.take_word("graph")) fail_parse(cursor_, "'graph'");
    expect(cursor_, "@");
    graph_ = Graph(parse_word_or_string(cursor_));
    expect(cursor_, "(");
    parse_parameters(graph_.body());
    expect(cursor_, "{");
    parse_nodes(graph_.body(), "return", 0);
    if (!cursor_.at_end()) fail_parse(cursor_, "the end of the graph");
    return std::move(graph_);
  }

 private:
  using Scope = std::map<std::string, Value*, std::less<>>;

  std::string parse_name() {
    expect(cursor_, "%");
    std::string name(cursor_.word(true));
    if (name.empty()) fail_parse(cursor_, "a value's name");
    return name;
  }

  Value* parse_use() {
    const size_t start = cursor_.offset();
    const std::string name = parse_name();
    const auto found = values_.find(name);
    if (found == values_.end())
      throw ParseError(cat(cursor_.place(start), ": no value %", name, " is visible here"));
    return found->second;
  }

  std::vector<Value*> parse_uses() {
    std::vector<Value*> values;
    do values.push_back(parse_use());
    while (cursor_.take(","));
    return values;
  }

  /// Whether the next token begins on the line on which the last one ended.
  bool continues_line() {
    const size_t before = cursor_.raw_offset();
    const auto between = cursor_.text().substr(before, cursor_.offset() - before);
    return between.find('\n') == std::string_view::npos;
  }

  void define(const std::string& name, Value* value, size_t place) {
    if (!values_.emplace(name, value).second)
      throw ParseError(cat(cursor_.place(place), ": value %", name, " is defined already"));
    const bool number = name.find_first_not_of("0123456789") == std::string::npos;
    if (!number) value->name = name;
    defined_.push_back(name);
  }

  /// After the opening parenthesis.
  void parse_parameters(Block& block) {
    while (!cursor_.take(")")) {
      if (!block.parameters.empty()) expect(cursor_, ",");
      const size_t place = cursor_.offset();
      const std::string name = parse_name();
      expect(cursor_, ":");
      define(name, graph_.new_parameter(block, parse_type(cursor_)), place);
    }
  }

  /// Nodes up to and with `last` (return or yield) and the closing brace.
  void parse_nodes(Block& block, std::string_view last, int depth) {
    while (!cursor_.take_word(last)) parse_node(block, depth);
    if (continues_line() && cursor_.peek() == '%') block.results = parse_uses();
    expect(cursor_, "}");
  }

  struct Result {
    std::string name;
    size_t place;
  };

  std::vector<Result> parse_results() {
    std::vector<Result> results;
    if (cursor_.peek() != '%') return results;
    do {
      const size_t place = cursor_.offset();
      results.push_back({parse_name(), place});
    } while (cursor_.take(","));
    expect(cursor_, "=");
    return results;
  }

  const OpDef& parse_op() {
    const size_t start = cursor_.offset();
    const std::string_view name = cursor_.word();
    const OpDef* op = name.empty() ? nullptr : ops_.find(name);
    if (op == nullptr) {
      cursor_.move_to(start);
      fail_parse(cursor_, "an operator's name");
    }
    return *op;
  }

  void parse_node(Block& block, int depth) {
    const size_t start = cursor_.offset();
    const std::vector<Result> results = parse_results();
    const OpDef& op = parse_op();
    Node* node = graph_.new_node(op);
    if (continues_line() && cursor_.peek() == '%') node->inputs = parse_uses();
    if (at_attributes()) parse_attributes(node->attributes);
    std::vector<Type> types;
    if (cursor_.take(":")) {
      do types.push_back(parse_type(cursor_));
      while (cursor_.take(","));
    }
    if (types.size() != results.size())
      throw ParseError(cat(cursor_.place(start), ": ", op.name, " has ", results.size(),
                           " results but ", types.size(), " result types"));
    parse_blocks(*node, depth);
    fill_defaults(op, node->attributes);
    check_types(*node, types, start);
    for (size_t i = 0; i < results.size(); ++i) {
      Value* value = graph_.new_value(std::move(types[i]));
      value->definition = node;
      value->index = static_cast<uint32_t>(i);
      node->outputs.push_back(value);
      define(results[i].name, value, results[i].place);
    }
    graph_.append(block, node);
  }

  /// `{` starts attributes if a name and an equals sign follow, else a block.
  bool at_attributes() {
    const size_t start = cursor_.offset();
    const bool result = cursor_.take("{") && !cursor_.word(true).empty() && cursor_.peek() == '=';
    cursor_.move_to(start);
    return result;
  }

  void parse_attributes(Attributes& attributes) {
    expect(cursor_, "{");
    do {
      const size_t place = cursor_.offset();
      const std::string name(cursor_.word(true));
      if (name.empty()) fail_parse(cursor_, "an attribute's name");
      if (attributes.has(name))
        throw ParseError(cat(cursor_.place(place), ": attribute ", name, " is given twice"));
      expect(cursor_, "=");
      attributes.set(name, parse_attribute(cursor_));
    } while (cursor_.take(","));
    expect(cursor_, "}");
  }

  void parse_blocks(Node& node, int depth) {
    if (cursor_.peek() != '{') return;
    if (depth >= policy::kDeepestBlock) fail_parse(cursor_, "fewer nested blocks");
    do {
      expect(cursor_, "{");
      Block& block = node.add_block();
      const size_t outer = defined_.size();
      if (cursor_.take("(")) parse_parameters(block);
      parse_nodes(block, "yield", depth + 1);
      for (; defined_.size() > outer; defined_.pop_back()) values_.erase(defined_.back());
    } while (cursor_.take_word("else") || cursor_.take_word("do"));
  }

  void check_types(const Node& node, const std::vector<Type>& written, size_t place) {
    try {
      if (node.op->infer == nullptr) {
        check_given(*node.op, node.inputs, node.attributes, node.blocks);
        return;
      }
      const std::vector<Type> inferred =
          infer_results(*node.op, node.inputs, node.attributes, node.blocks);
      if (inferred == written) return;
      std::string expected;
      for (const Type& type : inferred) expected += cat(expected.empty() ? "" : ", ", type);
      throw TypeError(cat(node.op->name, ": the result types are ",
                          expected.empty() ? "none at all" : expected));
    } catch (const TypeError& error) {
      throw ParseError(cat(cursor_.place(place), ": ", error.what()));
    }
  }

  Cursor cursor_;
  const OpTable& ops_;
  Graph graph_;
  Scope values_;
  std::vector<std::string> defined_;
};

}  // namespace

Graph parse(std::string_view text, const OpTable& ops) { return Parser(text, ops).parse(); }

}  // namespace janus::graph
