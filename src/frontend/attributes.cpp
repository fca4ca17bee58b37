// Attribute look-up on known objects follows Python's own order: data descriptors of the type, the
// instance's dictionary, other descriptors and class attributes, then `__getattr__`. Each step is
// assumed to go the same way at each later entry.
#include "frontend/attributes.h"

#include <structmember.h>

#include "frontend/callables.h"
#include "frontend/calls.h"
#include "frontend/containers.h"
#include "frontend/optional.h"
#include "frontend/tensor.h"

namespace janus::frontend {

using python::Object;

namespace {

Object name_object(Interpreter& interpreter, const std::string& name) {
  Object text = interpreter.must(
      PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  PyObject* interned = text.release();
  PyUnicode_InternInPlace(&interned);
  return Object::steal(interned);
}

/// The path under which parts of the object are reached.
const Source* path_of(Interpreter& interpreter, const Known& known) {
  if (known.source != nullptr) return known.source;
  return interpreter.sources().root(Source::Kind::constant, known.object);
}

bool is_heap_type(PyTypeObject* type) { return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0; }

Value wrap_step(Interpreter& interpreter, PyObject* object, const Source* base, Source::Kind kind,
                const Object& key) {
  return interpreter.wrap(object, interpreter.sources().step(kind, base, key));
}

/// What the run has stored where C keeps the attribute: in a module's dictionary or a slot.
const Value* changed_attribute(Interpreter& interpreter, const Known& known, const Object& name) {
  PyObject* object = known.object.get();
  PyObject* table = PyModule_CheckExact(object) ? PyModule_GetDict(object) : object;
  const Source* path = PyModule_CheckExact(object) ? nullptr : known.source;
  return interpreter.heap.find(interpreter, table, name.get(), path);
}

/// getattr in full generality, for objects of C whose attributes only report.
Value plain_attribute(Interpreter& interpreter, const Known& known, const Object& name) {
  if (const Value* changed = changed_attribute(interpreter, known, name)) return *changed;
  Object value = Object::steal(PyObject_GetAttr(known.object.get(), name.get()));
  if (!value) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) interpreter.refuse_raised();
    PyErr_Clear();
    return nullptr;
  }
  if (known.source == nullptr && is_immutable_constant(known.object.get()))
    return interpreter.constant(value);
  return wrap_step(interpreter, value.get(), path_of(interpreter, known), Source::Kind::attribute,
                   name);
}

/// One attribute of an object: what reading and writing it have in common.
class NamedAttribute {
 protected:
  NamedAttribute(Interpreter& interpreter, const Value& self, std::string name)
      : interpreter_(interpreter),
        self_(self),
        instance_(as<Instance>(self)),
        known_(instance_ == nullptr ? *as<Known>(self) : no_object_),
        object_(known_.object.get()),
        type_(class_of(self)),
        text_(std::move(name)),
        name_(name_object(interpreter, text_)) {}
  /// Of any object of the class: only what the class says.
  NamedAttribute(Interpreter& interpreter, const Value& self, PyTypeObject* type, std::string name)
      : interpreter_(interpreter),
        self_(self),
        instance_(nullptr),
        known_(no_object_),
        object_(nullptr),
        type_(type),
        text_(std::move(name)),
        name_(name_object(interpreter, text_)) {}

  const Source* path() { return path_of(interpreter_, known_); }
  const Source* type_path() {
    if (instance_ != nullptr)
      return interpreter_.sources().root(Source::Kind::constant, instance_->type);
    if (object_ == nullptr)
      return interpreter_.sources().root(Source::Kind::constant,
                                         Object::borrow(reinterpret_cast<PyObject*>(type_)));
    return interpreter_.sources().step(Source::Kind::type, path());
  }

  Interpreter& interpreter_;
  const Value self_;
  const Known no_object_{Object(), nullptr};
  Instance* instance_;  // made in the run; else `known_` existed before
  const Known& known_;
  PyObject* object_;
  PyTypeObject* type_;
  std::string text_;
  Object name_;
};

/// A function that Cython has compiled, such as the methods of NumPy's random generators.
bool is_compiled_function(PyTypeObject* type) {
  return std::string_view(type->tp_name).ends_with("cython_function_or_method");
}

class Lookup : NamedAttribute {
 public:
  Lookup(Interpreter& interpreter, const Value& self, std::string name)
      : NamedAttribute(interpreter, self, std::move(name)) {}

  Lookup(Interpreter& interpreter, const Value& self, PyTypeObject* type, std::string name)
      : NamedAttribute(interpreter, self, type, std::move(name)) {}

  Value run() {
    if (instance_ != nullptr) {
      if (!has_general_lookup())
        interpreter_.refuse(ReasonCode::expression, cat("attributes of a ", type_->tp_name));
      return instance_attribute();
    }
    if (PyModule_Check(object_)) return plain_attribute(interpreter_, known_, name_);
    if (PyType_Check(object_)) return class_attribute();
    if (!has_general_lookup()) {
      if (is_heap_type(type_))
        interpreter_.refuse(ReasonCode::expression, cat("attributes of a ", type_->tp_name));
      return plain_attribute(interpreter_, known_, name_);
    }
    return instance_attribute();
  }

  /// What the object's own dictionary has; null if nothing.
  Value own_value() { return instance_value(); }

  /// What the type has under the name, as it is: assumed to stay.
  PyObject* descriptor() {
    find_descriptor();
    return descriptor_;
  }

  /// As `descriptor`, for classes whose objects are asked by Python's general rules only.
  PyObject* general_descriptor() {
    if (!has_general_lookup())
      interpreter_.refuse(ReasonCode::expression, cat("attributes of a ", type_->tp_name));
    if (const Value* changed = changed_in(type_); changed != nullptr)
      interpreter_.refuse(ReasonCode::heap_write, cat("the class attribute ", text_));
    return descriptor();
  }

  /// What the type has under the name, bound to self; null if nothing.
  Value special() {
    find_descriptor();
    return descriptor_ == nullptr ? nullptr : bound_descriptor();
  }

 private:
  /// Whether attributes are found by Python's general rules; a class of the program could be given
  /// rules of its own later, so that is an assumption.
  bool has_general_lookup() {
    static PyObject* const general =
        PyDict_GetItemString(PyBaseObject_Type.tp_dict, "__getattribute__");
    Object key = name_object(interpreter_, "__getattribute__");
    PyObject* found = _PyType_Lookup(type_, key.get());
    if (type_->tp_getattro != PyObject_GenericGetAttr && found != general) return false;
    if (is_heap_type(type_))
      interpreter_.assume(
          Assumption::Kind::identity,
          interpreter_.sources().step(Source::Kind::type_attribute, type_path(), key),
          Object::borrow(found));
    return true;
  }

  const Source* descriptor_path() {
    return interpreter_.sources().step(Source::Kind::type_attribute, type_path(), name_);
  }

  void find_descriptor() {
    descriptor_ = Object::borrow(_PyType_Lookup(type_, name_.get())).get();
    if (!is_heap_type(type_)) return;
    if (is_plain_value())  // a class attribute that may vary, read by whoever needs it
      interpreter_.assume(Assumption::Kind::exact_type, descriptor_path(),
                          Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(descriptor_))));
    else if (descriptor_ != nullptr)
      interpreter_.assume(Assumption::Kind::identity, descriptor_path(),
                          Object::borrow(descriptor_));
    else
      interpreter_.assume(Assumption::Kind::missing_attribute, type_path(), name_);
  }

  bool is_plain_value() const {
    return descriptor_ != nullptr &&
           (PyLong_CheckExact(descriptor_) || PyFloat_CheckExact(descriptor_) ||
            PyBool_Check(descriptor_) || PyUnicode_CheckExact(descriptor_) ||
            descriptor_ == Py_None);
  }

  /// What the run has stored under the name in the class or one of its bases.
  const Value* changed_in(PyTypeObject* type) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
      auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
      if (const Value* changed =
              interpreter_.heap.find(interpreter_, base->tp_dict, name_.get(), nullptr)) {
        if (*changed == nullptr)
          interpreter_.refuse(ReasonCode::heap_write, cat("the class attribute ", text_));
        return changed;
      }
      if (PyDict_GetItemWithError(base->tp_dict, name_.get()) != nullptr) return nullptr;
    }
    return nullptr;
  }

  Value instance_attribute() {
    find_descriptor();
    if (descriptor_ != nullptr && Py_TYPE(descriptor_)->tp_descr_set != nullptr)
      return data_descriptor();
    if (Value value = instance_value()) return value;
    if (const Value* changed = changed_in(type_)) return *changed;
    if (descriptor_ != nullptr) return bound_descriptor();
    return fallback();
  }

  Value data_descriptor() {
    if (is_property()) {
      Object key = name_object(interpreter_, "fget");
      Object getter = interpreter_.must(PyObject_GetAttr(descriptor_, key.get()));
      if (getter.is(Py_None))
        interpreter_.refuse(ReasonCode::would_raise, "AttributeError: unreadable attribute");
      Value function =
          wrap_step(interpreter_, getter.get(), descriptor_path(), Source::Kind::attribute, key);
      CallArguments arguments;
      arguments.positional = {self_};
      return call(interpreter_, function, arguments);
    }
    if (instance_ != nullptr && text_ == "__dict__") return instance_->fields;
    if (instance_ != nullptr && Py_TYPE(descriptor_) == &PyMemberDescr_Type)
      return instance_value();
    if (object_ != nullptr && (Py_TYPE(descriptor_) == &PyGetSetDescr_Type ||
                               Py_TYPE(descriptor_) == &PyMemberDescr_Type))
      return plain_attribute(interpreter_, known_, name_);
    if (instance_ == nullptr && PyTuple_Check(object_) &&
        std::string_view(Py_TYPE(descriptor_)->tp_name).ends_with("_tuplegetter"))
      return tuple_field();
    // `name` and `value` of an enumeration's member, which is assumed to be that one.
    static PyObject* const enum_property = imported("enum.property");
    if (instance_ == nullptr &&
        reinterpret_cast<PyObject*>(Py_TYPE(descriptor_)) == enum_property &&
        (text_ == "name" || text_ == "value"))
      return plain_attribute(interpreter_, known_, name_);
    return written_descriptor(descriptor_, descriptor_path(), self_, type_of(interpreter_, self_));
  }

  /// A descriptor whose class is written in Python: what its `__get__` gives.
  Value written_descriptor(PyObject* descriptor, const Source* path, const Value& object,
                           const Value& owner) {
    PyTypeObject* kind = Py_TYPE(descriptor);
    if (!is_heap_type(kind) || !PyFunction_Check(class_descriptor(interpreter_, kind, "__get__")))
      interpreter_.refuse(ReasonCode::expression, cat("the descriptor ", kind->tp_name));
    CallArguments arguments;
    arguments.positional = {object, owner};
    return call(interpreter_,
                special_method(interpreter_, interpreter_.wrap(descriptor, path), "__get__"),
                arguments);
  }

  /// A field of a named tuple.
  Value tuple_field() {
    const Object parts = interpreter_.must(PyObject_CallMethod(descriptor_, "__reduce__", nullptr));
    const Py_ssize_t index =
        PyLong_AsSsize_t(PyTuple_GET_ITEM(PyTuple_GET_ITEM(parts.get(), 1), 0));
    return interpreter_.wrap(PyTuple_GET_ITEM(object_, index),
                             interpreter_.sources().step(Source::Kind::index, path(), {}, index));
  }

  Value instance_value() {
    if (instance_ != nullptr) return field();
    Object dict = own_dictionary(object_);
    if (!dict) return nullptr;
    if (const Value* changed =
            interpreter_.heap.find(interpreter_, dict.get(), name_.get(), path()))
      return *changed;
    PyObject* value = PyDict_GetItemWithError(dict.get(), name_.get());
    if (value != nullptr)
      return wrap_step(interpreter_, value, path(), Source::Kind::instance_value, name_);
    if (PyErr_Occurred() != nullptr) interpreter_.refuse_raised();
    if (known_.source != nullptr) interpreter_.assume(Assumption::Kind::missing_key, path(), name_);
    return nullptr;
  }

  Value field() { return made_item(*instance_->fields); }

  /// What a dict that the run made has under the name.
  Value made_item(const Dictionary& dict) {
    for (const auto& [key, value] : dict.items)
      if (same_key(interpreter_, key.get(), name_.get())) return value;
    return nullptr;
  }

  Value bound_descriptor() {
    PyTypeObject* kind = Py_TYPE(descriptor_);
    if (PyFunction_Check(descriptor_))
      return std::make_shared<Method>(self_, interpreter_.wrap(descriptor_, descriptor_path()));
    if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || is_compiled_function(kind))
      return std::make_shared<Method>(
          self_, std::make_shared<Known>(Object::borrow(descriptor_), descriptor_path()));
    if (kind == &PyClassMethod_Type)
      return std::make_shared<Method>(type_of(interpreter_, self_), wrapped_function());
    if (kind == &PyStaticMethod_Type) return wrapped_function();
    if (kind->tp_descr_get == nullptr || PyType_Check(descriptor_) ||
        PyCFunction_Check(descriptor_))
      return interpreter_.wrap(descriptor_, descriptor_path());
    return data_descriptor();
  }

  /// A property, also of a class derived from it that reads as it does.
  bool is_property() const {
    PyTypeObject* kind = Py_TYPE(descriptor_);
    if (kind == &PyProperty_Type) return true;
    return PyType_IsSubtype(kind, &PyProperty_Type) != 0 &&
           class_descriptor(interpreter_, kind, "__get__") ==
               PyDict_GetItemString(PyProperty_Type.tp_dict, "__get__");
  }

  Value wrapped_function() {
    Object key = name_object(interpreter_, "__func__");
    Object function = interpreter_.must(PyObject_GetAttr(descriptor_, key.get()));
    return wrap_step(interpreter_, function.get(), descriptor_path(), Source::Kind::attribute, key);
  }

  /// The instance's own dictionary entry `key` as a known dict, if it has one.
  Value module_table(const char* key) {
    Lookup table(interpreter_, self_, key);
    return table.instance_value();
  }

  /// nn.Module keeps parameters, buffers and submodules in three dictionaries.
  Value module_part() {
    for (const char* table : {"_parameters", "_buffers", "_modules"}) {
      Value dict = module_table(table);
      if (const auto* made = as<Dictionary>(dict)) {
        if (Value value = made_item(*made)) return value;
        continue;
      }
      const auto* known = as<Known>(dict);
      if (known == nullptr || !PyDict_Check(known->object.get())) continue;
      if (const Value* changed = interpreter_.heap.find(
              interpreter_, known->object.get(), name_.get(), path_of(interpreter_, *known))) {
        if (*changed != nullptr) return *changed;
        continue;
      }
      PyObject* value = PyDict_GetItemWithError(known->object.get(), name_.get());
      if (value != nullptr)
        return wrap_step(interpreter_, value, path_of(interpreter_, *known), Source::Kind::item,
                         name_);
      if (PyErr_Occurred() != nullptr) interpreter_.refuse_raised();
      if (known->source != nullptr)
        interpreter_.assume(Assumption::Kind::missing_key, known->source, name_);
    }
    return nullptr;
  }

  Value fallback() {
    static PyObject* const module_fallback = imported("torch.nn.Module.__getattr__");
    Lookup getattr(interpreter_, self_, "__getattr__");
    getattr.find_descriptor();
    if (getattr.descriptor_ == nullptr) return nullptr;
    if (getattr.descriptor_ == module_fallback) return module_part();
    if (!PyFunction_Check(getattr.descriptor_))
      interpreter_.refuse(ReasonCode::expression, cat("attributes of a ", type_->tp_name));
    CallArguments arguments;
    arguments.positional = {interpreter_.constant(name_)};
    return call(interpreter_, getattr.bound_descriptor(), arguments);
  }

  /// Attributes of a class: its own and inherited ones, bound as the class binds them.
  Value class_attribute() {
    auto* type = reinterpret_cast<PyTypeObject*>(object_);
    if (const Value* changed = changed_in(type)) return *changed;
    PyObject* raw = _PyType_Lookup(type, name_.get());
    PyObject* of_metaclass = _PyType_Lookup(type_, name_.get());
    bool metaclass_first =
        of_metaclass != nullptr && Py_TYPE(of_metaclass)->tp_descr_set != nullptr;
    if (raw == nullptr || metaclass_first) return plain_attribute(interpreter_, known_, name_);
    const Source* found = interpreter_.sources().step(Source::Kind::type_attribute, path(), name_);
    PyTypeObject* kind = Py_TYPE(raw);
    if (kind == &PyClassMethodDescr_Type) {
      // Bound anew each time: dict.fromkeys.
      interpreter_.assume(Assumption::Kind::identity, found, Object::borrow(raw));
      return interpreter_.constant(interpreter_.must(PyObject_GetAttr(object_, name_.get())));
    }
    if (kind == &PyClassMethod_Type || kind == &PyStaticMethod_Type) {
      interpreter_.assume(Assumption::Kind::identity, found, Object::borrow(raw));
      Object key = name_object(interpreter_, "__func__");
      Object function = interpreter_.must(PyObject_GetAttr(raw, key.get()));
      Value wrapped = wrap_step(interpreter_, function.get(), found, Source::Kind::attribute, key);
      if (kind == &PyStaticMethod_Type) return wrapped;
      return std::make_shared<Method>(self_, wrapped);
    }
    if (PyFunction_Check(raw) || kind->tp_descr_get == nullptr || kind == &PyMethodDescr_Type ||
        kind == &PyWrapperDescr_Type)
      return interpreter_.wrap(raw, found);
    if (is_heap_type(kind) && kind->tp_descr_get != PyProperty_Type.tp_descr_get) {
      interpreter_.assume(Assumption::Kind::identity, found, Object::borrow(raw));
      return written_descriptor(raw, found, interpreter_.none(), self_);
    }
    return plain_attribute(interpreter_, known_, name_);
  }

  PyObject* descriptor_ = nullptr;  // kept alive by the type
};

// --- super() ------------------------------------------------------------------------------------

Value super_attribute(Interpreter& interpreter, const Super& super, const std::string& name) {
  const auto* type = as<Known>(super.type);
  PyTypeObject* self_class = class_of(super.self);
  if (type == nullptr || self_class == nullptr)
    interpreter.refuse(ReasonCode::expression, "super()");
  PyObject* mro = self_class->tp_mro;
  Object key = name_object(interpreter, name);
  bool after = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    PyObject* base = PyTuple_GET_ITEM(mro, i);
    if (!after) {
      after = base == type->object.get();
      continue;
    }
    PyObject* dict = reinterpret_cast<PyTypeObject*>(base)->tp_dict;
    PyObject* found = dict == nullptr ? nullptr : PyDict_GetItemWithError(dict, key.get());
    if (found == nullptr) continue;
    // The class objects are assumed by the class of self; what they hold by identity.
    const Source* base_path =
        interpreter.sources().root(Source::Kind::constant, Object::borrow(base));
    const Source* path = interpreter.sources().step(Source::Kind::type_attribute, base_path, key);
    if (PyFunction_Check(found) || Py_TYPE(found) == &PyMethodDescr_Type ||
        Py_TYPE(found) == &PyWrapperDescr_Type) {
      interpreter.assume(Assumption::Kind::identity, path, Object::borrow(found));
      return std::make_shared<Method>(super.self,
                                      std::make_shared<Known>(Object::borrow(found), path));
    }
    interpreter.refuse(ReasonCode::expression, cat("super().", name));
  }
  return nullptr;
}

Value tensor_attribute(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                       const std::string& name) {
  if (Value value = tensor_property(interpreter, tensor, name)) return value;
  Object key = name_object(interpreter, name);
  PyTypeObject* type = tensor->is_parameter ? parameter_class() : tensor_class();
  PyObject* found = _PyType_Lookup(type, key.get());
  if (found == nullptr) return nullptr;
  if (Py_TYPE(found) == &PyMethodDescr_Type || PyFunction_Check(found) ||
      Py_TYPE(found) == &PyWrapperDescr_Type) {
    const Source* owner = interpreter.sources().root(
        Source::Kind::constant, Object::borrow(reinterpret_cast<PyObject*>(type)));
    const Source* path = interpreter.sources().step(Source::Kind::type_attribute, owner, key);
    interpreter.assume(Assumption::Kind::identity, path, Object::borrow(found));
    return std::make_shared<Method>(tensor, std::make_shared<Known>(Object::borrow(found), path));
  }
  interpreter.refuse(ReasonCode::expression, cat("the attribute ", name, " of a tensor"));
}

Value sequence_field(Interpreter& interpreter, const Sequence& sequence, const std::string& name) {
  if (!sequence.type) return nullptr;
  Object fields = Object::steal(PyObject_GetAttrString(sequence.type.get(), "_fields"));
  PyErr_Clear();
  // Result classes of torch.return_types name their fields so.
  if (!fields)
    fields = Object::steal(PyObject_GetAttrString(sequence.type.get(), "__match_args__"));
  PyErr_Clear();
  if (!fields || !PyTuple_Check(fields.get())) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields.get()); ++i)
    if (text_of(PyTuple_GET_ITEM(fields.get(), i)) == name)
      return sequence.elements[static_cast<size_t>(i)];
  return nullptr;
}

/// Methods of a virtual object's class that are written in Python (named tuples have such).
Value class_method(Interpreter& interpreter, const Value& value, const std::string& name) {
  PyTypeObject* type = class_of(value);
  if (type == nullptr) return nullptr;
  Object key = name_object(interpreter, name);
  PyObject* found = _PyType_Lookup(type, key.get());
  if (found == nullptr || !PyFunction_Check(found)) return nullptr;
  const Source* owner = interpreter.sources().root(
      Source::Kind::constant, Object::borrow(reinterpret_cast<PyObject*>(type)));
  return std::make_shared<Method>(
      value, interpreter.wrap(
                 found, interpreter.sources().step(Source::Kind::type_attribute, owner, key)));
}

/// The methods of named tuples that collections.namedtuple writes.
Value named_tuple_method(Interpreter& interpreter, const std::shared_ptr<Sequence>& tuple,
                         const std::string& name) {
  if (!tuple->type || name != "_replace") return nullptr;
  static PyObject* const maker = imported("collections.namedtuple");
  PyObject* method = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(tuple->type.get()),
                                    name_object(interpreter, name).get());
  if (method == nullptr || !PyFunction_Check(method) ||
      PyFunction_GET_GLOBALS(method) != PyFunction_GET_GLOBALS(maker))
    return nullptr;
  return std::make_shared<Native>(
      name, [tuple](Interpreter& inner, const CallArguments& arguments) -> Value {
        if (!arguments.positional.empty())
          inner.refuse(ReasonCode::would_raise, "TypeError: arguments of _replace()");
        Object fields = inner.must(PyObject_GetAttrString(tuple->type.get(), "_fields"));
        auto result = std::make_shared<Sequence>(false);
        result->type = tuple->type;
        size_t replaced = 0;
        for (size_t i = 0; i < tuple->elements.size(); ++i) {
          const Value* given = arguments.keyword(
              text_of(PyTuple_GET_ITEM(fields.get(), static_cast<Py_ssize_t>(i))));
          if (given != nullptr) ++replaced;
          result->elements.push_back(given != nullptr ? *given : tuple->elements[i]);
        }
        if (replaced != arguments.keywords.size())
          inner.refuse(ReasonCode::would_raise, "ValueError: unexpected fields of a named tuple");
        return result;
      });
}

Value virtual_attribute(Interpreter& interpreter, const Value& value, const std::string& name) {
  if (name == "__class__") return type_of(interpreter, value);
  if (auto sequence = shared_as<Sequence>(value)) {
    if (Value field = sequence_field(interpreter, *sequence, name)) return field;
    if (Value method = named_tuple_method(interpreter, sequence, name)) return method;
  }
  const auto* dictionary = as<Dictionary>(value);
  if (dictionary != nullptr && dictionary->attributes != nullptr)
    for (const auto& [key, own] : dictionary->attributes->items)
      if (same_key(interpreter, key.get(), name_object(interpreter, name).get())) return own;
  if (Value method = container_method(interpreter, value, name)) return method;
  if (const auto* closure = as<Closure>(value))
    if (name == "__name__") return interpreter.string(closure->name);
  if (const auto* method = as<Method>(value)) {
    if (name == "__self__") return method->self;
    if (name == "__func__") return method->function;
    if (name == "__name__") return attribute(interpreter, method->function, name);
  }
  if (dictionary != nullptr && dictionary->source != nullptr) {
    const auto real = std::make_shared<Known>(dictionary->object, dictionary->source);
    return Lookup(interpreter, real, name).run();
  }
  if (Value method = class_method(interpreter, value, name)) return method;
  PyTypeObject* type = class_of(value);
  if (type != nullptr) {
    Object key = name_object(interpreter, name);
    if (_PyType_Lookup(type, key.get()) == nullptr) return nullptr;
  }
  interpreter.refuse(ReasonCode::expression, cat("the attribute ", name));
}

/// function.__get__(object, type)
Value function_binder(const Value& function) {
  return std::make_shared<Native>(
      "__get__", [function](Interpreter& interpreter, const CallArguments& arguments) -> Value {
        if (arguments.positional.empty())
          interpreter.refuse(ReasonCode::unsupported_argument, "__get__");
        return std::make_shared<Method>(arguments.positional[0], function);
      });
}

/// Opening a container guards all of it: only for what its twin can do.
bool is_container_method(PyObject* object, const std::string& name) {
  if (!PyList_Check(object) && !PyTuple_Check(object) && !PyDict_Check(object)) return true;
  return PyList_CheckExact(object) || PyTuple_Check(object) || !name.starts_with("__");
}

}  // namespace

Value attribute_or_null(Interpreter& interpreter, const Value& value, const std::string& name) {
  expect_settled(value);
  switch (value->kind) {
    case ValueKind::known: {
      if (name == "__class__") return type_of(interpreter, value);
      if (Value method = container_method(interpreter, value, name)) return method;
      if (name == "__get__" && PyFunction_Check(as<Known>(value)->object.get()))
        return function_binder(value);
      // Containers that may be opened have their methods on the virtual twin.
      if (!is_container_method(as<Known>(value)->object.get(), name))
        return Lookup(interpreter, value, name).run();
      Value twin = opened(interpreter, value);
      if (twin != value)
        if (Value method = container_method(interpreter, twin, name)) return method;
      return Lookup(interpreter, value, name).run();
    }
    case ValueKind::tensor:
      return tensor_attribute(interpreter, shared_as<Tensor>(value), name);
    case ValueKind::instance:
      if (name == "__class__") return type_of(interpreter, value);
      return Lookup(interpreter, value, name).run();
    case ValueKind::super:
      return super_attribute(interpreter, *as<Super>(value), name);
    default:
      return virtual_attribute(interpreter, value, name);
  }
}

Value attribute(Interpreter& interpreter, const Value& value, const std::string& name) {
  Value found = attribute_or_null(interpreter, value, name);
  if (found == nullptr)
    interpreter.refuse(ReasonCode::would_raise, cat("AttributeError: no attribute '", name, "'"));
  return found;
}

namespace {

std::string path_text(const Value& value, const std::string& name) {
  const auto* known = as<Known>(value);
  return (known != nullptr && known->source != nullptr ? known->source->describe()
                                                       : std::string()) +
         "." + name;
}

/// Stores and deletes attributes as the object's class does.
class Store : NamedAttribute {
 public:
  /// A null element: deletes.
  Store(Interpreter& interpreter, const Value& self, const std::string& name, const Value& element)
      : NamedAttribute(interpreter, self, name), element_(element) {}

  void run() {
    if (instance_ == nullptr && PyModule_CheckExact(object_)) return write(Source::Kind::attribute);
    if (instance_ == nullptr && PyType_Check(object_)) return write_class();
    const char* method = element_ != nullptr ? "__setattr__" : "__delattr__";
    PyObject* own = type_setter(method);
    const bool general = own != nullptr && Py_TYPE(own) == &PyWrapperDescr_Type &&
                         type_->tp_setattro == PyObject_GenericSetAttr;  // also classes of C
    if (general || own == PyDict_GetItemString(PyBaseObject_Type.tp_dict, method))
      return run_general();
    if (own == nullptr || !PyFunction_Check(own)) refuse();
    CallArguments arguments;
    arguments.positional = {interpreter_.constant(name_)};
    if (element_ != nullptr) arguments.positional.push_back(element_);
    call(interpreter_, special_method(interpreter_, self_, method), arguments);
  }

  /// object.__setattr__ and object.__delattr__.
  void run_general() {
    if (instance_ == nullptr && (PyModule_Check(object_) || PyType_Check(object_))) refuse();
    PyObject* descriptor = find_descriptor();
    if (descriptor != nullptr && Py_TYPE(descriptor)->tp_descr_set != nullptr)
      return write_through(descriptor);
    if (instance_ != nullptr) return write_field();
    if (!own_dictionary(object_))
      interpreter_.refuse(ReasonCode::would_raise, cat("AttributeError: ", text_));
    if (element_ == nullptr) require_present();
    write(Source::Kind::instance_value);
  }

 private:
  [[noreturn]] void refuse() {
    interpreter_.refuse(ReasonCode::heap_write, path_text(self_, text_));
  }

  void write_field() {
    if (element_ == nullptr) require_present();
    change_item(interpreter_, *instance_->fields, name_, element_);
  }

  PyObject* find_descriptor() {
    Lookup lookup(interpreter_, self_, text_);
    return lookup.descriptor();
  }

  PyObject* type_setter(const char* method) {
    Object key = name_object(interpreter_, method);
    PyObject* found = _PyType_Lookup(type_, key.get());
    if (is_heap_type(type_) && found != nullptr)
      interpreter_.assume(
          Assumption::Kind::identity,
          interpreter_.sources().step(Source::Kind::type_attribute, type_path(), key),
          Object::borrow(found));
    return found;
  }

  void require_present() {
    Lookup lookup(interpreter_, self_, text_);
    if (lookup.own_value() == nullptr)
      interpreter_.refuse(ReasonCode::would_raise, cat("AttributeError: ", text_));
  }

  void write(Source::Kind kind) {
    Heap::Target target = attributes_target(interpreter_, known_);
    if (target.table == nullptr) refuse();
    write_place(interpreter_, target, name_, interpreter_.sources().step(kind, path(), name_),
                element_);
  }

  /// Only plain values of a class are written: methods and descriptors decide how other things go.
  void write_class() {
    auto* type = reinterpret_cast<PyTypeObject*>(object_);
    PyObject* existing = PyDict_GetItemWithError(type->tp_dict, name_.get());
    PyErr_Clear();
    bool plain_class = Py_TYPE(object_) == &PyType_Type && is_heap_type(type);
    bool plain_value = existing != nullptr && Py_TYPE(existing)->tp_descr_get == nullptr &&
                       Py_TYPE(existing)->tp_descr_set == nullptr;
    if (!plain_class || !plain_value || element_ == nullptr || text_.starts_with("__")) refuse();
    PyTypeObject* stored = class_of(element_);
    if (stored == nullptr || stored->tp_descr_get != nullptr) refuse();
    interpreter_.assume_identity(known_);
    write(Source::Kind::type_attribute);
  }

  void write_through(PyObject* descriptor) {
    PyTypeObject* kind = Py_TYPE(descriptor);
    if (kind == &PyProperty_Type) return call_property(descriptor);
    if (kind != &PyMemberDescr_Type || !is_heap_type(type_)) refuse();
    auto* member = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member;
    // A slot of a class written in Python holds any object.
    if (member->type != T_OBJECT_EX || (member->flags & READONLY) != 0) refuse();
    if (element_ == nullptr) attribute(interpreter_, self_, text_);
    if (instance_ != nullptr) return write_field();
    Heap::Target target;
    target.table = object_;
    target.owner = path();
    target.object = known_.object;
    write_place(interpreter_, target, name_,
                interpreter_.sources().step(Source::Kind::attribute, path(), name_), element_);
  }

  void call_property(PyObject* descriptor) {
    const char* part = element_ != nullptr ? "fset" : "fdel";
    Object key = name_object(interpreter_, part);
    Object function = interpreter_.must(PyObject_GetAttr(descriptor, key.get()));
    if (function.is(Py_None))
      interpreter_.refuse(ReasonCode::would_raise, cat("AttributeError: property ", text_));
    const Source* property =
        interpreter_.sources().step(Source::Kind::type_attribute, type_path(), name_);
    Value setter = wrap_step(interpreter_, function.get(), property, Source::Kind::attribute, key);
    CallArguments arguments;
    arguments.positional = {self_};
    if (element_ != nullptr) arguments.positional.push_back(element_);
    call(interpreter_, setter, arguments);
  }

  Value element_;
};

}  // namespace

void write_attribute(Interpreter& interpreter, const Value& value, const std::string& name,
                     const Value& element) {
  if (auto tensor = shared_as<Tensor>(value))
    return write_tensor_property(interpreter, tensor, name, element);
  if (const auto* made = as<Dictionary>(value); made != nullptr && made->attributes != nullptr)
    return change_item(interpreter, *made->attributes, name_object(interpreter, name), element);
  if (as<Known>(value) == nullptr && as<Instance>(value) == nullptr)
    interpreter.refuse(ReasonCode::heap_write, path_text(value, name));
  Store(interpreter, value, name, element).run();
}

void delete_attribute(Interpreter& interpreter, const Value& value, const std::string& name) {
  if (as<Known>(value) == nullptr && as<Instance>(value) == nullptr)
    interpreter.refuse(ReasonCode::heap_write, path_text(value, name));
  Store(interpreter, value, name, nullptr).run();
}

void write_own_attribute(Interpreter& interpreter, const Value& value, const std::string& name,
                         const Value& element) {
  if (as<Known>(value) == nullptr && as<Instance>(value) == nullptr)
    interpreter.refuse(ReasonCode::heap_write, path_text(value, name));
  Store(interpreter, value, name, element).run_general();
}

// --- classes ------------------------------------------------------------------------------------

PyTypeObject* class_of(const Value& value) {
  expect_settled(value);
  switch (value->kind) {
    case ValueKind::known:
      return Py_TYPE(as<Known>(value)->object.get());
    case ValueKind::number:
      switch (as<Number>(value)->type) {
        case graph::Type::Kind::i64:
          return &PyLong_Type;
        case graph::Type::Kind::f64:
          return &PyFloat_Type;
        default:
          return &PyBool_Type;
      }
    case ValueKind::tensor:
      return as<Tensor>(value)->is_parameter ? parameter_class() : tensor_class();
    case ValueKind::sequence: {
      const auto& sequence = *as<Sequence>(value);
      if (sequence.type) return reinterpret_cast<PyTypeObject*>(sequence.type.get());
      if (sequence.viewed)
        return sequence.part == "keys"     ? &PyDictKeys_Type
               : sequence.part == "values" ? &PyDictValues_Type
                                           : &PyDictItems_Type;
      return sequence.is_list ? &PyList_Type : &PyTuple_Type;
    }
    case ValueKind::dictionary: {
      const auto& dictionary = *as<Dictionary>(value);
      return dictionary.type ? reinterpret_cast<PyTypeObject*>(dictionary.type.get())
                             : &PyDict_Type;
    }
    case ValueKind::instance:
      return reinterpret_cast<PyTypeObject*>(as<Instance>(value)->type.get());
    case ValueKind::set:
      return as<SetValue>(value)->is_frozen ? &PyFrozenSet_Type : &PySet_Type;
    case ValueKind::slice:
      return &PySlice_Type;
    case ValueKind::closure:
      return &PyFunction_Type;
    case ValueKind::method:
      return &PyMethod_Type;
    case ValueKind::iterator:
      return as<Iterator>(value)->type;
    case ValueKind::deferred:
      return reinterpret_cast<PyTypeObject*>(as<Deferred>(value)->type.get());
    default:
      return nullptr;
  }
}

Value type_of(Interpreter& interpreter, const Value& value) {
  PyTypeObject* type = class_of(value);
  if (type == nullptr) interpreter.refuse(ReasonCode::expression, "the type of such a value");
  Object object = Object::borrow(reinterpret_cast<PyObject*>(type));
  const Source* source = nullptr;
  // The exact class of what was reached from the entry is assumed already.
  if (const auto* known = as<Known>(value); known != nullptr && known->source != nullptr)
    source = interpreter.sources().step(Source::Kind::type, known->source);
  return std::make_shared<Known>(object, source);
}

PyObject* class_descriptor(Interpreter& interpreter, PyTypeObject* type, const std::string& name) {
  return Lookup(interpreter, nullptr, type, name).general_descriptor();
}

Value bound_class_attribute(Interpreter& interpreter, const Value& self, PyTypeObject* type,
                            const std::string& name) {
  return Lookup(interpreter, self, type, name).special();
}

Value special_method(Interpreter& interpreter, const Value& value, const char* name) {
  if (as<Known>(value) != nullptr || as<Instance>(value) != nullptr)
    return Lookup(interpreter, value, name).special();
  if (as<Tensor>(value) != nullptr)
    return tensor_attribute(interpreter, shared_as<Tensor>(value), name);
  return class_method(interpreter, value, name);
}

}  // namespace janus::frontend
