#include "frontend/torch_library/process_groups.h"

#include "frontend/core/torch_objects.h"
#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;

std::string name_of_group(const Interpreter& interpreter, PyObject* group) {
  const Object world = python::import_attribute("torch.distributed.distributed_c10d", "_world");
  const Object names = interpreter.must(PyObject_GetAttrString(world.get(), "pg_names"));
  return text_of(interpreter.must(PyObject_GetItem(names.get(), group)).get());
}

bool compares_calls(const Interpreter& interpreter, PyObject* group) {
  static PyObject* const wrapper = imported("torch._C._distributed_c10d._ProcessGroupWrapper");
  static PyObject* const device = imported("torch.device");
  if (wrapper == nullptr) return false;
  const Object cpu = interpreter.must(PyObject_CallFunction(device, "s", "cpu"));
  const Object backend =
      interpreter.must(PyObject_CallMethod(group, "_get_backend", "O", cpu.get()));
  return Py_IS_TYPE(backend.get(), reinterpret_cast<PyTypeObject*>(wrapper));
}

}  // namespace janus::frontend
