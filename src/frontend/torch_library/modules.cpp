// nn.Module's machinery by identity: calling a module without hooks is calling its forward. With
// hooks torch's own code is inlined.
#include <algorithm>

#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/functions.h"
#include "frontend/objects/attributes.h"
#include "frontend/torch_library/special_callables.h"

namespace janus::frontend {

using python::Object;

namespace {

bool is_known_empty(Interpreter& interpreter, const Value& dictionary) {
  return !truth(interpreter, dictionary, -1);
}

/// A table of hooks that all modules share.
Value shared_table(Interpreter& interpreter, const char* name) {
  static PyObject* const module = imported("torch.nn.modules.module");
  const Object table = interpreter.must(PyObject_GetAttrString(module, name));
  const Object key = interpreter.must(PyUnicode_FromString(name));
  const Source* source = interpreter.sources().step(
      Source::Kind::attribute,
      interpreter.sources().root(Source::Kind::constant, Object::borrow(module)), key);
  return interpreter.wrap(table.get(), source);
}

bool no_global_hooks(Interpreter& interpreter) {
  const auto tables = {"_global_backward_pre_hooks", "_global_backward_hooks",
                       "_global_forward_hooks", "_global_forward_pre_hooks"};
  return std::ranges::all_of(tables, [&](const char* name) {
    return is_known_empty(interpreter, shared_table(interpreter, name));
  });
}

bool no_hooks(Interpreter& interpreter, const Value& self) {
  for (const char* name :
       {"_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks"})
    if (!is_known_empty(interpreter, attribute(interpreter, self, name))) return false;
  return no_global_hooks(interpreter);
}

/// Torch's own code, which calls some hooks also where the module fails.
Value call_with_hooks(Interpreter& interpreter, PyObject* function,
                      const CallArguments& arguments) {
  const Value always =
      attribute(interpreter, arguments.positional[0], "_forward_hooks_always_called");
  if (is_known_empty(interpreter, always) &&
      is_known_empty(interpreter, shared_table(interpreter, "_global_forward_hooks_always_called")))
    return nullptr;
  const SeesErrors sees(interpreter, true);
  return inline_function(interpreter, function, nullptr, arguments);
}

/// What torchjanus.function leaves in `_compiled_call_impl`: it computes what the module's own call
/// does.
bool is_converted_call(Interpreter& interpreter, const Known& compiled, const Value& self) {
  static PyObject* const converted = imported("torchjanus.Function");
  static PyObject* const own = imported("torch.nn.Module._call_impl");
  const auto* module = as<Known>(self);
  if (module == nullptr || converted == nullptr ||
      !PyObject_TypeCheck(compiled.object.get(), reinterpret_cast<PyTypeObject*>(converted)))
    return false;
  const python::Object call =
      interpreter.must(PyObject_GetAttrString(compiled.object.get(), "__wrapped__"));
  return PyMethod_Check(call.get()) && PyMethod_GET_FUNCTION(call.get()) == own &&
         PyMethod_GET_SELF(call.get()) == module->object.get();
}

/// Module.__call__ and Module._call_impl
Value call_module(Interpreter& interpreter, const CallArguments& arguments) {
  static PyObject* const own = imported("torch.nn.Module._call_impl");
  if (arguments.positional.empty()) return nullptr;
  const Value& self = arguments.positional[0];
  if (as<Known>(self) == nullptr && as<Instance>(self) == nullptr) return nullptr;
  Value compiled_call = attribute(interpreter, self, "_compiled_call_impl");
  const auto* compiled = as<Known>(compiled_call);
  if (compiled == nullptr) return nullptr;
  if (!compiled->object.is(Py_None)) {
    if (!is_converted_call(interpreter, *compiled, self)) return nullptr;
    interpreter.assume_identity(*compiled);
  }
  Value implementation = attribute(interpreter, self, "_call_impl");
  const auto* method = as<Method>(implementation);
  const auto* function = method == nullptr ? nullptr : as<Known>(method->function);
  if (function == nullptr || !function->object.is(own)) return nullptr;
  if (!no_hooks(interpreter, self)) return call_with_hooks(interpreter, own, arguments);
  CallArguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  return call(interpreter, attribute(interpreter, self, "forward"), rest);
}

}  // namespace

std::span<const SpecialCallable> module_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.nn.Module.__call__", call_module},
      {"torch.nn.Module._call_impl", call_module},
  };
  return table;
}

}  // namespace janus::frontend
