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
#include "python/version.h"

namespace janus::frontend {

using python::Object;

namespace {

/// Whether the class makes its objects as namedtuple's own `__new__` does, from the fields as they
/// are given.
bool is_namedtuple(PyTypeObject* type) {
  if (tuple_fields(type) == nullptr) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    PyObject* constructor = PyDict_GetItemString(python::class_dict(base), "__new__");
    if (constructor == nullptr) continue;
    return base->tp_base == &PyTuple_Type &&
           PyDict_GetItemString(python::class_dict(base), "_make") != nullptr &&
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

/// Calls a named tuple's class whose `__new__` is a function of the program.
Value make_by_own_constructor(Interpreter& interpreter, const Known& type, PyObject* constructor,
                              const CallArguments& arguments) {
  const Value made = call_constructor(interpreter, type, constructor, arguments);
  const auto* tuple = as<Sequence>(made);
  return tuple != nullptr && tuple->type.is(type.object.get()) ? made : nullptr;
}

/// The `__new__` of such a class; null if it is another class, or is initialised as well.
PyObject* own_constructor(Interpreter& interpreter, PyTypeObject* type) {
  if (tuple_fields(type) == nullptr) return nullptr;
  PyObject* const constructor = class_entry(interpreter, type, "__new__");
  PyObject* const initialiser = class_entry(interpreter, type, "__init__");
  const bool is_plain = Py_IS_TYPE(constructor, &PyStaticMethod_Type) &&
                        Py_IS_TYPE(initialiser, &PyWrapperDescr_Type);
  return is_plain ? constructor : nullptr;
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

Value call_namedtuple_constructor(Interpreter& interpreter, PyObject* function,
                                  const CallArguments& arguments) {
  PyObject* const maker = PyDict_GetItemString(PyFunction_GET_GLOBALS(function), "_tuple_new");
  if (maker == nullptr || arguments.positional.empty()) return nullptr;
  const auto* type = as<Known>(arguments.positional[0]);
  if (type == nullptr || !PyType_Check(type->object.get()) ||
      tuple_fields(reinterpret_cast<PyTypeObject*>(type->object.get())) == nullptr)
    return nullptr;
  static PyObject* const of_tuple = imported("builtins.tuple.__new__");
  if (PyObject_RichCompareBool(maker, of_tuple, Py_EQ) != 1) return nullptr;
  CallArguments given = arguments;
  given.positional.erase(given.positional.begin());
  // The defaults of the fields are those of the function, not of the class.
  PyObject* const fields = tuple_fields(reinterpret_cast<PyTypeObject*>(type->object.get()));
  if (std::ssize(given.positional) + std::ssize(given.keywords) != PyTuple_GET_SIZE(fields))
    return nullptr;
  interpreter.assume_identity(*type);
  return make_namedtuple(interpreter, *type, given);
}

Value call_class(Interpreter& interpreter, const Known& known, const CallArguments& arguments) {
  if (is_enumeration(reinterpret_cast<PyTypeObject*>(known.object.get())))
    if (Value member = member_of(interpreter, known, arguments)) return member;
  auto* type = reinterpret_cast<PyTypeObject*>(known.object.get());
  if (is_namedtuple(type)) return make_namedtuple(interpreter, known, arguments);
  if (PyObject* const constructor = own_constructor(interpreter, type))
    if (Value made = make_by_own_constructor(interpreter, known, constructor, arguments))
      return made;
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
