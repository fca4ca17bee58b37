// The text of a TraceGraph:
//
//   0: aten::mul.Tensor (feed f32[s0], cell w) -> f32[s0] at a.py:3 [fetched] => 1, 2
//   2: loop at a.py:4 => end
//     3: aten::add.Tensor (0 | 3, number f64) -> f32[s0] at a.py:5 => end
//
// An operand that is a result is the number of its node (3.1: result 1 of it). What may come next
// is behind the arrow.
#include <sstream>

#include "base/check.h"
#include "trace/trace_graph.h"

namespace janus::trace {
namespace {

class Printer {
 public:
  Printer(const Nodes& nodes, const Names& names) : nodes_(nodes), names_(names) {}

  std::string run() {
    print_level(0, "");
    return std::move(out_).str();
  }

 private:
  void print_level(LevelId level, const std::string& indent) {
    out_ << indent << "entry" << children(nodes_.levels[level].first) << '\n';
    for (const NodeId id : nodes_.levels[level].nodes) {
      const Node& node = nodes_.nodes[id];
      out_ << indent << id << ": ";
      if (node.is_loop()) {
        out_ << "loop";
        if (node.fixed_trips != 0) out_ << " of " << node.fixed_trips << " trips";
        out_ << " at " << names_.location(node.key.location) << children(node.children) << '\n';
        print_level(node.body, indent + "  ");
      } else {
        print_event(node);
      }
    }
  }

  void print_event(const Node& node) {
    out_ << names_.operators[node.key.op] << " (";
    for (size_t i = 0; i < node.inputs.size(); ++i)
      out_ << (i == 0 ? "" : ", ") << input(node.inputs[i]);
    out_ << ')';
    for (size_t i = 0; i < node.results.size(); ++i)
      out_ << (i == 0 ? " -> " : ", ") << type(node.results[i])
           << (node.fetched[i] ? " fetched" : "");
    out_ << " at " << names_.location(node.key.location) << children(node.children) << '\n';
  }

  static std::string children(const std::vector<NodeId>& children) {
    std::string text;
    for (const NodeId child : children) {
      text += text.empty() ? " => " : ", ";
      text += child == kEnd ? "end" : cat(child);
    }
    return text;
  }

  std::string input(const Input& input) const {
    std::string text;
    for (const Source& each : input.sources)
      text += cat(text.empty() ? "" : " | ", source(each, input));
    return text;
  }

  std::string source(const Source& source, const Input& input) const {
    switch (source.kind) {
      case Source::Kind::result:
        return source.index == 0 ? cat(source.node) : cat(source.node, '.', source.index);
      case Source::Kind::slot:
        return cat("feed of ", source.node, " operand ", source.index);
      case Source::Kind::cell:
        return cat("cell ", names_.cell(source.cell), ' ', type(nodes_.cells.at(source.cell)));
      case Source::Kind::feed:
        return cat("feed ", type(input.early));
      case Source::Kind::number:
        return cat("number ", type(input.early));
    }
    return {};
  }

  /// A size that the shape rule has to say is a question mark.
  static std::string type(const Pattern& pattern) {
    graph::Type type = pattern.symbolic();
    std::string text;
    if (!type.is_tensor()) return cat(type);
    for (size_t i = 0; i < type.shape.size(); ++i)
      text += cat(i == 0 ? "" : ",",
                  pattern.symbols[i] == Pattern::kDerived ? "?" : graph::to_string(type.shape[i]));
    return cat(graph::name(type.dtype), '[', text, ']');
  }

  const Nodes& nodes_;
  const Names& names_;
  std::ostringstream out_;
};

}  // namespace

std::string TraceGraph::print() const { return Printer(nodes_, *names_).run(); }

}  // namespace janus::trace
