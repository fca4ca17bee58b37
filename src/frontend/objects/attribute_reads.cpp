// Reads attributes by the kind of the value that is asked.
#include "frontend/control/optional.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/operations.h"
#include "frontend/objects/attribute_lookup.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_methods.h"
#include "frontend/objects/virtual_attributes.h"

namespace janus::frontend {

namespace {

/// function.__get__(object, type)
Value function_binder(const Value& function) {
  return std::make_shared<Native>(
      "__get__", [function](Interpreter& interpreter, const CallArguments& arguments) -> Value {
        if (arguments.positional.empty())
          interpreter.refuse(ReasonCode::unsupported_argument, "__get__");
        return std::make_shared<Method>(arguments.positional[0], function);
      });
}

/// Whether the name may be a method of the opened container. Opening guards the whole container, so
/// it is done for such names only.
bool is_container_method(PyObject* object, const std::string& name) {
  if (!PyList_Check(object) && !PyTuple_Check(object) && !PyDict_Check(object)) return true;
  return PyList_CheckExact(object) || PyTuple_Check(object) || !name.starts_with("__");
}

}  // namespace

Value attribute_or_null(Interpreter& interpreter, const Value& value, const std::string& name) {
  if (Value both = for_both(interpreter, value,
                            [&](const Value& one) { return attribute(interpreter, one, name); }))
    return both;
  expect_narrowed(value);
  switch (value->kind) {
    case ValueKind::known: {
      if (name == "__class__") return type_of(interpreter, value);
      if (Value method = container_method(interpreter, value, name)) return method;
      if (name == "__get__" && PyFunction_Check(as<Known>(value)->object.get()))
        return function_binder(value);
      // The methods of a container are those of the opened one.
      if (!is_container_method(as<Known>(value)->object.get(), name))
        return Lookup(interpreter, value, name).run();
      Value shadow = opened(interpreter, value);
      if (shadow != value)
        if (Value method = container_method(interpreter, shadow, name)) return method;
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

namespace {

Value found_or_raised(const Frames& frames, Value found, const std::string& name) {
  if (found == nullptr)
    raise(frames, PyExc_AttributeError, cat("AttributeError: no attribute '", name, "'"));
  return found;
}

}  // namespace

Value own_attribute(Interpreter& interpreter, const Value& value, const std::string& name) {
  PyObject* const object = known_object(value);
  const bool has_rules_in_c = object != nullptr && (PyModule_Check(object) || PyType_Check(object));
  if ((object == nullptr && as<Instance>(value) == nullptr) || has_rules_in_c)
    interpreter.refuse(ReasonCode::expression, cat("object.__getattribute__ of ", name));
  return found_or_raised(interpreter, Lookup(interpreter, value, name).run_general(), name);
}

Value attribute(Interpreter& interpreter, const Value& value, const std::string& name) {
  return found_or_raised(interpreter, attribute_or_null(interpreter, value, name), name);
}

const Source* path_of(GraphWriter& writer, const Known& known) {
  if (known.source != nullptr) return known.source;
  return writer.sources().root(Source::Kind::constant, known.object);
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

Value written_method(Interpreter& interpreter, const Value& value, const char* name) {
  const Value method = special_method(interpreter, value, name);
  const auto* bound = as<Method>(method);
  PyObject* const function = bound == nullptr ? nullptr : known_object(bound->function);
  return function != nullptr && PyFunction_Check(function) ? method : nullptr;
}

bool has_written_method(const Value& value, const char* name) {
  PyTypeObject* type = class_of(value);
  if (type == nullptr || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return false;
  const auto method = python::try_attribute(reinterpret_cast<PyObject*>(type), name);
  return method && PyFunction_Check(method.get());
}

}  // namespace janus::frontend
