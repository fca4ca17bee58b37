#include "frontend/torch_library/process_groups.h"

#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;

std::string name_of_group(const Interpreter& interpreter, PyObject* group) {
  const Object world = python::import_attribute("torch.distributed.distributed_c10d", "_world");
  const Object names = interpreter.must(PyObject_GetAttrString(world.get(), "pg_names"));
  return text_of(interpreter.must(PyObject_GetItem(names.get(), group)).get());
}

}  // namespace janus::frontend
