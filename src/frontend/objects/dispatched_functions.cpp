// The wrapper that singledispatch makes is inlined as any function; what it asks is known by the
// code that all its dispatchers share.
#include "frontend/objects/dispatched_functions.h"

#include "frontend/core/entry_answers.h"
#include "frontend/core/torch_objects.h"
#include "python/origin.h"

namespace janus::frontend {

using python::Object;

namespace {

/// The code of functools' own; null where the program replaced that.
PyObject* code_of_dispatchers() {
  PyObject* const maker = imported("functools.singledispatch");
  if (maker == nullptr || !python::is_made_by(maker, "functools")) return nullptr;
  const Object made = python::check(PyObject_CallOneArg(maker, maker));
  return python::attribute(python::attribute(made.get(), "dispatch").get(), "__code__").release();
}

}  // namespace

Value call_dispatch(Interpreter& interpreter, const Known& function,
                    const CallArguments& arguments) {
  static PyObject* const code = code_of_dispatchers();
  PyObject* const object = function.object.get();
  if (code == nullptr || PyFunction_GET_CODE(object) != code || arguments.positional.size() != 1)
    return nullptr;
  const auto* type = as<Known>(arguments.positional[0]);
  if (type == nullptr || !PyType_Check(type->object.get())) return nullptr;
  interpreter.assume_identity(function);
  interpreter.assume_identity(*type);
  const Object found = interpreter.must(PyObject_CallOneArg(object, type->object.get()));
  interpreter.assume(Assumption::Kind::identity,
                     answer_path(interpreter, object, type->object.get()), found);
  return interpreter.wrap(found.get(), interpreter.sources().root(Source::Kind::constant, found));
}

}  // namespace janus::frontend
