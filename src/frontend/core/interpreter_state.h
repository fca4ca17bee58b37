// The state of the interpreted program. Sides of branches, iterations of loops and activations of
// functions begin from a state that was saved. It is one value, saved and restored as a whole.
//
// A further member is saved and restored with the others. Where two sides meet (Merger::join_state)
// and where an iteration or an activation ends, each member is named, and one more does not
// compile.
#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/core/autocast_state.h"
#include "frontend/core/heap.h"
#include "frontend/values/snapshot.h"

namespace janus::frontend {

/// Torch's modes as the program has set them.
struct Modes {
  bool grad_enabled = true;
  bool inference_mode = false;
  Autocast autocast;
  bool operator==(const Modes&) const = default;
};

/// What has become of values that backward() may need.
struct History {
  /// Values that an in-place operation replaced. Operators that saved one for backward are stale,
  /// except the given operator, which kept a copy.
  std::unordered_map<const graph::Value*, const graph::Node*> overwritten;
  /// Nodes whose saved values a backward() has freed.
  std::unordered_set<const graph::Node*> consumed;
  /// Gradients of autograd.grad(), which end before they reach all leaves.
  std::unordered_set<const graph::Node*> partial;
  void add(const History& other) {
    overwritten.insert(other.overwritten.begin(), other.overwritten.end());
    consumed.insert(other.consumed.begin(), other.consumed.end());
    partial.insert(other.partial.begin(), other.partial.end());
  }
};

/// What the tests made so far say of an object.
struct KnownClasses {
  Classes classes;
  bool is_certain = false;
};

struct InterpreterState {
  Modes modes;
  /// What the run has changed in objects of the real world.
  Heap heap;
  History history;
  std::map<const graph::Value*, KnownClasses> known_classes;
  Casts casts;
  /// Effects that are made after the run, in order.
  std::vector<speculate::Effect> effects;
};

/// The state at one moment, with what all changeable objects held then.
struct SavedState {
  InterpreterState state;
  Snapshot objects;

  /// Of all objects that live now.
  static SavedState of(const InterpreterState& now) { return {now, Snapshot::take()}; }
  /// Of the same objects, as everything is now.
  SavedState again(const InterpreterState& now) const { return {now, objects.again()}; }
  /// As everything was then. Iterators stay where they are.
  void restore(InterpreterState& now) const {
    objects.restore();
    now = state;
  }
  /// What a pre-existing list held then that was opened since.
  ElementList elements_of(PyObject* list, const Heap::List& opened) const;
};

/// Whether only reads happened since.
bool only_read(const SavedState& before, const InterpreterState& now);

}  // namespace janus::frontend
