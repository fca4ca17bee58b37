// importlib.util.find_spec of a package that is not there: each entry asks again, as the program
// may install one, or extend sys.path. What is there is found by Python.
#include "frontend/core/entry_answers.h"
#include "frontend/core/known_callables.h"
#include "frontend/library/special_callables.h"

namespace janus::frontend {

namespace {

Value call_find_spec(Interpreter& interpreter, const CallArguments& arguments) {
  static PyObject* const is_missing =
      python::import_attribute("torchjanus.imports", "is_missing").release();
  PyObject* const name = arguments.positional.size() == 1 && arguments.keywords.empty()
                             ? known_object(arguments.positional[0])
                             : nullptr;
  // To look for a module in a package imports the package.
  if (name == nullptr || !PyUnicode_CheckExact(name) ||
      PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1) != -1)
    return nullptr;
  if (!python::call(is_missing, {name}).is(Py_True)) return nullptr;
  interpreter.assume(Assumption::Kind::identity, answer_path(interpreter, is_missing, name),
                     python::boolean(true));
  return interpreter.none();
}

}  // namespace

std::span<const SpecialCallable> import_callables() {
  static constexpr SpecialCallable table[] = {{"importlib.util.find_spec", call_find_spec}};
  return table;
}

}  // namespace janus::frontend
