// Tensors that existed before the call. They are inputs or state of the graph. Their shape, their
// class and what autograd knows of them are assumed.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "frontend/core/assumptions.h"
#include "frontend/core/attached_states.h"
#include "frontend/core/autograd_state.h"
#include "frontend/core/dimension_table.h"
#include "frontend/core/entry_facts.h"
#include "frontend/core/frames.h"
#include "frontend/core/graph_writer.h"
#include "frontend/core/scopes.h"

namespace janus::frontend {

class EntryTensors {
 public:
  EntryTensors(AutogradState& autograd, GraphWriter& writer, const AttachedStates& attached,
               Scopes& scopes, const Frames& frames, Assumptions& assumptions,
               const EntryFacts& facts, DimensionTable& table)
      : autograd_(autograd),
        writer_(writer),
        attached_(attached),
        scopes_(scopes),
        frames_(frames),
        assumptions_(assumptions),
        facts_(facts),
        table_(table) {}
  EntryTensors(const EntryTensors&) = delete;
  EntryTensors& operator=(const EntryTensors&) = delete;

  /// The tensor at the source.
  Value wrap_tensor(PyObject* object, const Source* source);

  /// Tensors reached from the entry, by the identity of the real tensor. There are several if the
  /// paths to it lead to different tensors in some calls.
  std::map<const void*, std::vector<std::shared_ptr<Tensor>>> entry_tensors;
  /// In the order in which they were reached.
  std::vector<std::shared_ptr<Tensor>> entry_tensor_order;
  /// Whether nothing is known of how one of them lies in memory.
  bool leaves_strides = false;

 private:
  Value known_tensor(PyObject* object, const Source* source);
  speculate::TensorPattern pattern_of(const speculate::TensorFact& fact, const Source* source,
                                      bool contiguous);

  AutogradState& autograd_;
  GraphWriter& writer_;
  const AttachedStates& attached_;
  Scopes& scopes_;
  const Frames& frames_;
  Assumptions& assumptions_;
  const EntryFacts& facts_;
  DimensionTable& table_;
};

}  // namespace janus::frontend
