// Places of real objects that the run reads and writes over: how the heap's tables are reached,
// what is stored in one, and what it held at the entry.
#pragma once

#include "frontend/core/assumptions.h"
#include "frontend/core/frames.h"
#include "frontend/core/graph_writer.h"
#include "frontend/core/heap.h"
#include "frontend/core/interpreter_state.h"
#include "frontend/core/lifting.h"
#include "frontend/core/value_maker.h"

namespace janus::frontend {

class HeapPlaces {
 public:
  HeapPlaces(InterpreterState& state, GraphWriter& writer, Frames& frames, Assumptions& assumptions,
             ValueMaker& maker, Lifting& lifting)
      : state_(state),
        writer_(writer),
        frames_(frames),
        assumptions_(assumptions),
        maker_(maker),
        lifting_(lifting) {}
  HeapPlaces(const HeapPlaces&) = delete;
  HeapPlaces& operator=(const HeapPlaces&) = delete;

  /// The attributes of an object: its dictionary's, a module's or a class's.
  Heap::Target attributes_target(const Known& known);
  /// A dict, or the object whose `__dict__` it is.
  Heap::Target dict_target(PyObject* dict, const Source* source);

  /// Stores under the key, or deletes it; `at_entry` is the path by which it would be read at the
  /// entry. A number there that the run changes varies from call to call.
  void write_place(const Heap::Target& target, const python::Object& key, const Source* at_entry,
                   const Held& held);

  /// What the place of a change held at the entry: a value is assumed to be there again, as an
  /// element of a set is to be in it or not. All else that is absent is assumed of nothing.
  Held held_at_entry(const Heap::Table& table, const Heap::Change& change);
  /// Whether the real set held the element at the entry: assumed.
  bool held_at_entry(const Known& set, const python::Object& element);

 private:
  const Source* source_or_constant(const python::Object& object, const Source* source);
  bool is_there_already(const Heap::Target& target, const python::Object& key,
                        const Source* at_entry, const Held& held);
  void check_replaced(const Heap::Target& target, const python::Object& key);

  InterpreterState& state_;
  GraphWriter& writer_;
  Frames& frames_;
  Assumptions& assumptions_;
  ValueMaker& maker_;
  Lifting& lifting_;
};

/// The object's own dictionary (a new reference, made if there is none yet); null if it has none.
python::Object own_dictionary(PyObject* object);

}  // namespace janus::frontend
