#include "frontend/core/class_of.h"

#include "frontend/core/communication.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/torch_objects.h"

namespace janus::frontend {

using python::Object;

PyTypeObject* class_of(const Value& value) {
  expect_narrowed(value);
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

bool is_list_or_tuple(const Value& value) {
  PyTypeObject* const type = class_of(value);
  return type != nullptr &&
         (PyType_IsSubtype(type, &PyList_Type) != 0 || PyType_IsSubtype(type, &PyTuple_Type) != 0);
}

bool is_dict_view(const Value& value) {
  const auto* sequence = as<Sequence>(value);
  return sequence != nullptr && sequence->viewed != nullptr;
}

Value type_of(Interpreter& interpreter, const Value& value) {
  PyTypeObject* type = class_of(value);
  if (type == nullptr) interpreter.refuse(ReasonCode::expression, "the type of such a value");
  expect_own_class(interpreter, type);
  Object object = Object::borrow(reinterpret_cast<PyObject*>(type));
  const Source* source = nullptr;
  // The exact class of what was reached from the entry is assumed already.
  if (const auto* known = as<Known>(value); known != nullptr && known->source != nullptr)
    source = interpreter.sources().step(Source::Kind::type, known->source);
  return std::make_shared<Known>(object, source);
}

}  // namespace janus::frontend
