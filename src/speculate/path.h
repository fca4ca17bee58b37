// One step of an access path from the entry of a call to an object, as guards walk it.
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
  Py_hash_t hash = 0;  ///< the hash of `key`, for dicts
  Py_ssize_t index = 0;
};

/// The object that the step reaches from `base` (null for roots): a borrowed reference that lives
/// as long as its owner or `owned`. Null, with no exception set, if there is none.
PyObject* take_step(const PathStep& step, PyObject* base, const Call& call,
                    std::vector<python::Object>& owned);

/// The reference at byte `place` of an object written in C; borrowed.
inline PyObject* object_at(PyObject* object, Py_ssize_t place) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + place);
}

/// Whether the object is a collections.deque, of no subclass.
bool is_deque(PyObject* object);

/// The instance's __dict__, borrowed; null if it has none.
PyObject* instance_dict(PyObject* object);
/// The slot of the attribute in objects of its class (`__slots__`); null if it has none.
const PyMemberDescrObject* slot_of(PyObject* object, PyObject* name);

/// The global or builtin that a function with these globals sees; borrowed or null.
PyObject* find_global(PyObject* globals, PyObject* builtins, PyObject* name, Py_hash_t hash);

}  // namespace janus::speculate
