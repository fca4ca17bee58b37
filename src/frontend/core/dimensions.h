// What the graph computes with sizes: the values of named dimensions, and dimensions for sizes that
// only the run knows.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/core/attached_states.h"
#include "frontend/core/dimension_table.h"
#include "frontend/core/graph_writer.h"
#include "frontend/core/guards.h"
#include "frontend/core/scopes.h"

namespace janus::frontend {

class Dimensions {
 public:
  Dimensions(const speculate::Call& call, GraphWriter& writer, const AttachedStates& attached,
             const Scopes& scopes, Guards& guards, DimensionTable& table)
      : call_(call),
        writer_(writer),
        attached_(attached),
        scopes_(scopes),
        guards_(guards),
        table_(table) {}
  Dimensions(const Dimensions&) = delete;
  Dimensions& operator=(const Dimensions&) = delete;

  /// The i64 graph value of a dimension expression.
  graph::Value* dimension_value(const graph::Dim& dim);
  /// That the graph has the value of the name.
  void note_value(const std::string& symbol, graph::Value* value) { values_[symbol] = value; }
  /// Begins the generation anew with one name for both, if they are names of sizes of the entry
  /// that are equal in this call.
  void expect_one_name(const graph::Dim& one, const graph::Dim& other) const;
  /// Gives a named dimension of the entry its value: the int at the source.
  void give_dimension(const graph::Dim& dim, const Source* source);
  /// Gives the named dimensions of the tensor at the source their values.
  void give_dimensions(const graph::Type& tensor, const Source* source);

  // --- sizes that the run computes
  /// A dimension for a size that the graph computes, known in the block at hand and those within
  /// it; the run is given up if it is less than 2. Nothing in a recursion, whose activations
  /// differ.
  std::optional<graph::Dim> run_time_dimension(graph::Value* size);
  /// That the dimension is so large; the run is given up if that is less than 2.
  void give_size(const graph::Dim& dimension, graph::Value* size);
  /// The dimension that was found for a value of which this holds, if it is known here.
  std::optional<graph::Dim> run_time_size(const std::function<bool(const graph::Value*)>& of);
  /// That the dimension is how large, or how long, the value is.
  void note_run_time_size(const graph::Value* of, const graph::Dim& size);

 private:
  std::optional<graph::Dim> sum_of_sizes(const graph::Value& size);

  const speculate::Call& call_;
  GraphWriter& writer_;
  const AttachedStates& attached_;
  const Scopes& scopes_;
  Guards& guards_;
  DimensionTable& table_;
  std::map<std::string, graph::Value*, std::less<>> values_;       // of names
  std::map<std::string, graph::Value*, std::less<>> of_formulas_;  // in the graph's body
  /// Lengths of lists of the graph that tensors were made of, numbers of elements that masks
  /// choose, and sizes that the run computes; and in which block that is known.
  struct RunTimeSize {
    graph::Dim size;
    const graph::Block* block;
  };
  std::unordered_map<const graph::Value*, std::vector<RunTimeSize>> run_time_sizes_;
};

}  // namespace janus::frontend
