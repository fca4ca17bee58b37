// The textual form: printer, parser, verifier. parse(print(g)) prints the same text again.
//
//   graph @step(%x: f32[B,784], %y: i64[B]) {
//     %w = state {cell="fc.weight"} : f32[10,784]
//     %z = linear %x, %w, %none : f32[B,10]
//     %h = if %hot : f32[B,10] {
//       %r = relu %z : f32[B,10]
//       yield %r
//     } else {
//       yield %z
//     }
//     commit %w1 {cell="fc.weight"}
//     return %h
//   }
//
// One node a line; attributes in {k=v} sorted by name, left out where they equal the signature's
// default; result types always, operand types never. Block parameters: `{ (%i: i64, %acc: f32[])
// ...`. The blocks of an `if` are joined by `else`, those of a `while` by `do`.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/op.h"

namespace janus::graph {

struct PrintOptions {
  bool spans = false;  ///< append `// file:line` to each node
  /// Values without a name get their operator's, constants their value: `%add.1`, `%c0_5`. Then a
  /// node more or less doesn't change the names of all that follow, as numbers do.
  bool operator_names = false;
};

std::string print(const Graph& graph, const PrintOptions& options = {});
std::string print(const Node& node);
/// The names of a graph's inputs and results as its text has them: "%x".
struct ValueNames {
  std::vector<std::string> inputs, results;
};
ValueNames value_names(const Graph& graph, const PrintOptions& options = {});
/// The ten lines before and after the line of `node` within `graph`, that line marked by `>`.
std::string print_around(const Graph& graph, const Node& node);

/// Text that is not a graph; the message starts with `line:column: `.
class ParseError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws ParseError. Shape rules run while parsing: a wrong result type is an error too.
Graph parse(std::string_view text, const OpTable& ops);

/// One dimension or one type alone. ParseError if the text is anything else.
Dim parse_dim(std::string_view text);
Type parse_type(std::string_view text);

/// Checks that every operand is visible where it is used, that each node's types are what its
/// operator infers, that effects and blocks are well formed. Throws InternalError with the ten
/// lines around the node.
void verify(const Graph& graph);

}  // namespace janus::graph
