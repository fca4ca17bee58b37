// The first meaning that fits is taken: a special callable, an operator of torch, a class, a
// function of Python, a builtin that only computes, an object with a `__call__`.
#include "frontend/language/calls.h"

#include <algorithm>

#include "frontend/control/journal.h"
#include "frontend/control/optional.h"
#include "frontend/core/class_of.h"
#include "frontend/core/describe_callable.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/class_calls.h"
#include "frontend/language/format_fields.h"
#include "frontend/language/functions.h"
#include "frontend/language/scripted_functions.h"
#include "frontend/language/strings.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/cached_functions.h"
#include "frontend/objects/container_methods.h"
#include "frontend/objects/dispatched_functions.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/partials.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/refused_arguments.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/operands.h"
#include "graph/op.h"
#include "ops/list.h"
#include "ops/number.h"
#include "speculate/hooks.h"
#include "syntax/source.h"

namespace janus::frontend {

using python::Object;

namespace {

/// Whether the callable is a builtin function that only computes. On constants it is run now.
bool is_pure_builtin(PyObject* callable) {
  if (!PyCFunction_Check(callable)) return false;
  Object module = Object::steal(PyObject_GetAttrString(callable, "__module__"));
  PyErr_Clear();
  std::string name = text_of(module.get());
  if (name == "builtins") {
    const std::string function =
        text_of(Object::steal(PyObject_GetAttrString(callable, "__name__")).get());
    return function == "ord" || function == "chr" || function == "bin" || function == "hex" ||
           function == "oct";
  }
  return name == "math" || name == "cmath";
}

/// Whether it is one of `operator` that runs no code of the program for these arguments.
bool is_pure_operator(PyObject* callable, const CallArguments& arguments) {
  if (!PyCFunction_Check(callable)) return false;
  const Object module = python::try_attribute(callable, "__module__");
  if (text_of(module.get()) != "_operator" ||
      text_of(python::attribute(callable, "__name__").get()) == "call")
    return false;
  return std::ranges::all_of(arguments.positional, [](const Value& value) {
    return as<Known>(value) == nullptr || (class_of(value)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0;
  });
}

std::vector<Value> all_values(const CallArguments& arguments) {
  std::vector<Value> values = arguments.positional;
  for (const auto& [name, value] : arguments.keywords) values.push_back(value);
  return values;
}

bool any_needs_run(const CallArguments& arguments) {
  for (const Value& value : all_values(arguments))
    if (needs_run(value)) return true;
  return false;
}

Value call_now(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments) {
  Object positional =
      interpreter.must(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional.size())));
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i),
                     folded(interpreter, arguments.positional[i]).release());
  Object keywords = interpreter.must(PyDict_New());
  for (const auto& [name, value] : arguments.keywords)
    PyDict_SetItemString(keywords.get(), name.c_str(), folded(interpreter, value).get());
  Object result = interpreter.must(PyObject_Call(callable, positional.get(), keywords.get()));
  if (!is_immutable_constant(result.get()) && !PyList_CheckExact(result.get()))
    interpreter.refuse(ReasonCode::unknown_callable,
                       describe_callable(interpreter.constant_borrowed(callable)));
  if (PyList_CheckExact(result.get())) {
    std::vector<Value> elements;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(result.get()); ++i) {
      PyObject* element = PyList_GET_ITEM(result.get(), i);
      if (!is_immutable_constant(element))
        interpreter.refuse(ReasonCode::unknown_callable,
                           describe_callable(interpreter.constant_borrowed(callable)));
      elements.push_back(interpreter.constant_borrowed(element));
    }
    return make_list(std::move(elements));
  }
  return interpreter.constant(result);
}

/// Methods of a text that give another text, and raise for no contents of what they are given.
bool is_change_of_text(std::string_view name) {
  static constexpr std::string_view all[] = {
      "str.replace",  "str.strip",      "str.lstrip",    "str.rstrip",       "str.removeprefix",
      "str.upper",    "str.lower",      "str.title",     "str.removesuffix", "str.capitalize",
      "str.casefold", "str.center",     "str.swapcase",  "str.ljust",        "str.rjust",
      "str.zfill",    "str.__format__", "str.expandtabs"};
  return std::ranges::find(all, name) != std::end(all);
}

bool is_part_of_text(const Value& value) {
  return is_string(value) ||
         (as<Known>(value) != nullptr && is_immutable_constant(known_object(value)));
}

/// Whether the arguments of str.join are a text and a list or tuple of texts: it can't raise.
bool are_joinable(const CallArguments& arguments) {
  if (arguments.positional.size() != 2 || !arguments.keywords.empty()) return false;
  const auto* parts = as<Sequence>(arguments.positional[1]);
  return parts != nullptr && parts->elements.rolled() == nullptr &&
         is_string(arguments.positional[0]) &&
         std::ranges::all_of(parts->elements.known(), is_string);
}

Value call_pure_builtin(Interpreter& interpreter, PyObject* callable,
                        const CallArguments& arguments) {
  static PyObject* const format = imported("builtins.str.format");
  if (callable == format) return format_by_fields(interpreter, callable, arguments);
  if (any_needs_run(arguments)) {
    bool makes_string =
        Py_TYPE(callable) == &PyMethodDescr_Type && PyDescr_TYPE(callable) == &PyUnicode_Type;
    std::string name = describe_callable(interpreter.constant_borrowed(callable));
    if (makes_string && is_change_of_text(name) &&
        std::ranges::all_of(all_values(arguments), is_part_of_text))
      return defer_formatting(interpreter, callable, arguments);
    if (makes_string && name == "str.join" && are_joinable(arguments))
      return defer(interpreter, Object::borrow(callable), arguments, &PyUnicode_Type);
    interpreter.refuse(ReasonCode::dynamic_value, "an argument of " + name);
  }
  return call_now(interpreter, callable, arguments);
}

Value call_bound_method(Interpreter& interpreter, const Known& known,
                        const CallArguments& arguments) {
  PyObject* method = known.object.get();
  const Source* source = known.source;
  auto step = [&](Source::Kind kind) {
    return source == nullptr ? nullptr : interpreter.sources().step(kind, source);
  };
  Value self = interpreter.wrap(PyMethod_GET_SELF(method), step(Source::Kind::bound_self));
  Value function =
      interpreter.wrap(PyMethod_GET_FUNCTION(method), step(Source::Kind::bound_function));
  return call(interpreter, std::make_shared<Method>(self, function), arguments);
}

/// A method of C that is bound to an object, as `match = pattern.match` leaves it: a call of that
/// of the object's class. `f = Square.apply` is one of a class since torch 2.15. Null: no such.
Value call_bound_builtin(Interpreter& interpreter, const Known& known,
                         const CallArguments& arguments) {
  PyObject* const of_class = unbound_builtin(known.object.get());
  if (of_class == nullptr) return nullptr;
  PyObject* const self = PyCFunction_GET_SELF(known.object.get());
  if (PyType_Check(self) && special_handler(of_class) == nullptr) return nullptr;
  // It keeps its object, which therefore stays the same while it does.
  interpreter.assume_identity(known);
  const Source* place = interpreter.sources().root(Source::Kind::constant, Object::borrow(self));
  const Value object = is_immutable_constant(self) ? interpreter.constant_borrowed(self)
                                                   : interpreter.wrap(self, place);
  if (as<Tensor>(object) != nullptr) return nullptr;
  return call(interpreter,
              std::make_shared<Method>(object, interpreter.constant_borrowed(of_class)), arguments);
}

/// A live weak reference gives its object. The entry assumes that it is the same reference.
Value call_weak_reference(Interpreter& interpreter, const Known& known) {
  interpreter.assume_identity(known);
  Object object = interpreter.must(PyObject_CallNoArgs(known.object.get()));
  if (object.is(Py_None))
    interpreter.refuse(ReasonCode::dynamic_value, "a weak reference whose object is gone");
  return interpreter.wrap(object.get(), interpreter.sources().root(Source::Kind::constant, object));
}

/// `ValueError.__init__`: each class has its own.
bool is_exception_initialiser(PyObject* object) {
  return Py_TYPE(object) == &PyWrapperDescr_Type &&
         PyExceptionClass_Check(reinterpret_cast<PyObject*>(PyDescr_TYPE(object))) &&
         text_of(PyDescr_NAME(object)) == "__init__";
}

/// Assumes that a callable that is known by identity stays the same object with the same code.
void assume_meaning(Interpreter& interpreter, const Known& known) {
  interpreter.assume_identity(known);
  PyObject* const object = known.object.get();
  if (!PyFunction_Check(object)) return;
  const Source* function = interpreter.sources().root(Source::Kind::constant, known.object);
  interpreter.assume(Assumption::Kind::identity,
                     interpreter.sources().step(Source::Kind::code, function),
                     Object::borrow(syntax::original_code(PyFunction_GET_CODE(object))));
}

/// A method written in C raises if it is called of an object of another class: Tensor.add(2.0, x).
void expect_own_receiver(Interpreter& interpreter, PyObject* object,
                         const CallArguments& arguments) {
  const bool is_method =
      Py_IS_TYPE(object, &PyMethodDescr_Type) || Py_IS_TYPE(object, &PyWrapperDescr_Type);
  if (!is_method || arguments.positional.empty()) return;
  const Value& receiver = arguments.positional[0];
  expect_narrowed(receiver);
  PyTypeObject* const type = class_of(receiver);
  PyTypeObject* const own = PyDescr_TYPE(object);
  if (type != nullptr && PyType_IsSubtype(type, own) == 0)
    interpreter.refuse(ReasonCode::would_raise,
                       cat("TypeError: a method of ", own->tp_name, " of another object"));
}

Value call_known(Interpreter& interpreter, const Value& callee, const CallArguments& arguments) {
  const auto& known = *as<Known>(callee);
  PyObject* object = known.object.get();
  const bool is_inlined = PyFunction_Check(object) || PyMethod_Check(object);
  if (!is_inlined || special_handler(object))
    if (Value both = for_both(interpreter, arguments, [&](const CallArguments& given) {
          return call(interpreter, callee, given);
        }))
      return both;
  expect_own_receiver(interpreter, object, arguments);
  if (!is_inlined) {
    expect_narrowed(arguments);
    refuse_what_binding_refuses(interpreter, object, arguments);
  }
  if (Handler handler = special_handler(object)) {
    expect_narrowed(arguments);
    assume_meaning(interpreter, known);
    if (Value result = handler(interpreter, arguments)) return result;
  }
  if (Value result = call_operator(interpreter, object, arguments)) {
    assume_meaning(interpreter, known);
    return result;
  }
  if (PyType_Check(object)) return call_class(interpreter, known, arguments);
  if (PyFunction_Check(object)) {
    if (Value found = call_dispatch(interpreter, known, arguments)) return found;
    if (Value made = call_namedtuple_constructor(interpreter, object, arguments)) {
      assume_meaning(interpreter, known);
      return made;
    }
    const Awaiting nothing(interpreter, Awaiting::What::nothing);
    if (Value result = call_decorated(interpreter, known, arguments)) return result;
  }
  if (PyFunction_Check(object))
    return inline_function(interpreter, object, known.source, arguments);
  if (PyMethod_Check(object)) return call_bound_method(interpreter, known, arguments);
  if (is_pure_builtin(object) || is_pure_operator(object, arguments) ||
      is_method_of_immutable(object))
    return call_pure_builtin(interpreter, object, arguments);
  if (PyWeakref_CheckRefExact(object) && arguments.positional.empty())
    return call_weak_reference(interpreter, known);
  if (is_partial(Py_TYPE(object))) return call_partial(interpreter, callee, arguments);
  if (is_cached_function(Py_TYPE(object)))
    if (Value held = call_cached_function(interpreter, known, arguments)) return held;
  if (PyObject* function = speculate::function_of_converted(object)) {
    interpreter.assume_identity(known);
    const Source* path =
        interpreter.sources().step(Source::Kind::attribute, path_of(interpreter, known),
                                   Object::steal(PyUnicode_InternFromString("__wrapped__")));
    return inline_function(interpreter, function, path, arguments);
  }
  if (Value result = call_container_function(interpreter, object, arguments)) return result;
  if (Value result = call_scripted(interpreter, known, arguments)) return result;
  if (is_exception_initialiser(object))
    if (Value result = initialise_exception(interpreter, arguments)) return result;
  if (Value result = call_bound_builtin(interpreter, known, arguments)) return result;
  if (PyCFunction_Check(object) || Py_TYPE(object) == &PyMethodDescr_Type ||
      Py_TYPE(object) == &PyWrapperDescr_Type)
    interpreter.refuse(ReasonCode::unknown_callable, describe_callable(callee));
  if (Value method = special_method(interpreter, callee, "__call__"))
    return call(interpreter, method, arguments);
  interpreter.refuse(ReasonCode::unknown_callable, describe_callable(callee));
}

}  // namespace

Value call_value(Interpreter& interpreter, const Value& callee, const CallArguments& arguments) {
  interpreter.check_size();
  if (Value both = for_both(interpreter, callee,
                            [&](const Value& one) { return call(interpreter, one, arguments); }))
    return both;
  switch (callee->kind) {
    case ValueKind::known:
      return call_known(interpreter, callee, arguments);
    case ValueKind::method: {
      const auto& method = *as<Method>(callee);
      CallArguments with_self = arguments;
      with_self.positional.insert(with_self.positional.begin(), method.self);
      return call(interpreter, method.function, with_self);
    }
    case ValueKind::instance:
      if (is_partial(class_of(callee))) return call_partial(interpreter, callee, arguments);
      if (Value method = special_method(interpreter, callee, "__call__"))
        return call(interpreter, method, arguments);
      break;
    case ValueKind::closure:
      return call_closure(interpreter, *as<Closure>(callee), arguments);
    case ValueKind::native:
      return as<Native>(callee)->function(interpreter, arguments);
    case ValueKind::context: {
      auto context = shared_as<ContextManager>(callee);
      if (!context->decorates || arguments.positional.size() != 1) break;
      Value function = arguments.positional[0];
      return std::make_shared<Native>(
          describe_callable(function),
          [context, function](Interpreter& inner, const CallArguments& inner_arguments) {
            const Awaiting nothing(inner, Awaiting::What::nothing);
            context->enter(inner);
            Value result = call(inner, function, inner_arguments);
            context->exit(inner);
            return result;
          });
    }
    default:
      break;
  }
  interpreter.refuse(ReasonCode::unknown_callable, describe_callable(callee));
}

}  // namespace janus::frontend
