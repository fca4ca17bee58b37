// How objects of the real world become abstract values, and with which assumptions: constants are
// assumed equal, functions and classes identical, everything else of the same class; tensors and
// numbers that vary become inputs or state of the graph.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "frontend/core/assumptions.h"
#include "frontend/core/attached_states.h"
#include "frontend/core/entry_facts.h"
#include "frontend/core/entry_numbers.h"
#include "frontend/core/entry_tensors.h"
#include "frontend/core/graph_writer.h"
#include "frontend/core/interpreter_state.h"
#include "frontend/core/value_maker.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

/// A pre-existing list or tuple whose length is a dimension of the graph.
struct EntryList {
  python::Object object;
  std::shared_ptr<const speculate::ElementPattern> pattern;
  std::shared_ptr<const Rolled> elements;
};

class Lifting {
 public:
  Lifting(InterpreterState& state, GraphWriter& writer, const AttachedStates& attached,
          Assumptions& assumptions, EntryFacts& facts, ValueMaker& maker, EntryNumbers& numbers,
          EntryTensors& tensors)
      : state_(state),
        writer_(writer),
        attached_(attached),
        assumptions_(assumptions),
        facts_(facts),
        maker_(maker),
        numbers_(numbers),
        tensors_(tensors) {}
  Lifting(const Lifting&) = delete;
  Lifting& operator=(const Lifting&) = delete;

  /// The object found at `source`, with the assumptions under which the graph may treat it so.
  Value wrap(PyObject* object, const Source* source);
  /// The object at `source` as an input of the graph, of which only its class is assumed.
  Value wrap_run_time(PyObject* object, const Source* source);
  /// Notes that a number read at `source` is written there. If it was taken for a constant, the run
  /// is interpreted again with a number that varies.
  void note_written(const Source* source, const Value& value);

  /// Lists and tuples of the entry whose length is a dimension (frontend/control/entry_lists.h).
  std::map<const Source*, EntryList> entry_lists;
  /// Pre-existing lists and tuples of which the run reads what it chooses.
  std::map<const Source*, Value> chosen_from;

 private:
  Value wrap_new(PyObject* object, const Source* source);
  Value wrap_varying_tuple(PyObject* object, const Source* source);

  InterpreterState& state_;
  GraphWriter& writer_;
  const AttachedStates& attached_;
  Assumptions& assumptions_;
  EntryFacts& facts_;
  ValueMaker& maker_;
  EntryNumbers& numbers_;
  EntryTensors& tensors_;
  std::unordered_map<const Source*, Value> wrapped_;
};

}  // namespace janus::frontend
