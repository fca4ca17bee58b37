// Identity of pre-existing objects. It is assumed of the paths that led to them, not of the
// objects: a copy of a model, whose parts are other objects, fits the same graph.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "frontend/values/value.h"

namespace janus::frontend {

class Assumptions;

/// A value that is a pre-existing object, and is equal to nothing but itself.
struct EntryObject {
  PyObject* object;
  const speculate::Source* source;
};
/// Null object: the value is something else, or it is known by more than its path (functions,
/// classes, constants).
EntryObject entry_object_of(const Value& value);

class Identities {
 public:
  /// Whether the two are one object, as they will be at each entry.
  bool are_one(Assumptions& assumptions, const EntryObject& one, const EntryObject& other);

 private:
  void tell_apart(Assumptions& assumptions, const EntryObject& object);

  /// Objects that were told apart from others: any two of one class are taken to stay different
  /// ones.
  std::unordered_map<PyObject*, const speculate::Source*> told_apart_;
  std::unordered_map<PyTypeObject*, int64_t> groups_;
};

}  // namespace janus::frontend
