// Runs `__init__` of the program's classes on an object that is kept as its attributes, and does
// what classes of Python's library do in its place.
#include "frontend/objects/instances.h"

#include <algorithm>

#include "frontend/core/class_entry.h"
#include "frontend/core/class_of.h"
#include "frontend/core/describe_callable.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/flags.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attribute_lookup.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/entry_containers.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/operands.h"
#include "python/classes.h"
#include "python/version.h"

namespace janus::frontend {

using python::Object;
using syntax::CompareOperator;

namespace {

PyObject* of_object(const char* name) {
  return PyDict_GetItemString(python::class_dict(&PyBaseObject_Type), name);
}

/// Whether an object of the class is its attributes, and what it holds if it is a dict or list, and
/// nothing else: no other base written in C, no destructor.
bool is_plain_class(Interpreter& interpreter, PyTypeObject* type) {
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 || Py_TYPE(type)->tp_call != PyType_Type.tp_call)
    return false;
  assume_entries(interpreter, Py_TYPE(type), {"__call__"});
  if ((type->tp_flags & Py_TPFLAGS_IS_ABSTRACT) != 0 || type->tp_itemsize != 0) return false;
  const PyTypeObject* const base = python::class_in_c(type);
  if (base != &PyBaseObject_Type && base != &PyDict_Type && base != &PyList_Type &&
      base != ordered_dict_type())
    return false;
  return class_entry(interpreter, type, "__del__") == nullptr;
}

/// An object of a plain class, without attributes, items and elements.
std::shared_ptr<Instance> bare_instance(PyTypeObject* type) {
  auto made = std::make_shared<Instance>(Object::borrow(reinterpret_cast<PyObject*>(type)));
  PyTypeObject* const base = python::class_in_c(type);
  if (base == &PyList_Type) made->elements = std::make_shared<Sequence>(true);
  if (base == &PyDict_Type) made->items = made_dict({});
  if (base == ordered_dict_type())
    made->items = made_dict(Object::borrow(reinterpret_cast<PyObject*>(base)));
  return made;
}

// --- dataclasses --------------------------------------------------------------------------------

/// Whether @dataclass wrote the method: comparisons have no source, but are known.
bool is_written_by_dataclass(PyTypeObject* type, PyObject* function, const char* name) {
  if (PyDict_GetItemString(python::class_dict(type), "__dataclass_params__") == nullptr ||
      !PyFunction_Check(function) ||
      PyDict_GetItemString(python::class_dict(type), name) != function)
    return false;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GetCode(function));
  return text_of(code->co_filename) == "<string>";
}

/// What `type.__call__` does after `__new__`; false if that can't be followed.
bool initialise(Interpreter& interpreter, const std::shared_ptr<Instance>& instance,
                const CallArguments& arguments, bool has_written_constructor) {
  PyTypeObject* const type = class_of(instance);
  PyObject* const initialiser = class_entry(interpreter, type, "__init__");
  if (!instance->is_attributes() && is_of_class_in_c(type, initialiser, "__init__")) {
    call(interpreter, special_method(interpreter, instance, "__init__"), arguments);
    return true;
  }
  if (initialiser == of_object("__init__")) {
    const bool has_arguments = !arguments.positional.empty() || !arguments.keywords.empty();
    if (has_arguments && !has_written_constructor)
      interpreter.refuse(ReasonCode::would_raise, "TypeError: a class that takes no arguments");
    return true;
  }
  if (!PyFunction_Check(initialiser)) return false;
  Value result = call(interpreter, special_method(interpreter, instance, "__init__"), arguments);
  const auto* none = as<Known>(result);
  if (none == nullptr || !none->object.is(Py_None))
    interpreter.refuse(ReasonCode::would_raise, "TypeError: __init__() should return None");
  return true;
}

/// Calls a class whose `__new__` is a function of the program.
Value make_by_constructor(Interpreter& interpreter, const Known& type, PyObject* constructor,
                          const CallArguments& arguments) {
  const Value made = call_constructor(interpreter, type, constructor, arguments);
  PyTypeObject* const of = class_of(made);
  if (of != nullptr &&
      PyType_IsSubtype(of, reinterpret_cast<PyTypeObject*>(type.object.get())) == 0)
    return made;
  // One that existed before the call would be initialised anew.
  const auto instance = shared_as<Instance>(made);
  if (instance == nullptr || !initialise(interpreter, instance, arguments, true))
    interpreter.refuse(ReasonCode::unknown_callable,
                       describe_callable(interpreter.constant(type.object)));
  return made;
}

}  // namespace

Value call_constructor(Interpreter& interpreter, const Known& type, PyObject* constructor,
                       const CallArguments& arguments) {
  const Source* owner = interpreter.sources().root(Source::Kind::constant, type.object);
  const Source* path = interpreter.sources().step(
      Source::Kind::type_attribute, owner, Object::steal(PyUnicode_InternFromString("__new__")));
  const Value function = attribute(
      interpreter, std::make_shared<Known>(Object::borrow(constructor), path), "__func__");
  CallArguments all = arguments;
  all.positional.insert(all.positional.begin(), interpreter.constant(type.object));
  return call(interpreter, function, all);
}

Value make_instance(Interpreter& interpreter, const Known& type, const CallArguments& arguments) {
  auto* object = reinterpret_cast<PyTypeObject*>(type.object.get());
  if (!is_plain_class(interpreter, object)) return nullptr;
  PyObject* const constructor = class_entry(interpreter, object, "__new__");
  if (Py_IS_TYPE(constructor, &PyStaticMethod_Type))
    return make_by_constructor(interpreter, type, constructor, arguments);
  if (!is_of_class_in_c(object, constructor, "__new__")) return nullptr;
  const std::shared_ptr<Instance> instance = bare_instance(object);
  return initialise(interpreter, instance, arguments, false) ? instance : nullptr;
}

namespace {

Value make_bare(Interpreter& interpreter, const CallArguments& arguments, PyTypeObject* maker) {
  // Only list's own ignores what else it is given.
  const bool takes_more = maker == &PyList_Type;
  if (arguments.positional.empty() ||
      (!takes_more && (arguments.positional.size() != 1 || !arguments.keywords.empty())))
    return nullptr;
  PyObject* const known = known_object(arguments.positional[0]);
  if (known == nullptr || !PyType_Check(known)) return nullptr;
  auto* const type = reinterpret_cast<PyTypeObject*>(known);
  // Python makes no object by a method of another class than the one that its class is derived
  // from.
  if (python::class_in_c(type)->tp_new != maker->tp_new) return nullptr;
  interpreter.assume_identity(*as<Known>(arguments.positional[0]));
  return is_plain_class(interpreter, type) ? bare_instance(type) : nullptr;
}

}  // namespace

Value call_object_new(Interpreter& interpreter, const CallArguments& arguments) {
  return make_bare(interpreter, arguments, &PyBaseObject_Type);
}

Value call_dict_new(Interpreter& interpreter, const CallArguments& arguments) {
  return make_bare(interpreter, arguments, &PyDict_Type);
}

Value call_list_new(Interpreter& interpreter, const CallArguments& arguments) {
  return make_bare(interpreter, arguments, &PyList_Type);
}

Value make_namespace(Interpreter& interpreter, const CallArguments& arguments) {
  if (!arguments.positional.empty()) return nullptr;
  auto instance = std::make_shared<Instance>(Object::borrow(imported("types.SimpleNamespace")));
  for (const auto& [name, value] : arguments.keywords)
    write_own_attribute(interpreter, instance, name, value);
  return instance;
}

namespace {

/// The result of the object's comparison method; null: NotImplemented.
Value by_method(Interpreter& interpreter, CompareOperator op, const Value& left,
                const Value& right) {
  CallArguments arguments;
  arguments.positional = {right};
  Value result =
      call(interpreter, special_method(interpreter, left, comparison_method(op)), arguments);
  const auto* known = as<Known>(result);
  return known != nullptr && known->object.is(Py_NotImplemented) ? nullptr : result;
}

/// Objects of one dataclass compare as tuples of their fields.
Value by_fields(Interpreter& interpreter, CompareOperator op, const Value& left,
                const Value& right) {
  PyTypeObject* const type = class_of(left);
  if (class_of(right) != type) return nullptr;
  const auto attribute_of = [&](PyObject* object, const char* name) {
    return interpreter.must(PyObject_GetAttrString(object, name));
  };
  const Object fields = attribute_of(reinterpret_cast<PyObject*>(type), "__dataclass_fields__");
  const Object list = interpreter.must(PyMapping_Values(fields.get()));
  std::vector<Value> first, second;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    PyObject* const field = PyList_GET_ITEM(list.get(), i);
    if (!attribute_of(field, "_field_type").is(imported("dataclasses._FIELD")) ||
        !attribute_of(field, "compare").is(Py_True))
      continue;
    const std::string name = text_of(attribute_of(field, "name").get());
    first.push_back(attribute(interpreter, left, name));
    second.push_back(attribute(interpreter, right, name));
  }
  return compare(interpreter, op, make_tuple(std::move(first)), make_tuple(std::move(second)));
}

/// Whether the comparison of a number or text with the value reads nothing but its contents, or
/// nothing at all.
bool is_known_content(const Value& value) {
  if (as<Known>(value) != nullptr) return true;
  const PyTypeObject* const type = class_of(value);
  return type != nullptr && as<Number>(value) == nullptr && type != &PyUnicode_Type;
}

/// By the method that the class of the left object has of a number's or a text's class.
Value by_contents(Interpreter& interpreter, PyObject* method, const Value& left,
                  const Value& right) {
  if (as<Known>(left) == nullptr || !is_known_content(right))
    interpreter.refuse(ReasonCode::expression, "the comparison of objects");
  // Numbers and texts say nothing of containers and of objects that the run makes.
  if (as<Known>(right) == nullptr) return nullptr;
  interpreter.assume_identity(*as<Known>(left));
  interpreter.assume_identity(*as<Known>(right));
  const Object result = interpreter.must(
      PyObject_CallFunctionObjArgs(method, known_object(left), known_object(right), nullptr));
  return result.is(Py_NotImplemented) ? nullptr : interpreter.constant(result);
}

/// Whether the class compares its objects, which are lists, by what they hold.
bool compares_as_list(Interpreter& interpreter, PyTypeObject* type, CompareOperator op) {
  const char* name = comparison_method(op);
  return is_list_class(type) && is_of_class_in_c(type, class_entry(interpreter, type, name), name);
}

/// Whether the class, one of Python's own, compares its objects with those of other classes: bytes
/// in all that holds bytes, keys and items with sets, a proxy as what it stands for.
bool looks_at_others(const PyTypeObject* type) {
  const std::initializer_list<const PyTypeObject*> classes = {
      &PyByteArray_Type, &PyMemoryView_Type, &PyDictKeys_Type, &PyDictItems_Type,
      &PyODictKeys_Type, &PyODictItems_Type, &PyDictProxy_Type};
  return std::ranges::find(classes, type) != classes.end();
}

bool is_none_or_number(const PyTypeObject* type) {
  return type == Py_TYPE(Py_None) || type == &PyLong_Type || type == &PyFloat_Type ||
         type == &PyBool_Type;
}

/// Whether the class, one of C's, may say something of objects of the other: Python's own classes
/// do so of their own objects (slices), an array of any.
bool compares_with(const PyTypeObject* type, const PyTypeObject* other) {
  const bool is_pythons = std::string_view(type->tp_name).find('.') == std::string_view::npos;
  if (is_pythons && looks_at_others(type)) return !is_none_or_number(other);
  return (!is_pythons || type == other) && type->tp_richcompare != PyBaseObject_Type.tp_richcompare;
}

/// The result by the class of the left object; null: it can't compare itself with the right one.
Value compare_by_left(Interpreter& interpreter, CompareOperator op, const Value& left,
                      const Value& right) {
  PyTypeObject* const type = class_of(left);
  const bool is_object = as<Instance>(left) != nullptr || as<Known>(left) != nullptr;
  if (type == nullptr || as<Tensor>(left) != nullptr)
    interpreter.refuse(ReasonCode::expression, "the comparison of objects");
  if (compares_as_list(interpreter, type, op)) {
    const Value other = list_contents(interpreter, right);
    return other == nullptr ? nullptr
                            : compare(interpreter, op, list_contents(interpreter, left), other);
  }
  // A number, text or container says nothing of objects of other classes.
  if (!is_object) return nullptr;
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) {
    if (compares_with(type, class_of(right)))
      interpreter.refuse(ReasonCode::expression, "the comparison of objects");
    return nullptr;
  }
  const char* name = comparison_method(op);
  PyObject* const method = class_entry(interpreter, type, name);
  if (method != nullptr && PyFunction_Check(method))
    return is_written_by_dataclass(type, method, name) ? by_fields(interpreter, op, left, right)
                                                       : by_method(interpreter, op, left, right);
  if (method != nullptr && is_method_of_contents(method))
    return by_contents(interpreter, method, left, right);
  if (method != of_object(name))
    interpreter.refuse(ReasonCode::expression, "the comparison of objects");
  if (op != CompareOperator::NotEq) return nullptr;
  const Value same = compare_by_left(interpreter, CompareOperator::Eq, left, right);
  if (same == nullptr) return nullptr;
  return flag_value(interpreter, negated(interpreter, truth_of(interpreter, same)));
}

}  // namespace

Value compare_instances(Interpreter& interpreter, CompareOperator op, const Value& left,
                        const Value& right) {
  PyTypeObject *const type = class_of(left), *const other = class_of(right);
  const bool right_first =
      type != nullptr && other != nullptr && type != other && PyType_IsSubtype(other, type) != 0;
  for (const bool by_right : {right_first, !right_first}) {
    const Value result = by_right ? compare_by_left(interpreter, reflected(op), right, left)
                                  : compare_by_left(interpreter, op, left, right);
    if (result != nullptr) return result;
  }
  if (op != CompareOperator::Eq && op != CompareOperator::NotEq)
    raise(interpreter, PyExc_TypeError, "TypeError: objects that have no order");
  return interpreter.boolean(identical(interpreter, left, right) == (op == CompareOperator::Eq));
}

Value make_exception(Interpreter& interpreter, const Known& known, const CallArguments& arguments) {
  auto* type = reinterpret_cast<PyTypeObject*>(known.object.get());
  if (type->tp_new != reinterpret_cast<PyTypeObject*>(PyExc_BaseException)->tp_new) return nullptr;
  assume_entries(interpreter, type, {"__new__"});
  auto exception = std::make_shared<Instance>(known.object);
  set_exception_arguments(*exception, make_tuple(arguments.positional));
  if (const Value initialiser = written_method(interpreter, exception, "__init__"))
    call(interpreter, initialiser, arguments);
  else if (!arguments.keywords.empty())
    return nullptr;
  return exception;
}

}  // namespace janus::frontend
