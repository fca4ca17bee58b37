// The keys of a dict in iteration order.
#pragma once

#include <vector>

#include "python/object.h"

namespace janus::python {

/// Whether the iteration order may differ from the table's: that of an OrderedDict, whose
/// `move_to_end` does not change the version of its table.
inline bool has_own_order(PyObject* dict) {
  return PyODict_Check(dict) && PyDict_GET_SIZE(dict) > 1;
}

/// Calls no method of the dict's class.
inline std::vector<Object> keys_in_order(PyObject* dict) {
  if (!has_own_order(dict)) return elements(check(PyDict_Keys(dict)).get());
  const Object iterator = check(PyODict_Type.tp_iter(dict));
  std::vector<Object> keys;
  while (Object key = Object::steal(PyIter_Next(iterator.get()))) keys.push_back(std::move(key));
  if (PyErr_Occurred() != nullptr) throw ErrorSet();
  return keys;
}

}  // namespace janus::python
