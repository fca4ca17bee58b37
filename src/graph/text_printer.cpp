// Graph to text. It prints broken graphs too, since the verifier shows them.
#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "graph/annotated_text.h"
#include "graph/quote.h"
#include "graph/text.h"

namespace janus::graph {
namespace {

bool is_name_character(char c) {
  return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

/// A name that the parser reads and that is not one of the printer's numbers.
std::string readable(std::string name) {
  for (char& c : name)
    if (!is_name_character(c)) c = '_';
  const bool number =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number && !name.empty() ? "v" + name : name;
}

/// What a value without a name is called after what defines it; empty for a block's parameter.
std::string operator_name(const Value& value) {
  const Node* node = value.definition;
  if (node == nullptr || node->op == nullptr) return {};
  if (node->op->role != Role::constant) return std::string(node->op->name);
  const AttributeValue* constant = node->attributes.find("value");
  if (constant == nullptr) return {};
  std::string name = readable(cat("c", *constant));
  std::ranges::replace(name, '.', '_');  // a point is followed by the number of a name's repetition
  return name;
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  void graph(const Graph& graph) {
    text_ = cat("graph @", word_or_quoted(graph.name()));
    parameters(graph.body());
    text_ += " {\n";
    block(graph.body(), 1, "return");
    text_ += "}\n";
  }

  void node(const Node& node, int depth) {
    line_of_node_[&node] = static_cast<size_t>(std::count(
                               text_.begin() + static_cast<long>(counted_), text_.end(), '\n')) +
                           lines_;
    lines_ = line_of_node_[&node];
    counted_ = text_.size();
    indent(depth);
    define(node.outputs);
    text_ += node.op == nullptr ? "<no operator>" : std::string(node.op->name);
    if (!node.inputs.empty()) text_ += ' ';
    use(node.inputs);
    attributes(node);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      text_ += cat(i == 0 ? " : " : ", ", node.outputs[i]->type);
    blocks(node, depth);
    if (options_.spans && node.span.known())
      text_ += cat("  // ", *node.span.file, ':', node.span.line);
    text_ += '\n';
  }

  std::vector<std::string> names_of(std::span<Value* const> values) {
    std::vector<std::string> names;
    for (const Value* value : values) names.push_back("%" + name(value));
    return names;
  }

  std::string take() { return std::move(text_); }
  std::vector<const Node*> nodes_by_line() const {
    std::vector<const Node*> nodes(static_cast<size_t>(std::ranges::count(text_, '\n')));
    for (const auto& [node, line] : line_of_node_) nodes[line] = node;
    return nodes;
  }
  std::optional<size_t> line_of(const Node& node) const {
    const auto found = line_of_node_.find(&node);
    return found == line_of_node_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void indent(int depth) { text_.append(static_cast<size_t>(depth) * 2, ' '); }

  const std::string& name(const Value* value) {
    const auto [place, is_new] = names_.try_emplace(value);
    if (!is_new) return place->second;
    std::string base = value == nullptr ? "<null>" : readable(value->name);
    if (base.empty() && value != nullptr && options_.operator_names) base = operator_name(*value);
    if (base.empty()) {
      place->second = std::to_string(next_number_++);
      return place->second;
    }
    std::string candidate = base;
    int& suffix = last_suffix_[base];  // all up to this one are taken
    while (!taken_.insert(candidate).second) candidate = cat(base, '.', ++suffix);
    place->second = candidate;
    return place->second;
  }

  void use(std::span<Value* const> values) {
    for (size_t i = 0; i < values.size(); ++i) text_ += cat(i == 0 ? "%" : ", %", name(values[i]));
  }

  void define(std::span<Value* const> values) {
    use(values);
    if (!values.empty()) text_ += " = ";
  }

  void parameters(const Block& block) {
    text_ += '(';
    for (size_t i = 0; i < block.parameters.size(); ++i)
      text_ +=
          cat(i == 0 ? "%" : ", %", name(block.parameters[i]), ": ", block.parameters[i]->type);
    text_ += ')';
  }

  void attributes(const Node& node) {
    bool first = true;
    for (const auto& [attribute, value] : node.attributes) {
      const Parameter* parameter =
          node.op == nullptr ? nullptr : node.op->signature().find(attribute);
      if (parameter != nullptr && parameter->default_value &&
          identical(*parameter->default_value, value))
        continue;
      text_ += cat(first ? " {" : ", ", attribute, '=', value);
      first = false;
    }
    if (!first) text_ += '}';
  }

  void blocks(const Node& node, int depth) {
    const std::string_view joint =
        node.op != nullptr && node.op->role == Role::loop ? "do" : "else";
    for (size_t i = 0; i < node.blocks.size(); ++i) {
      text_ += i == 0 ? " {" : cat(' ', joint, " {");
      if (!node.blocks[i]->parameters.empty()) {
        text_ += ' ';
        parameters(*node.blocks[i]);
      }
      text_ += '\n';
      block(*node.blocks[i], depth + 1, "yield");
      indent(depth);
      text_ += '}';
    }
  }

  void block(const Block& block, int depth, std::string_view last) {
    for (const Node* one : block.nodes) node(*one, depth);
    indent(depth);
    text_ += last;
    if (!block.results.empty()) text_ += ' ';
    use(block.results);
    text_ += '\n';
  }

  PrintOptions options_;
  std::string text_;
  std::map<const Value*, std::string> names_;
  std::set<std::string> taken_;
  std::map<std::string, int> last_suffix_;  // by readable name
  int next_number_ = 0;
  std::map<const Node*, size_t> line_of_node_;  // from 0
  size_t counted_ = 0, lines_ = 0;              // text up to counted_ has lines_ lines
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  Printer printer(options);
  printer.graph(graph);
  return printer.take();
}

AnnotatedText print_annotated(const Graph& graph) {
  Printer printer({});
  printer.graph(graph);
  AnnotatedText result{.nodes = printer.nodes_by_line()};
  result.text = printer.take();
  return result;
}

ValueNames value_names(const Graph& graph, const PrintOptions& options) {
  Printer printer(options);
  printer.graph(graph);
  return {printer.names_of(graph.body().parameters), printer.names_of(graph.body().results)};
}

std::string print(const Node& node) {
  Printer printer({});
  printer.node(node, 0);
  return printer.take();
}

std::string print_around(const Graph& graph, const Node& node) {
  constexpr size_t reach = 10;
  Printer printer({.spans = true});
  printer.graph(graph);
  const auto line = printer.line_of(node);
  if (!line) return {};
  const std::string text = printer.take();
  std::string result;
  size_t start = 0;
  for (size_t number = 0; start < text.size() && number <= *line + reach; ++number) {
    const size_t end = text.find('\n', start) + 1;
    if (number + reach >= *line)
      result += cat(number == *line ? "> " : "  ", text.substr(start, end - start));
    start = end;
  }
  return result;
}

}  // namespace janus::graph
