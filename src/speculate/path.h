// One step of a path from the entry of a call to an object, as guards walk it.
#pragma once

#include <vector>

#include "python/object.h"
#include "speculate/expected_object.h"
#include "speculate/generated.h"
#include "speculate/source.h"

namespace janus::speculate {

struct PathStep {
  Source::Kind kind = Source::Kind::constant;
  uint32_t parent = 0;  ///< index of the base's step; roots: unused
  ExpectedObject key;
  Py_hash_t hash = 0;  ///< of the key, where it is looked up in a dict
  Py_ssize_t index = 0;
};

/// The object that the step leads to from `base` (null for roots): a borrowed reference that lives
/// as long as its owner or `owned`. Null, with no exception set, if there is none.
PyObject* take_step(const PathStep& step, PyObject* base, const Call& call,
                    std::vector<python::Object>& owned);

/// What an object written in C refers to, so many bytes from its beginning; borrowed.
inline PyObject* object_at(PyObject* object, Py_ssize_t place) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + place);
}

/// Whether it is a collections.deque itself.
bool is_deque(PyObject* object);

/// The instance's __dict__, borrowed; null if it has none.
PyObject* instance_dict(PyObject* object);
/// The slot in which objects of its class keep the attribute; null: it is none.
const PyMemberDescrObject* slot_of(PyObject* object, PyObject* name);

/// Global or builtin `name` as a function with these globals sees it: borrowed or null.
PyObject* find_global(PyObject* globals, PyObject* builtins, PyObject* name, Py_hash_t hash);

}  // namespace janus::speculate
