// Functions of torch and of Python's library that ask about the environment: their answers are
// what the entry assumes of them.
#include "frontend/control/journal.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/contexts.h"
#include "frontend/language/functions.h"
#include "frontend/language/generators.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/instances.h"
#include "frontend/objects/iteration.h"

namespace janus::frontend {

using python::Object;

namespace {

using Arguments = CallArguments;

/// Scripting, tracing, compiling, __torch_function__ overrides: assumed absent at entry.
Value call_never(Interpreter& interpreter, const Arguments&) { return interpreter.boolean(false); }

Value call_none(Interpreter& interpreter, const Arguments&) { return interpreter.none(); }

Value call_default_dtype(Interpreter& interpreter, const Arguments&) {
  return interpreter.constant(dtype_object(interpreter.output().environment.default_dtype));
}

Value call_deterministic(Interpreter& interpreter, const Arguments&) {
  return interpreter.boolean(interpreter.output().environment.deterministic);
}

/// typing.cast(type, value), torch's annotations: the value itself.
Value call_second(Interpreter&, const Arguments& arguments) {
  return arguments.positional.size() == 2 ? arguments.positional[1] : nullptr;
}

/// record_function and the like: context managers without an effect on what is computed.
Value call_no_context(Interpreter&, const Arguments&) {
  auto context = std::make_shared<ContextManager>();
  context->enter = [](Interpreter& interpreter) { return interpreter.none(); };
  context->exit = [](Interpreter&) {};
  return context;
}

/// torch._assert(condition, message)
Value call_assert(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.empty()) return nullptr;
  if (!truth(interpreter, arguments.positional[0], -1))
    interpreter.refuse(ReasonCode::would_raise, "AssertionError");
  return interpreter.none();
}

/// itertools.chain(*iterables)
Value call_chain(Interpreter& interpreter, const Arguments& arguments) {
  auto rest = std::make_shared<std::vector<Value>>(arguments.positional);
  auto current = std::make_shared<std::shared_ptr<Iterator>>();
  auto next = std::make_shared<size_t>(0);
  return std::make_shared<Iterator>([&interpreter, rest, current, next]() -> Value {
    while (true) {
      if (*current != nullptr)
        if (Value element = (*current)->next()) return element;
      if (*next == rest->size()) return nullptr;
      *current = iterate(interpreter, (*rest)[(*next)++]);
    }
  });
}

/// types.MethodType(function, object)
Value call_method_type(Interpreter&, const Arguments& arguments) {
  if (arguments.positional.size() != 2 || !arguments.keywords.empty()) return nullptr;
  return std::make_shared<Method>(arguments.positional[1], arguments.positional[0]);
}

/// contextlib.ExitStack.__exit__, by the program in torchjanus/contexts.py.
Value call_exit_stack(Interpreter& interpreter, const Arguments& arguments) {
  static PyObject* const program = imported("torchjanus.contexts.leave_all");
  // Python's own code goes on with the others where one raises.
  const Awaiting nothing(interpreter, Awaiting::What::nothing);
  return inline_function(interpreter, program, nullptr, arguments);
}

/// Whether the stack notes contexts as ExitStack does, and not by methods of its own.
bool notes_contexts(Interpreter& interpreter, const Value& stack) {
  static PyObject* const type = imported("contextlib.ExitStack");
  for (const char* name : {"_push_cm_exit", "_push_exit_callback", "_create_exit_wrapper"}) {
    Value found = attribute_or_null(interpreter, stack, name);
    if (const auto* method = as<Method>(found)) found = method->function;
    const Object of_type = interpreter.must(PyObject_GetAttrString(type, name));
    if (found == nullptr || known_object(found) != of_type.get()) return false;
  }
  return true;
}

/// contextlib.ExitStack.enter_context of what the interpreter knows as a context manager.
Value call_enter_context(Interpreter& interpreter, const Arguments& arguments) {
  static PyObject* const program = imported("torchjanus.contexts.push_entered");
  if (arguments.positional.size() != 2 || as<ContextManager>(arguments.positional[1]) == nullptr)
    return nullptr;
  if (!notes_contexts(interpreter, arguments.positional[0])) return nullptr;
  const Entered entered = enter_context(interpreter, arguments.positional[1]);
  ContextsOfRun::expect_end(arguments.positional[1]);
  const Awaiting nothing(interpreter, Awaiting::What::nothing);
  inline_function(interpreter, program, nullptr,
                  {.positional = {arguments.positional[0], entered.exit}, .keywords = {}});
  return entered.value;
}

/// What the class gives for a lazy property of torch.distributions: an object that only its class
/// is asked for, made anew by each look.
Value call_lazy_property(Interpreter& interpreter, const Arguments& arguments) {
  static PyObject* const type = imported("torch.distributions.utils._lazy_property_and_property");
  return defer(interpreter, Object::borrow(type), arguments, reinterpret_cast<PyTypeObject*>(type));
}

}  // namespace

std::span<const SpecialCallable> library_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.jit.is_scripting", call_never},
      {"torch.jit.is_tracing", call_never},
      {"torch._C._get_tracing_state", call_none},
      {"torch._C._is_tracing", call_never},
      {"torch._C._log_api_usage_once", call_none},
      {"torch.compiler.is_compiling", call_never},
      {"torch.overrides.has_torch_function", call_never},
      {"torch.overrides.has_torch_function_unary", call_never},
      {"torch.overrides.has_torch_function_variadic", call_never},
      {"torch._C._has_torch_function", call_never},
      {"torch._C._has_torch_function_unary", call_never},
      {"torch._C._has_torch_function_variadic", call_never},
      {"torch._C._is_torch_function_mode_enabled", call_never},
      {"torch.get_default_dtype", call_default_dtype},
      {"torch._C._get_deterministic_algorithms", call_deterministic},
      {"torch._assert", call_assert},
      {"typing.cast", call_second},
      {"itertools.chain", call_chain},
      {"types.SimpleNamespace", make_namespace},
      {"contextlib._GeneratorContextManager", call_generator_context},
      {"contextlib.ExitStack.__exit__", call_exit_stack},
      {"contextlib.ExitStack.enter_context", call_enter_context},
      {"types.MethodType", call_method_type},
      {"torch.distributions.utils._lazy_property_and_property", call_lazy_property},
      {"torch.autograd.profiler.record_function", call_no_context},
  };
  return table;
}

}  // namespace janus::frontend
