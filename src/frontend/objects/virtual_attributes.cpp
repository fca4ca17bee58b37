// Names that are not handled here are looked up on the class.
#include "frontend/objects/virtual_attributes.h"

#include "frontend/autograd/tensor_properties.h"
#include "frontend/core/class_of.h"
#include "frontend/core/keys.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attribute_lookup.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_methods.h"
#include "frontend/objects/named_attribute.h"
#include "frontend/values/constants.h"
#include "python/version.h"
#include "speculate/path.h"

namespace janus::frontend {

using python::Object;

namespace {

/// What `super()` gives of the entry that it found, for an object or, where `of_class`, for a
/// class.
Value bound_by_super(Interpreter& interpreter, const Value& self, bool of_class,
                     const std::shared_ptr<Known>& found) {
  PyTypeObject* const kind = Py_TYPE(found->object.get());
  const bool is_function =
      kind == &PyFunction_Type || kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type;
  if (is_function && !of_class) return std::make_shared<Method>(self, found);
  if (is_function || kind == &PyCFunction_Type) return found;
  if (kind == &PyStaticMethod_Type) return attribute(interpreter, found, "__func__");
  if (kind == &PyClassMethod_Type)
    return std::make_shared<Method>(of_class ? self : type_of(interpreter, self),
                                    attribute(interpreter, found, "__func__"));
  if (kind == &PyProperty_Type && !of_class)
    return call(interpreter, attribute(interpreter, found, "fget"),
                {.positional = {self}, .keywords = {}});
  return nullptr;
}

}  // namespace

Value super_attribute(Interpreter& interpreter, const Super& super, const std::string& name) {
  const auto* type = as<Known>(super.type);
  PyTypeObject* self_class = class_of(super.self);
  if (type == nullptr || !PyType_Check(type->object.get()) || self_class == nullptr)
    interpreter.refuse(ReasonCode::expression, "super()");
  // In a method of the class itself, or `__new__`, it is asked for a class.
  auto* const from = reinterpret_cast<PyTypeObject*>(type->object.get());
  auto* const self = reinterpret_cast<PyTypeObject*>(known_object(super.self));
  const bool of_class = self != nullptr && PyType_Check(known_object(super.self)) &&
                        PyType_IsSubtype(self, from) != 0;
  if (of_class) interpreter.assume_identity(*as<Known>(super.self));
  PyObject* mro = of_class ? self->tp_mro : self_class->tp_mro;
  Object key = name_object(interpreter, name);
  bool after = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    PyObject* base = PyTuple_GET_ITEM(mro, i);
    if (!after) {
      after = base == type->object.get();
      continue;
    }
    PyObject* dict = python::class_dict(reinterpret_cast<PyTypeObject*>(base));
    PyObject* found = dict == nullptr ? nullptr : PyDict_GetItemWithError(dict, key.get());
    if (found == nullptr) continue;
    // The class objects are assumed by the class of self; what they hold by identity.
    const Source* base_path =
        interpreter.sources().root(Source::Kind::constant, Object::borrow(base));
    const Source* path = interpreter.sources().step(Source::Kind::type_attribute, base_path, key);
    interpreter.assume(Assumption::Kind::identity, path, Object::borrow(found));
    const auto entry = std::make_shared<Known>(Object::borrow(found), path);
    if (Value value = bound_by_super(interpreter, super.self, of_class, entry)) return value;
    interpreter.refuse(ReasonCode::expression, cat("super().", name));
  }
  return nullptr;
}

namespace {

/// What a tensor that existed before the call has in its own dictionary; null if nothing, which is
/// assumed to stay so.
Value own_tensor_attribute(Interpreter& interpreter, const Tensor& tensor, const Object& name) {
  if (tensor.source == nullptr || !tensor.object) return nullptr;
  if (PyObject* dict = speculate::instance_dict(tensor.object.get())) {
    if (const Held changed = interpreter.heap.find(interpreter, dict, name.get(), tensor.source);
        !changed.is_unknown())
      return changed.value_or_null();
    PyObject* value = PyDict_GetItemWithError(dict, name.get());
    if (value != nullptr)
      return wrap_step(interpreter, value, tensor.source, Source::Kind::instance_value, name);
    if (PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  }
  interpreter.assume(Assumption::Kind::missing_key, tensor.source, name);
  return nullptr;
}

/// Whether it is a pre-existing object whose path is not known.
bool is_found_by_the_run(const Tensor& tensor) {
  return tensor.source == nullptr && (tensor.is_borrowed || tensor.list_memory != nullptr);
}

}  // namespace

Value tensor_attribute(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                       const std::string& name) {
  if (Value value = tensor_property(interpreter, tensor, name)) return value;
  if (name == "__class__") return type_of(interpreter, tensor);
  const Object key = name_object(interpreter, name);
  PyTypeObject* type = class_of(tensor);
  const Source* owner = interpreter.sources().root(
      Source::Kind::constant, Object::borrow(reinterpret_cast<PyObject*>(type)));
  const Source* path = interpreter.sources().step(Source::Kind::type_attribute, owner, key);
  PyObject* found = _PyType_Lookup(type, key.get());
  // Torch's own code calls methods of many tensors, which nobody gives others of their own.
  const bool may_be_own = found == nullptr || (Py_TYPE(found)->tp_descr_set == nullptr &&
                                               !interpreter.frame().is_library);
  if (may_be_own)
    if (Value own = own_tensor_attribute(interpreter, *tensor, key)) return own;
  if (found == nullptr) {
    if (is_found_by_the_run(*tensor))
      interpreter.refuse(ReasonCode::dynamic_value,
                         cat("the attribute ", name, " of a tensor that only the run finds"));
    interpreter.assume(Assumption::Kind::missing_attribute, owner, key);
    return nullptr;
  }
  PyTypeObject* const kind = Py_TYPE(found);
  if (kind == &PyMethodDescr_Type || kind == &PyFunction_Type || kind == &PyWrapperDescr_Type) {
    interpreter.assume(Assumption::Kind::identity, path, Object::borrow(found));
    return std::make_shared<Method>(tensor, std::make_shared<Known>(Object::borrow(found), path));
  }
  if (kind->tp_descr_get == nullptr) return interpreter.wrap(found, path);
  interpreter.refuse(ReasonCode::expression, cat("the attribute ", name, " of a tensor"));
}

void write_tensor_attribute(Interpreter& interpreter, const std::shared_ptr<Tensor>& written,
                            const std::string& name, const Value& value) {
  const Tensor& tensor = *written;
  const Object key = name_object(interpreter, name);
  PyObject* found = _PyType_Lookup(class_of(written), key.get());
  const bool is_kept_by_torch = found != nullptr && Py_TYPE(found)->tp_descr_set != nullptr;
  if (tensor.source == nullptr || !tensor.object || is_kept_by_torch)
    interpreter.refuse(ReasonCode::heap_write, cat("the attribute ", name, " of a tensor"));
  if (value == nullptr && own_tensor_attribute(interpreter, tensor, key) == nullptr)
    interpreter.refuse(ReasonCode::would_raise, cat("AttributeError: ", name));
  const Source* place =
      interpreter.sources().step(Source::Kind::instance_value, tensor.source, key);
  interpreter.write_place(interpreter.attributes_target({tensor.object, tensor.source}), key, place,
                          Held::stored(value));
}

namespace {

Value sequence_field(const Sequence& sequence, const std::string& name) {
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

/// The methods of named tuples that collections.namedtuple writes.
Value named_tuple_method(const Frames& frames, const std::shared_ptr<Sequence>& tuple,
                         const std::string& name) {
  if (!tuple->type || name != "_replace") return nullptr;
  static PyObject* const maker = imported("collections.namedtuple");
  PyObject* method = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(tuple->type.get()),
                                    name_object(frames, name).get());
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

}  // namespace

namespace {

/// The path of what a class has under a name.
const Source* entry_path(GraphWriter& writer, PyTypeObject* type, const Object& name) {
  const Source* owner = writer.sources().root(Source::Kind::constant,
                                              Object::borrow(reinterpret_cast<PyObject*>(type)));
  return writer.sources().step(Source::Kind::type_attribute, owner, name);
}

/// A property, or what is no method, of a class written in Python (of named tuples).
Value class_value(Interpreter& interpreter, const Value& value, const std::string& name) {
  PyTypeObject* type = class_of(value);
  if (type == nullptr || !is_heap_type(type)) return nullptr;
  const Object key = name_object(interpreter, name);
  PyObject* found = _PyType_Lookup(type, key.get());
  if (found == nullptr) return nullptr;
  const Source* path = entry_path(interpreter, type, key);
  if (Py_TYPE(found)->tp_descr_get == nullptr) return interpreter.wrap(found, path);
  if (Py_TYPE(found) != &PyProperty_Type) return nullptr;
  const auto property = std::make_shared<Known>(Object::borrow(found), path);
  interpreter.assume_identity(*property);
  return call(interpreter, attribute(interpreter, property, "fget"),
              {.positional = {value}, .keywords = {}});
}

}  // namespace

Value class_method(Interpreter& interpreter, const Value& value, const std::string& name) {
  PyTypeObject* type = class_of(value);
  if (type == nullptr) return nullptr;
  Object key = name_object(interpreter, name);
  PyObject* found = _PyType_Lookup(type, key.get());
  if (found == nullptr || !PyFunction_Check(found)) return nullptr;
  return std::make_shared<Method>(value,
                                  interpreter.wrap(found, entry_path(interpreter, type, key)));
}

namespace {

/// Methods of numbers that compute one.
Value number_method(const Value& number, const std::string& name) {
  const bool is_float = class_of(number) == &PyFloat_Type;
  if (name != (is_float ? "is_integer" : "bit_length")) return nullptr;
  PyObject* const method = PyDict_GetItemString(
      python::class_dict(is_float ? &PyFloat_Type : &PyLong_Type), name.c_str());
  return std::make_shared<Method>(number, std::make_shared<Known>(Object::borrow(method), nullptr));
}

/// A method of a text that is made after the run.
Value text_method(const Value& text, const std::string& name) {
  if (as<Deferred>(text) == nullptr || class_of(text) != &PyUnicode_Type) return nullptr;
  PyObject* const method = PyDict_GetItemString(python::class_dict(&PyUnicode_Type), name.c_str());
  if (method == nullptr || !Py_IS_TYPE(method, &PyMethodDescr_Type)) return nullptr;
  return std::make_shared<Method>(text, std::make_shared<Known>(Object::borrow(method), nullptr));
}

}  // namespace

Value virtual_attribute(Interpreter& interpreter, const Value& value, const std::string& name) {
  if (name == "__class__") return type_of(interpreter, value);
  if (auto sequence = shared_as<Sequence>(value)) {
    if (Value field = sequence_field(*sequence, name)) return field;
    if (Value method = named_tuple_method(interpreter, sequence, name)) return method;
  }
  const auto* dictionary = as<Dictionary>(value);
  if (dictionary != nullptr && dictionary->attributes != nullptr)
    for (const auto& [key, own] : dictionary->attributes->items)
      if (same_key(interpreter, key.get(), name_object(interpreter, name).get())) return own;
  if (as<Number>(value) != nullptr)
    if (Value method = number_method(value, name)) return method;
  if (Value method = text_method(value, name)) return method;
  if (Value method = container_method(interpreter, value, name)) return method;
  if (const auto* closure = as<Closure>(value))
    if (name == "__name__") return interpreter.string(closure->name);
  if (const auto* method = as<Method>(value)) {
    if (name == "__self__") return method->self;
    if (name == "__func__") return method->function;
    // What the class of methods does not have, they have from their function.
    if (_PyType_Lookup(&PyMethod_Type, name_object(interpreter, name).get()) == nullptr)
      return attribute_or_null(interpreter, method->function, name);
  }
  if (dictionary != nullptr && dictionary->source != nullptr) {
    const auto real = std::make_shared<Known>(dictionary->object, dictionary->source);
    return Lookup(interpreter, real, name).run();
  }
  if (Value method = class_method(interpreter, value, name)) return method;
  if (Value entry = class_value(interpreter, value, name)) return entry;
  PyTypeObject* type = class_of(value);
  if (type != nullptr) {
    Object key = name_object(interpreter, name);
    if (_PyType_Lookup(type, key.get()) == nullptr) return nullptr;
  }
  interpreter.refuse(ReasonCode::expression, cat("the attribute ", name));
}

}  // namespace janus::frontend
