// The first way of making an object that fits the class is taken.
#include "frontend/language/class_calls.h"

#include "frontend/core/class_entry.h"
#include "frontend/core/describe_callable.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/instances.h"
#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;

namespace {

/// Whether the class makes its objects as namedtuple's own `__new__` does, from the fields as they
/// are given.
bool is_namedtuple(PyTypeObject* type) {
  if (tuple_fields(type) == nullptr) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    PyObject* constructor = PyDict_GetItemString(base->tp_dict, "__new__");
    if (constructor == nullptr) continue;
    return base->tp_base == &PyTuple_Type &&
           PyDict_GetItemString(base->tp_dict, "_make") != nullptr &&
           (PyFunction_Check(constructor) || Py_TYPE(constructor) == &PyStaticMethod_Type);
  }
  return false;
}

/// The default of a named tuple's field.
Value field_default(Interpreter& interpreter, const Known& type, Py_ssize_t index) {
  const Object constructor = interpreter.must(PyObject_GetAttrString(type.object.get(), "__new__"));
  PyObject* fields = tuple_fields(reinterpret_cast<PyTypeObject*>(type.object.get()));
  PyObject* defaults =
      PyFunction_Check(constructor.get()) ? PyFunction_GetDefaults(constructor.get()) : nullptr;
  const Py_ssize_t count = defaults == nullptr ? 0 : PyTuple_GET_SIZE(defaults);
  const Py_ssize_t at = index - (PyTuple_GET_SIZE(fields) - count);
  if (at < 0)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: a field of a named tuple is missing");
  const Object value = Object::borrow(PyTuple_GET_ITEM(defaults, at));
  return interpreter.wrap(value.get(), interpreter.sources().root(Source::Kind::constant, value));
}

Value make_namedtuple(Interpreter& interpreter, const Known& known,
                      const CallArguments& arguments) {
  PyObject* fields = tuple_fields(reinterpret_cast<PyTypeObject*>(known.object.get()));
  auto result = std::make_shared<Sequence>(false);
  result->type = known.object;
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(fields));
  result->elements = arguments.positional;
  size_t defaults = 0;
  for (size_t i = result->elements.size(); i < count; ++i) {
    const Value* value =
        arguments.keyword(text_of(PyTuple_GET_ITEM(fields, static_cast<Py_ssize_t>(i))));
    const Value otherwise =
        value != nullptr ? nullptr : field_default(interpreter, known, static_cast<Py_ssize_t>(i));
    result->elements.push_back(value != nullptr ? *value : otherwise);
    defaults += value == nullptr;
  }
  if (result->elements.size() != count ||
      arguments.positional.size() + arguments.keywords.size() + defaults != count)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: arguments of a named tuple");
  return result;
}

/// Enumeration(value): the member, which exists before the call.
Value member_of(Interpreter& interpreter, const Known& known, const CallArguments& arguments) {
  if (arguments.positional.size() != 1 || !arguments.keywords.empty() ||
      as<Known>(arguments.positional[0]) == nullptr)
    return nullptr;
  interpreter.assume_identity(known);
  Object members =
      interpreter.must(PyObject_GetAttrString(known.object.get(), "_value2member_map_"));
  const Object value = folded(interpreter, arguments.positional[0]);
  const Object member = python::dict_item(members.get(), value.get());
  if (!member) return nullptr;
  return interpreter.wrap(member.get(), interpreter.sources().root(Source::Kind::constant, member));
}

/// What a metaclass with a `__call__` of its own gives, as that of a TypedDict; null: it has none.
Value call_by_metaclass(Interpreter& interpreter, const Known& known,
                        const CallArguments& arguments) {
  auto* const metaclass = Py_TYPE(known.object.get());
  PyObject* const own = class_entry(interpreter, metaclass, "__call__");
  if (own == nullptr || (!PyType_Check(own) && !PyFunction_Check(own))) return nullptr;
  const auto self = std::make_shared<Known>(known.object, known.source);
  return call(interpreter, bound_class_attribute(interpreter, self, metaclass, "__call__"),
              arguments);
}

}  // namespace

Value call_class(Interpreter& interpreter, const Known& known, const CallArguments& arguments) {
  if (is_enumeration(reinterpret_cast<PyTypeObject*>(known.object.get())))
    if (Value member = member_of(interpreter, known, arguments)) return member;
  auto* type = reinterpret_cast<PyTypeObject*>(known.object.get());
  if (is_namedtuple(type)) return make_namedtuple(interpreter, known, arguments);
  if (PyExceptionClass_Check(known.object.get()))
    if (Value made = make_exception(interpreter, known, arguments)) return made;
  if (is_torch_constant_class(type)) {
    Object positional = interpreter.must(PyTuple_New(Py_ssize_t(arguments.positional.size())));
    for (size_t i = 0; i < arguments.positional.size(); ++i)
      PyTuple_SET_ITEM(positional.get(), Py_ssize_t(i),
                       folded(interpreter, arguments.positional[i]).release());
    if (arguments.keywords.empty())
      return interpreter.constant(
          interpreter.must(PyObject_Call(known.object.get(), positional.get(), nullptr)));
  }
  if (Value made = make_instance(interpreter, known, arguments)) return made;
  if (Value made = call_by_metaclass(interpreter, known, arguments)) return made;
  interpreter.refuse(ReasonCode::unknown_callable,
                     describe_callable(interpreter.constant(known.object)));
}

}  // namespace janus::frontend
