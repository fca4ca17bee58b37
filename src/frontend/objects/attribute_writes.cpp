// Attributes written and deleted, as the class of the object says: `__setattr__`, properties,
// slots, dictionaries.
#include <Python.h>
#include <structmember.h>

#include "frontend/autograd/tensor_properties.h"
#include "frontend/core/class_of.h"
#include "frontend/core/heap_places.h"
#include "frontend/core/keys.h"
#include "frontend/core/operations.h"
#include "frontend/objects/attribute_lookup.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/named_attribute.h"
#include "frontend/objects/run_time_attributes.h"
#include "frontend/objects/subscripts.h"
#include "frontend/objects/virtual_attributes.h"
#include "frontend/tensors/tensor.h"
#include "python/version.h"

namespace janus::frontend {

using python::Object;

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
    if (general || own == PyDict_GetItemString(python::class_dict(&PyBaseObject_Type), method))
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
    if (instance_ != nullptr && has_dictionary()) return write_field();
    if (instance_ != nullptr || !own_dictionary(object_))
      interpreter_.refuse(ReasonCode::would_raise, cat("AttributeError: ", text_));
    if (element_ == nullptr) require_present();
    write(Source::Kind::instance_value);
  }

 private:
  [[noreturn]] void refuse() {
    interpreter_.refuse(ReasonCode::heap_write, path_text(self_, text_));
  }

  /// An object whose class has slots alone has no other attributes.
  bool has_dictionary() const {
    return _PyType_Lookup(type_, name_object(interpreter_, "__dict__").get()) != nullptr;
  }

  void write_field() {
    if (element_ == nullptr) require_present();
    if (instance_->fields->source != nullptr) return write_shared_field();
    change_item(interpreter_, *instance_->fields, name_, element_);
  }

  /// An attribute of an object whose `__dict__` existed before the call.
  void write_shared_field() {
    const Value key = interpreter_.constant(name_);
    if (element_ == nullptr) return delete_subscript(interpreter_, instance_->fields, key);
    write_subscript(interpreter_, instance_->fields, key, element_);
  }

  /// `self.__dict__ = shared`, of an object that has no attributes yet: from now on they are the
  /// items of that dict, which existed before the call.
  void share_dictionary() {
    const bool is_new = instance_->fields->items.empty() && !interpreter_.journal.is_open();
    if (element_ == nullptr || !is_new || has_slots(type_)) refuse();
    const auto shared = shared_as<Dictionary>(opened(interpreter_, element_));
    if (shared == nullptr || shared->source == nullptr || shared->type) refuse();
    instance_->fields = shared;
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
    interpreter_.runtime_store_log().check_unwritten(type_, text_);
    Heap::Target target = interpreter_.attributes_target(known_);
    if (target.table == nullptr) refuse();
    interpreter_.write_place(target, name_, interpreter_.sources().step(kind, path(), name_),
                             Held::stored(element_));
  }

  /// Writes an attribute of a class that holds a plain value; methods and descriptors are refused.
  void write_class() {
    auto* type = reinterpret_cast<PyTypeObject*>(object_);
    PyObject* existing = PyDict_GetItemWithError(python::class_dict(type), name_.get());
    PyErr_Clear();
    bool plain_class = Py_TYPE(object_) == &PyType_Type && is_heap_type(type);
    bool plain_value = existing != nullptr && Py_TYPE(existing)->tp_descr_get == nullptr &&
                       Py_TYPE(existing)->tp_descr_set == nullptr;
    if (!plain_class || !plain_value || element_ == nullptr || text_.starts_with("__")) refuse();
    PyTypeObject* stored = class_of(element_);
    if (stored == nullptr || stored->tp_descr_get != nullptr) refuse();
    interpreter_.assume_identity(known_);
    interpreter_.assume(Assumption::Kind::has_key, path(), name_);
    write(Source::Kind::type_attribute);
  }

  void write_through(PyObject* descriptor) {
    PyTypeObject* kind = Py_TYPE(descriptor);
    if (kind == &PyProperty_Type) return call_property(descriptor);
    if (instance_ != nullptr && text_ == "__dict__") return share_dictionary();
    if (is_heap_type(kind)) return call_written(descriptor);
    if (kind != &PyMemberDescr_Type || !is_heap_type(type_)) refuse();
    auto* member = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member;
    // A slot of a class written in Python holds any object.
    if (member->type != T_OBJECT_EX || (member->flags & READONLY) != 0) refuse();
    if (element_ == nullptr) attribute(interpreter_, self_, text_);
    if (instance_ != nullptr) return write_field();
    interpreter_.runtime_store_log().check_unwritten(type_, text_);
    Heap::Target target;
    target.table = object_;
    target.owner = path();
    target.object = known_.object;
    interpreter_.write_place(target, name_,
                             interpreter_.sources().step(Source::Kind::attribute, path(), name_),
                             Held::stored(element_));
  }

  /// A descriptor whose class is written in Python.
  void call_written(PyObject* descriptor) {
    const char* method = element_ != nullptr ? "__set__" : "__delete__";
    PyObject* const function = class_descriptor(interpreter_, Py_TYPE(descriptor), method);
    if (function == nullptr || !PyFunction_Check(function)) refuse();
    const Source* found =
        interpreter_.sources().step(Source::Kind::type_attribute, type_path(), name_);
    CallArguments arguments;
    arguments.positional = {self_};
    if (element_ != nullptr) arguments.positional.push_back(element_);
    call(interpreter_, special_method(interpreter_, interpreter_.wrap(descriptor, found), method),
         arguments);
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
  if (auto tensor = shared_as<Tensor>(value)) {
    if (write_tensor_property(interpreter, tensor, name, element)) return;
    return write_tensor_attribute(interpreter, tensor, name, element);
  }
  if (const auto* made = as<Dictionary>(value); made != nullptr && made->attributes != nullptr)
    return change_item(interpreter, *made->attributes, name_object(interpreter, name), element);
  if (auto object = shared_as<RuntimeObject>(value); object != nullptr && element != nullptr)
    return write_run_time_attribute(interpreter, object, name, element);
  if (as<Known>(value) == nullptr && as<Instance>(value) == nullptr)
    interpreter.refuse(ReasonCode::heap_write, path_text(value, name));
  Store(interpreter, value, name, element).run();
}

void delete_attribute(Interpreter& interpreter, const Value& value, const std::string& name) {
  if (auto tensor = shared_as<Tensor>(value))
    return write_tensor_attribute(interpreter, tensor, name, nullptr);
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

}  // namespace janus::frontend
