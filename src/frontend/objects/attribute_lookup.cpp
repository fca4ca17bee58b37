// Each function is a step of Python's look-up. A step that finds nothing assumes that there is
// nothing at each later entry as well.
#include "frontend/objects/attribute_lookup.h"

#include <optional>

#include "frontend/control/outcomes.h"
#include "frontend/core/class_of.h"
#include "frontend/core/communication.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/heap_places.h"
#include "frontend/core/keys.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/named_attribute.h"
#include "frontend/objects/subscripts.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "python/dict_keys.h"
#include "python/version.h"

namespace janus::frontend {

using python::Object;

bool has_slots(PyTypeObject* type) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* each = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    PyObject *name = nullptr, *entry = nullptr;
    for (Py_ssize_t at = 0;
         is_heap_type(each) && PyDict_Next(python::class_dict(each), &at, &name, &entry);)
      if (Py_TYPE(entry) == &PyMemberDescr_Type) return true;
  }
  return false;
}

namespace {

/// The value that the run has stored in a module's dictionary or in a slot.
Held changed_attribute(Interpreter& interpreter, const Known& known, const Object& name) {
  PyObject* object = known.object.get();
  PyObject* table = PyModule_CheckExact(object) ? PyModule_GetDict(object) : object;
  const Source* path = PyModule_CheckExact(object) ? nullptr : known.source;
  return interpreter.heap.find(interpreter, table, name.get(), path);
}

/// Assumes that neither the class nor its metaclass has the attribute.
void assume_missing_in_class(Interpreter& interpreter, const Known& known, const Object& name) {
  const Source* path = path_of(interpreter, known);
  interpreter.assume(Assumption::Kind::missing_attribute, path, name);
  PyTypeObject* const metaclass = Py_TYPE(known.object.get());
  if (!is_heap_type(metaclass)) return;
  const Source* of_metaclass = interpreter.sources().step(Source::Kind::type, path);
  for (const Object& each : {name, name_object(interpreter, "__getattr__")}) {
    if (_PyType_Lookup(metaclass, each.get()) != nullptr)
      interpreter.refuse(ReasonCode::expression, "attributes of a class by its metaclass");
    interpreter.assume(Assumption::Kind::missing_attribute, of_metaclass, each);
  }
}

/// Assumes that the module has neither the attribute nor a `__getattr__` that may give it. Torch's
/// own `__getattr__` knows only attributes of torch.
void assume_missing_in_module(Interpreter& interpreter, const Known& known, const Object& name) {
  PyObject* const module = known.object.get();
  const Source* path = path_of(interpreter, known);
  const Object fallback = name_object(interpreter, "__getattr__");
  PyObject* const function = PyDict_GetItemWithError(PyModule_GetDict(module), fallback.get());
  const bool is_torchs = module == torch_module();
  if (!PyModule_CheckExact(module) || (function != nullptr && !is_torchs))
    interpreter.refuse(ReasonCode::expression, "attributes of a module by its __getattr__");
  interpreter.assume(Assumption::Kind::missing_key, path, name);
  if (function == nullptr)
    interpreter.assume(Assumption::Kind::missing_key, path, fallback);
  else
    interpreter.assume(Assumption::Kind::identity,
                       interpreter.sources().step(Source::Kind::instance_value, path, fallback),
                       Object::borrow(function));
}

/// Assumes that an attribute that C code keeps is missing.
void assume_missing(Interpreter& interpreter, const Known& known, const Object& name) {
  PyObject* const object = known.object.get();
  if (PyType_Check(object)) return assume_missing_in_class(interpreter, known, name);
  if (PyModule_Check(object)) return assume_missing_in_module(interpreter, known, name);
  if (PyMethod_Check(object)) {  // it asks its function
    const Value function = wrap_step(interpreter, PyMethod_GET_FUNCTION(object),
                                     path_of(interpreter, known), Source::Kind::bound_function, {});
    attribute_or_null(interpreter, function, text_of(name.get()));
    return;
  }
  PyObject* const slot = _PyType_Lookup(Py_TYPE(object), name.get());
  if (slot != nullptr && Py_TYPE(slot) == &PyMemberDescr_Type)
    interpreter.assume(Assumption::Kind::missing_key, path_of(interpreter, known), name);
}

/// getattr by Python itself, for objects of C whose attributes run no code of the program.
Value plain_attribute(Interpreter& interpreter, const Known& known, const Object& name) {
  if (const Held changed = changed_attribute(interpreter, known, name); !changed.is_unknown())
    return changed.value_or_null();
  Object value = Object::steal(PyObject_GetAttr(known.object.get(), name.get()));
  if (!value) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) interpreter.refuse_raised();
    PyErr_Clear();
    assume_missing(interpreter, known, name);
    return nullptr;
  }
  if (known.source == nullptr && is_immutable_constant(known.object.get()))
    return interpreter.constant(value);
  return wrap_step(interpreter, value.get(), path_of(interpreter, known), Source::Kind::attribute,
                   name);
}

/// A function that Cython has compiled, such as the methods of NumPy's random generators.
bool is_compiled_function(PyTypeObject* type) {
  return std::string_view(type->tp_name).ends_with("cython_function_or_method");
}

}  // namespace

Value Lookup::run() {
  if (instance_ == nullptr && PyModule_Check(object_))
    return plain_attribute(interpreter_, known_, name_);
  if (instance_ == nullptr && PyType_Check(object_)) return class_attribute();
  if (instance_ == nullptr && is_communication_class(type_))
    if (Value value = communication_attribute(interpreter_, self_, name_)) return value;
  if (has_general_lookup()) {
    Value value = run_general();
    return value != nullptr ? value : fallback();
  }
  // Of modules much is read in torch's own code, which would have to ask the method each time.
  static auto* const module = reinterpret_cast<PyTypeObject*>(imported("torch.nn.Module"));
  if (PyFunction_Check(find_lookup()) && PyType_IsSubtype(type_, module) == 0) return run_written();
  if (instance_ != nullptr || is_heap_type(type_))
    interpreter_.refuse(ReasonCode::expression, cat("attributes of a ", type_->tp_name));
  return plain_attribute(interpreter_, known_, name_);
}

Value Lookup::run_general() {
  if (instance_ == nullptr) interpreter_.runtime_store_log().check_unwritten(type_, text_);
  return instance_attribute();
}

Value Lookup::run_written() {
  const Value function = Lookup(interpreter_, self_, "__getattribute__").special();
  const auto look_up = [&] {
    return call(interpreter_, function,
                {.positional = {interpreter_.constant(name_)}, .keywords = {}});
  };
  if (Value value = value_unless_raised(interpreter_, PyExc_AttributeError, look_up)) return value;
  return fallback();
}

PyObject* Lookup::descriptor() {
  find_descriptor();
  return descriptor_;
}

PyObject* Lookup::general_descriptor() {
  if (!has_general_lookup())
    interpreter_.refuse(ReasonCode::expression, cat("attributes of a ", type_->tp_name));
  if (changed_in(type_, type_path()) != nullptr)
    interpreter_.refuse(ReasonCode::heap_write, cat("the class attribute ", text_));
  return descriptor();
}

Value Lookup::special() {
  find_descriptor();
  return descriptor_ == nullptr ? nullptr : bound_descriptor();
}

PyObject* Lookup::find_lookup() const {
  return _PyType_Lookup(type_, name_object(interpreter_, "__getattribute__").get());
}

bool Lookup::has_general_lookup() {
  static PyObject* const general =
      PyDict_GetItemString(python::class_dict(&PyBaseObject_Type), "__getattribute__");
  PyObject* found = find_lookup();
  // Containers have a method of their own for the same function.
  const bool is_general =
      found == general || (Py_TYPE(found) == &PyWrapperDescr_Type &&
                           reinterpret_cast<PyWrapperDescrObject*>(found)->d_wrapped ==
                               reinterpret_cast<void*>(PyObject_GenericGetAttr));
  if (type_->tp_getattro != PyObject_GenericGetAttr && !is_general) return false;
  if (is_heap_type(type_))
    interpreter_.assume(Assumption::Kind::identity,
                        interpreter_.sources().step(Source::Kind::type_attribute, type_path(),
                                                    name_object(interpreter_, "__getattribute__")),
                        Object::borrow(found));
  return true;
}

const Source* Lookup::descriptor_path() {
  return interpreter_.sources().step(Source::Kind::type_attribute, type_path(), name_);
}

void Lookup::find_descriptor() {
  descriptor_ = Object::borrow(_PyType_Lookup(type_, name_.get())).get();
  if (!is_heap_type(type_)) return;
  if (is_plain_value())  // a class attribute that may vary, read by whoever needs it
    interpreter_.assume(Assumption::Kind::exact_type, descriptor_path(),
                        Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(descriptor_))));
  else if (descriptor_ != nullptr)
    interpreter_.assume(Assumption::Kind::identity, descriptor_path(), Object::borrow(descriptor_));
  else
    interpreter_.assume(Assumption::Kind::missing_attribute, type_path(), name_);
}

bool Lookup::is_plain_value() const {
  return descriptor_ != nullptr &&
         (PyLong_CheckExact(descriptor_) || PyFloat_CheckExact(descriptor_) ||
          PyBool_Check(descriptor_) || PyUnicode_CheckExact(descriptor_) || descriptor_ == Py_None);
}

Value Lookup::changed_in(PyTypeObject* type, const Source* path) {
  if (!is_changed_in(type)) return nullptr;
  const Object mro = name_object(interpreter_, "__mro__");
  auto& sources = interpreter_.sources();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    PyObject* const dict = python::class_dict(base);
    const Source* const place =
        i == 0 ? path
               : sources.step(Source::Kind::index, sources.step(Source::Kind::attribute, path, mro),
                              {}, i);
    if (i > 0)
      interpreter_.assume(Assumption::Kind::identity, place,
                          Object::borrow(reinterpret_cast<PyObject*>(base)));
    const Held changed = interpreter_.heap.find(interpreter_, dict, name_.get(), nullptr);
    if (changed.is_absent())
      interpreter_.refuse(ReasonCode::heap_write, cat("the class attribute ", text_));
    if (changed.is_value()) return changed.value();
    const bool is_own = PyDict_GetItemWithError(dict, name_.get()) != nullptr;
    if (is_heap_type(base))
      interpreter_.assume(is_own ? Assumption::Kind::has_key : Assumption::Kind::missing_key, place,
                          name_);
    if (is_own) return nullptr;
  }
  return nullptr;
}

/// Whether the run has written the attribute in the class or in one of its bases.
bool Lookup::is_changed_in(PyTypeObject* type) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (!interpreter_.heap.find(interpreter_, python::class_dict(base), name_.get(), nullptr)
             .is_unknown())
      return true;
  }
  return false;
}

Value Lookup::instance_attribute() {
  find_descriptor();
  if (descriptor_ != nullptr && Py_TYPE(descriptor_)->tp_descr_set != nullptr)
    return data_descriptor();
  if (Value value = instance_value()) return value;
  if (Value changed = changed_in(type_, type_path())) return changed;
  return descriptor_ != nullptr ? bound_descriptor() : nullptr;
}

Value Lookup::data_descriptor() {
  if (is_property()) {
    Object key = name_object(interpreter_, "fget");
    Object getter = interpreter_.must(PyObject_GetAttr(descriptor_, key.get()));
    if (getter.is(Py_None))
      interpreter_.refuse(ReasonCode::would_raise, "AttributeError: unreadable attribute");
    Value function =
        wrap_step(interpreter_, getter.get(), descriptor_path(), Source::Kind::attribute, key);
    CallArguments arguments;
    arguments.positional = {self_};
    // Where it raises AttributeError, Python goes on with `__getattr__`.
    std::optional<Awaiting> nothing;
    if (Lookup(interpreter_, self_, type_, "__getattr__").descriptor() != nullptr)
      nothing.emplace(interpreter_, Awaiting::What::nothing);
    return call(interpreter_, function, arguments);
  }
  const bool is_kept_in_c =
      Py_TYPE(descriptor_) == &PyGetSetDescr_Type || Py_TYPE(descriptor_) == &PyMemberDescr_Type;
  if (is_exception(self_) && is_kept_in_c) return exception_attribute();
  if (instance_ != nullptr && text_ == "__dict__") {
    if (has_slots(type_))
      interpreter_.refuse(ReasonCode::expression, "__dict__ of an object that has slots, too");
    return instance_->fields;
  }
  if (instance_ != nullptr && Py_TYPE(descriptor_) == &PyMemberDescr_Type) return instance_value();
  if (object_ != nullptr && is_kept_in_c) return plain_attribute(interpreter_, known_, name_);
  if (instance_ == nullptr && PyTuple_Check(object_) &&
      std::string_view(Py_TYPE(descriptor_)->tp_name).ends_with("_tuplegetter"))
    return tuple_field();
  // `name` and `value` of an enumeration's member, which is assumed to be that one.
  static PyObject* const enum_property = imported("enum.property");
  if (instance_ == nullptr && reinterpret_cast<PyObject*>(Py_TYPE(descriptor_)) == enum_property &&
      (text_ == "name" || text_ == "value"))
    return plain_attribute(interpreter_, known_, name_);
  return written_descriptor(descriptor_, descriptor_path(), self_, type_of(interpreter_, self_));
}

/// Attributes of an exception that C keeps. Its traceback is not known.
Value Lookup::exception_attribute() {
  const Value arguments = text_ == "args" ? arguments_of_exception(*instance_) : nullptr;
  if (arguments == nullptr)
    interpreter_.refuse(ReasonCode::expression, cat("the attribute ", text_, " of an exception"));
  return arguments;
}

Value Lookup::written_descriptor(PyObject* descriptor, const Source* path, const Value& object,
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

Value Lookup::tuple_field() {
  const Object parts = interpreter_.must(PyObject_CallMethod(descriptor_, "__reduce__", nullptr));
  const Py_ssize_t index = PyLong_AsSsize_t(PyTuple_GET_ITEM(PyTuple_GET_ITEM(parts.get(), 1), 0));
  return interpreter_.wrap(PyTuple_GET_ITEM(object_, index),
                           interpreter_.sources().step(Source::Kind::index, path(), {}, index));
}

Value Lookup::instance_value() {
  if (instance_ != nullptr) return field();
  Object dict = own_dictionary(object_);
  if (!dict) return nullptr;
  if (const Held changed = interpreter_.heap.find(interpreter_, dict.get(), name_.get(), path());
      !changed.is_unknown())
    return changed.value_or_null();
  PyObject* value = PyDict_GetItemWithError(dict.get(), name_.get());
  if (value != nullptr)
    return wrap_step(interpreter_, value, path(), Source::Kind::instance_value, name_);
  if (PyErr_Occurred() != nullptr) interpreter_.refuse_raised();
  if (known_.source == nullptr) return nullptr;
  // Of a dict with attributes it would mean its items.
  const Source* keys = PyDict_Check(object_)
                           ? interpreter_.sources().step(Source::Kind::attribute, path(),
                                                         name_object(interpreter_, "__dict__"))
                           : path();
  interpreter_.assume(Assumption::Kind::missing_key, keys, name_);
  return nullptr;
}

Value Lookup::made_item(const Dictionary& dict) {
  for (const auto& [key, value] : dict.items)
    if (same_key(interpreter_, key.get(), name_.get())) return value;
  return nullptr;
}

Value Lookup::bound_descriptor() {
  PyTypeObject* kind = Py_TYPE(descriptor_);
  if (PyFunction_Check(descriptor_))
    return std::make_shared<Method>(self_, interpreter_.wrap(descriptor_, descriptor_path()));
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || is_compiled_function(kind) ||
      is_cached_function(kind))
    return std::make_shared<Method>(
        self_, std::make_shared<Known>(Object::borrow(descriptor_), descriptor_path()));
  if (kind == &PyClassMethod_Type)
    return std::make_shared<Method>(type_of(interpreter_, self_), wrapped_function());
  static PyObject* const cached = imported("functools.cached_property");
  if (reinterpret_cast<PyObject*>(kind) == cached) return cached_property();
  if (kind == &PyStaticMethod_Type) return wrapped_function();
  if (kind->tp_descr_get == nullptr || PyType_Check(descriptor_) || PyCFunction_Check(descriptor_))
    return interpreter_.wrap(descriptor_, descriptor_path());
  return data_descriptor();
}

/// functools.cached_property: what the function gives is an attribute from then on.
Value Lookup::cached_property() {
  const auto property = std::make_shared<Known>(Object::borrow(descriptor_), descriptor_path());
  interpreter_.assume_identity(*property);
  const Object name = interpreter_.must(PyObject_GetAttrString(descriptor_, "attrname"));
  if (text_of(name.get()) != text_)
    interpreter_.refuse(ReasonCode::expression, "a cached property of another name");
  const Object function = interpreter_.must(PyObject_GetAttrString(descriptor_, "func"));
  const Value getter = wrap_step(interpreter_, function.get(), descriptor_path(),
                                 Source::Kind::attribute, name_object(interpreter_, "func"));
  const Value value = call(interpreter_, getter, {.positional = {self_}, .keywords = {}});
  write_own_attribute(interpreter_, self_, text_, value);
  return value;
}

bool Lookup::is_property() const {
  PyTypeObject* kind = Py_TYPE(descriptor_);
  if (kind == &PyProperty_Type) return true;
  return PyType_IsSubtype(kind, &PyProperty_Type) != 0 &&
         class_descriptor(interpreter_, kind, "__get__") ==
             PyDict_GetItemString(python::class_dict(&PyProperty_Type), "__get__");
}

Value Lookup::wrapped_function() {
  Object key = name_object(interpreter_, "__func__");
  Object function = interpreter_.must(PyObject_GetAttr(descriptor_, key.get()));
  return wrap_step(interpreter_, function.get(), descriptor_path(), Source::Kind::attribute, key);
}

Value Lookup::module_table(const char* key) {
  Lookup table(interpreter_, self_, key);
  return table.instance_value();
}

Value Lookup::module_part() {
  for (const char* table : {"_parameters", "_buffers", "_modules"}) {
    Value dict = module_table(table);
    if (const auto* made = as<Dictionary>(dict)) {
      if (Value value = made_item(*made)) return value;
      continue;
    }
    const auto* known = as<Known>(dict);
    if (known == nullptr || !PyDict_Check(known->object.get())) continue;
    const Held changed = interpreter_.heap.find(interpreter_, known->object.get(), name_.get(),
                                                path_of(interpreter_, *known));
    if (changed.is_value()) return changed.value();
    if (changed.is_absent()) continue;
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

Value Lookup::fallback() {
  static PyObject* const module_fallback = imported("torch.nn.Module.__getattr__");
  Lookup getattr(interpreter_, self_, "__getattr__");
  getattr.find_descriptor();
  if (getattr.descriptor_ == nullptr) return nullptr;
  if (getattr.descriptor_ == module_fallback) return module_part();
  static PyObject* const item =
      PyDict_GetItemString(python::class_dict(&PyDict_Type), "__getitem__");
  if (getattr.descriptor_ == item)
    return subscript(interpreter_, self_, interpreter_.constant(name_));
  if (!PyFunction_Check(getattr.descriptor_))
    interpreter_.refuse(ReasonCode::expression, cat("attributes of a ", type_->tp_name));
  CallArguments arguments;
  arguments.positional = {interpreter_.constant(name_)};
  return call(interpreter_, getattr.bound_descriptor(), arguments);
}

/// The `__dict__` of a class, as it is at the entry. What it holds is assumed where it is used.
Value Lookup::class_dictionary() {
  auto* type = reinterpret_cast<PyTypeObject*>(object_);
  if (interpreter_.heap.table(python::class_dict(type)) != nullptr)
    interpreter_.refuse(ReasonCode::heap_write, cat("the class attribute ", text_));
  const auto dictionary = made_dict(Object::borrow(reinterpret_cast<PyObject*>(&PyDictProxy_Type)));
  const std::vector<Object> keys = python::keys_in_order(python::class_dict(type));
  const Object assumed = interpreter_.must(PyTuple_New(static_cast<Py_ssize_t>(keys.size())));
  for (size_t i = 0; i < keys.size(); ++i) {
    PyTuple_SET_ITEM(assumed.get(), static_cast<Py_ssize_t>(i), Object(keys[i]).release());
    PyObject* const entry = PyDict_GetItemWithError(python::class_dict(type), keys[i].get());
    const Source* place =
        interpreter_.sources().step(Source::Kind::type_attribute, path(), keys[i]);
    dictionary->items.emplace_back(keys[i],
                                   is_immutable_constant(entry)
                                       ? interpreter_.wrap(entry, place)
                                       : std::make_shared<Known>(Object::borrow(entry), place));
  }
  interpreter_.assume(Assumption::Kind::keys, path(), assumed);
  return dictionary;
}

Value Lookup::class_attribute() {
  auto* type = reinterpret_cast<PyTypeObject*>(object_);
  if (text_ == "__dict__" && Py_TYPE(object_) == &PyType_Type) return class_dictionary();
  if (Value changed = changed_in(type, path())) return changed;
  PyObject* raw = _PyType_Lookup(type, name_.get());
  PyObject* of_metaclass = _PyType_Lookup(type_, name_.get());
  bool metaclass_first = of_metaclass != nullptr && Py_TYPE(of_metaclass)->tp_descr_set != nullptr;
  if (raw == nullptr || metaclass_first) return plain_attribute(interpreter_, known_, name_);
  const Source* found = interpreter_.sources().step(Source::Kind::type_attribute, path(), name_);
  PyTypeObject* kind = Py_TYPE(raw);
  if (kind == &PyClassMethodDescr_Type) {
    if (special_handler(raw) != nullptr)
      return std::make_shared<Method>(self_, interpreter_.wrap(raw, found));
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

}  // namespace janus::frontend
