// The graph that an interpretation writes, and what stands with it in the result: where new nodes
// go, what the graph takes, reads and gives back, and what explain() says of the program's lines.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontend/values/value.h"
#include "graph/builder.h"
#include "speculate/generated.h"

namespace janus::frontend {

using speculate::Source;

class GraphWriter {
 public:
  explicit GraphWriter(const speculate::Call& call);
  GraphWriter(const GraphWriter&) = delete;
  GraphWriter& operator=(const GraphWriter&) = delete;

  speculate::Generated& output() { return output_; }
  const speculate::Generated& output() const { return output_; }
  speculate::SourceTable& sources() { return *output_.sources; }

  // --- where nodes go
  /// Appends to the block at hand.
  graph::Builder& builder() { return builder_; }
  /// Appends to the graph's body: what reads the entry is seen by all blocks.
  graph::Builder root_builder();
  /// The span of what was built last.
  const graph::SourceSpan& last_span() const { return builder_.span(); }
  /// The block at hand, and whether one is the graph's body.
  const graph::Block* block() { return &builder_.block(); }
  bool is_body(const graph::Block* block) const { return block == &output_.graph.body(); }
  void enter_block(graph::Block& block);
  /// A block that comes to nothing: what was noted of it must not seem to be of a later one.
  void put_away(std::unique_ptr<graph::Block> block) { put_away_.push_back(std::move(block)); }

  // --- what the graph takes
  /// An input that stands for what is at the source, named after its path unless a name is given.
  graph::Value* add_input(const graph::Type& type, const Source* source);
  graph::Value* add_input(const graph::Type& type, const Source* source, std::string name);
  /// An input that is a list: a part of each element of the list at the source.
  graph::Value* list_input(const Source* source, const graph::Type& element,
                           speculate::ElementPart part);
  /// An input that is the object itself; it must have a source.
  graph::Value* object_input(const Known& known);
  /// The object at the source as an input.
  graph::Value* run_time_input(const Source* source);
  /// A place that the graph reads or writes; gives its (unique) name.
  std::string add_cell(speculate::CellBinding::Kind kind, const Source* source,
                       python::Object key = {});

  // --- what the graph gives back
  /// One more result of the graph; gives its index.
  size_t add_result(graph::Value* value) {
    results_.push_back(value);
    return results_.size() - 1;
  }
  const std::vector<graph::Value*>& results() const { return results_; }
  /// Result `index` is what a branch gives in place of what one of its sides computes.
  void replace_result(size_t index, graph::Value* value) { results_[index] = value; }
  /// Nothing refers to those from `count` on any more.
  void drop_results(size_t count) { results_.resize(count); }
  /// A number for a template that others share.
  size_t new_place() { return next_place_++; }

  /// A line for explain(); nothing where the span is not known, or says the same as the last one.
  void note_line(speculate::LineMark::Kind kind, std::string note, const graph::SourceSpan& span);

 private:
  speculate::Generated output_;
  graph::Builder builder_;
  std::vector<graph::Value*> results_;
  std::vector<std::unique_ptr<graph::Block>> put_away_;
  size_t next_place_ = 0;
  std::unordered_map<const Source*, graph::Value*> object_inputs_;
};

/// A name for the textual form made of a path: letters, digits, points and underscores.
std::string graph_name(const Source* source);

}  // namespace janus::frontend
