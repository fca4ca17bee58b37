#include "frontend/instances.h"

#include "frontend/attributes.h"
#include "frontend/callables.h"
#include "frontend/calls.h"
#include "frontend/containers.h"
#include "frontend/operators.h"

namespace janus::frontend {

using python::Object;
using syntax::CompareOperator;

namespace {

/// What the class has under the name: assumed to stay.
PyObject* class_entry(Interpreter& interpreter, PyTypeObject* type, const char* name) {
  Object key = Object::steal(PyUnicode_InternFromString(name));
  PyObject* found = _PyType_Lookup(type, key.get());
  const Source* owner = interpreter.sources().root(
      Source::Kind::constant, Object::borrow(reinterpret_cast<PyObject*>(type)));
  if (found != nullptr)
    interpreter.assume(Assumption::Kind::identity,
                       interpreter.sources().step(Source::Kind::type_attribute, owner, key),
                       Object::borrow(found));
  else
    interpreter.assume(Assumption::Kind::missing_attribute, owner, key);
  return found;
}

PyObject* of_object(const char* name) {
  return PyDict_GetItemString(PyBaseObject_Type.tp_dict, name);
}

/// Whether an object of the class is its attributes and nothing else: no base written in C, no
/// destructor, no say in how its objects are made.
bool is_plain_class(Interpreter& interpreter, PyTypeObject* type) {
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 || Py_TYPE(type)->tp_call != PyType_Type.tp_call)
    return false;
  if ((type->tp_flags & Py_TPFLAGS_IS_ABSTRACT) != 0 || type->tp_itemsize != 0) return false;
  for (PyTypeObject* base = type; base != &PyBaseObject_Type; base = base->tp_base)
    if ((base->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return false;
  if (type->tp_new != PyBaseObject_Type.tp_new) return false;
  return class_entry(interpreter, type, "__new__") == of_object("__new__") &&
         class_entry(interpreter, type, "__del__") == nullptr;
}

// --- dataclasses --------------------------------------------------------------------------------

/// The `__init__` that @dataclass writes has no source, but is known.
bool is_dataclass_init(PyTypeObject* type, PyObject* function) {
  PyObject* parameters = PyDict_GetItemString(type->tp_dict, "__dataclass_params__");
  if (parameters == nullptr || !PyFunction_Check(function) ||
      PyDict_GetItemString(type->tp_dict, "__init__") != function)
    return false;
  Object init = Object::steal(PyObject_GetAttrString(parameters, "init"));
  Object slots = Object::steal(PyObject_GetAttrString(parameters, "frozen"));
  PyErr_Clear();
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GetCode(function));
  return init.is(Py_True) && text_of(code->co_filename) == "<string>";
}

class DataclassInit {
 public:
  DataclassInit(Interpreter& interpreter, const std::shared_ptr<Instance>& instance,
                const CallArguments& arguments)
      : interpreter_(interpreter), instance_(instance), arguments_(arguments) {}

  void run() {
    Object fields = attribute_of(instance_->type.get(), "__dataclass_fields__");
    Object list = interpreter_.must(PyMapping_Values(fields.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
      set_field(PyList_GET_ITEM(list.get(), i));
    if (next_ != arguments_.positional.size() || keywords_ != arguments_.keywords.size())
      interpreter_.refuse(ReasonCode::would_raise, "TypeError: arguments of a dataclass");
    if (class_entry(interpreter_, class_of(instance_), "__post_init__") != nullptr)
      call(interpreter_, attribute(interpreter_, instance_, "__post_init__"), {});
  }

 private:
  Object attribute_of(PyObject* object, const char* name) const {
    return interpreter_.must(PyObject_GetAttrString(object, name));
  }

  void set_field(PyObject* field) {
    static PyObject* const plain = imported("dataclasses._FIELD");
    std::string name = text_of(attribute_of(field, "name").get());
    Object kind = attribute_of(field, "_field_type");
    if (kind.is(imported("dataclasses._FIELD_CLASSVAR"))) return;
    if (!kind.is(plain)) interpreter_.refuse(ReasonCode::unknown_callable, "a dataclass");
    Value value;
    if (attribute_of(field, "init").is(Py_True)) value = argument(field, name);
    if (value == nullptr) value = default_of(field);
    if (value == nullptr) {
      if (attribute_of(field, "init").is(Py_True))
        interpreter_.refuse(ReasonCode::would_raise, "TypeError: a field without a value");
      return;
    }
    write_own_attribute(interpreter_, instance_, name, value);
  }

  Value argument(PyObject* field, const std::string& name) {
    bool keyword_only = attribute_of(field, "kw_only").is(Py_True);
    const Value* named = arguments_.keyword(name);
    if (!keyword_only && next_ < arguments_.positional.size()) {
      if (named != nullptr)
        interpreter_.refuse(ReasonCode::would_raise, "TypeError: a field is given twice");
      return arguments_.positional[next_++];
    }
    if (named == nullptr) return nullptr;
    ++keywords_;
    return *named;
  }

  Value default_of(PyObject* field) {
    static PyObject* const missing = imported("dataclasses.MISSING");
    Object factory = attribute_of(field, "default_factory");
    if (!factory.is(missing)) return call(interpreter_, known(factory), {});
    Object value = attribute_of(field, "default");
    return value.is(missing) ? nullptr : known(value);
  }

  Value known(const Object& object) {
    return interpreter_.wrap(object.get(),
                             interpreter_.sources().root(Source::Kind::constant, object));
  }

  Interpreter& interpreter_;
  const std::shared_ptr<Instance> instance_;
  const CallArguments& arguments_;
  size_t next_ = 0, keywords_ = 0;
};

}  // namespace

bool is_enumeration(PyTypeObject* type) {
  static PyObject* const metaclass = imported("enum.EnumMeta");
  const int found = PyObject_IsInstance(reinterpret_cast<PyObject*>(type), metaclass);
  PyErr_Clear();
  return found == 1;
}

Value make_instance(Interpreter& interpreter, const Known& type, const CallArguments& arguments) {
  auto* object = reinterpret_cast<PyTypeObject*>(type.object.get());
  if (!is_plain_class(interpreter, object)) return nullptr;
  auto instance = std::make_shared<Instance>(type.object);
  PyObject* initialiser = class_entry(interpreter, object, "__init__");
  if (initialiser == of_object("__init__")) {
    if (!arguments.positional.empty() || !arguments.keywords.empty())
      interpreter.refuse(ReasonCode::would_raise, "TypeError: a class that takes no arguments");
    return instance;
  }
  if (is_dataclass_init(object, initialiser)) {
    DataclassInit(interpreter, instance, arguments).run();
    return instance;
  }
  if (!PyFunction_Check(initialiser)) return nullptr;
  Value result = call(interpreter, special_method(interpreter, instance, "__init__"), arguments);
  const auto* none = as<Known>(result);
  if (none == nullptr || !none->object.is(Py_None))
    interpreter.refuse(ReasonCode::would_raise, "TypeError: __init__() should return None");
  return instance;
}

Value make_namespace(Interpreter& interpreter, const CallArguments& arguments) {
  if (!arguments.positional.empty()) return nullptr;
  auto instance = std::make_shared<Instance>(Object::borrow(imported("types.SimpleNamespace")));
  for (const auto& [name, value] : arguments.keywords)
    write_own_attribute(interpreter, instance, name, value);
  return instance;
}

Value compare_instances(Interpreter& interpreter, CompareOperator op, const Value& left,
                        const Value& right) {
  const char* name = comparison_method(op);
  bool equality = op == CompareOperator::Eq || op == CompareOperator::NotEq;
  auto compares_by_identity = [&](const Value& side) {
    PyTypeObject* type = class_of(side);
    if (type == nullptr) return false;
    if (as<Instance>(side) == nullptr)
      return as<Known>(side) && as<Known>(side)->object.is(Py_None);
    return class_entry(interpreter, type, "__eq__") == of_object("__eq__") &&
           class_entry(interpreter, type, "__ne__") == of_object("__ne__");
  };
  if (equality && compares_by_identity(left) && compares_by_identity(right))
    return interpreter.boolean((left == right) == (op == CompareOperator::Eq));
  if (as<Instance>(left) != nullptr) {
    PyObject* method = class_entry(interpreter, class_of(left), name);
    if (method != nullptr && PyFunction_Check(method)) {
      CallArguments arguments;
      arguments.positional = {right};
      Value result = call(interpreter, special_method(interpreter, left, name), arguments);
      const auto* known = as<Known>(result);
      if (known == nullptr || !known->object.is(Py_NotImplemented)) return result;
    }
  }
  interpreter.refuse(ReasonCode::expression, "the comparison of objects");
}

}  // namespace janus::frontend
