// See process_group.h.
#include "torch/process_group.h"

#include "frontend/core/communication.h"
#include "python/object.h"

namespace janus::torch {

bool trains_with_others() {
  PyObject* const groups = frontend::process_groups();
  if (groups == nullptr) return false;
  const auto world = python::Object::steal(PyObject_GetAttrString(groups, "WORLD"));
  const auto size = world && !world.is(Py_None)
                        ? python::Object::steal(PyObject_CallMethod(world.get(), "size", nullptr))
                        : python::Object();
  const long count = size ? PyLong_AsLong(size.get()) : 1;
  PyErr_Clear();
  return count > 1;
}

}  // namespace janus::torch
