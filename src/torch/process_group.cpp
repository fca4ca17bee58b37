// See process_group.h.
#include "torch/process_group.h"

#include "frontend/core/torch_objects.h"
#include "python/object.h"

namespace janus::torch {

bool trains_with_others() {
  static PyObject* const groups = frontend::imported("torch.distributed.group");
  if (groups == nullptr) return false;  // torch was built without
  const auto world = python::Object::steal(PyObject_GetAttrString(groups, "WORLD"));
  const auto size = world && !world.is(Py_None)
                        ? python::Object::steal(PyObject_CallMethod(world.get(), "size", nullptr))
                        : python::Object();
  const long count = size ? PyLong_AsLong(size.get()) : 1;
  PyErr_Clear();
  return count > 1;
}

}  // namespace janus::torch
