// Asks only classes whose answer runs no code of the program, or calls such code as the program
// would.
#include "frontend/objects/class_checks.h"

#include "frontend/core/class_entry.h"
#include "frontend/core/entry_answers.h"
#include "frontend/core/nesting.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/named_attribute.h"
#include "frontend/values/constants.h"
#include "python/version.h"

namespace janus::frontend {

using python::Object;

namespace {

constexpr const char* kInstanceCheck = "__instancecheck__";
constexpr const char* kSubclassCheck = "__subclasscheck__";

/// The module of the function that the class of `of` has for the method; empty if it is no function
/// of Python (the methods of `type` are none).
std::string module_of_method(Interpreter& interpreter, PyObject* of, const char* method) {
  assume_entries(interpreter, Py_TYPE(of), {method});
  PyObject* const found = _PyType_Lookup(Py_TYPE(of), name_object(interpreter, method).get());
  return found != nullptr && PyFunction_Check(found) ? text_of(PyFunction_GetModule(found))
                                                     : std::string();
}

bool is_typing(const std::string& module) {
  return module == "typing" || module == "typing_extensions";
}

/// Whether the module's methods of metaclasses are known here.
bool is_known_module(const std::string& module) {
  return module.empty() || module == "abc" || is_typing(module) || module.starts_with("torch.");
}

/// Whether the class answers in C: torch's older classes of tensors compare dtype and device.
bool asks_in_c(const Frames& frames, PyObject* of) {
  const Object name = name_object(frames, kInstanceCheck);
  PyObject* const found = _PyType_Lookup(Py_TYPE(of), name.get());
  return PyType_Check(of) && found != nullptr && !PyFunction_Check(found) &&
         found != _PyType_Lookup(&PyType_Type, name.get());
}

// --- abstract base classes ----------------------------------------------------------------------

/// The answer of an abstract base class. It caches a yes for ever, and a no until some class is
/// registered; the entry assumes that none was.
bool ask_abstract_class(Interpreter& interpreter, PyTypeObject* type, PyObject* of) {
  static PyObject* const registrations = imported("abc.get_cache_token");
  // A registration between the two makes the assumption fail.
  const Object count = interpreter.must(PyObject_CallNoArgs(registrations));
  const int result = PyObject_IsSubclass(reinterpret_cast<PyObject*>(type), of);
  if (result < 0) interpreter.refuse_raised();
  if (result == 1) return true;
  interpreter.assume(Assumption::Kind::equals, answer_path(interpreter, registrations), count);
  return false;
}

bool is_protocol(Interpreter& interpreter, PyObject* of) {
  if (!PyType_Check(of) || !is_typing(module_of_method(interpreter, of, kInstanceCheck)))
    return false;
  PyObject* const flag = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(of),
                                        name_object(interpreter, "_is_protocol").get());
  return flag == Py_True;
}

/// A protocol asks the class, and where that has not all of it, the object's own attributes.
bool ask_protocol(Interpreter& interpreter, PyTypeObject* type, PyObject* of) {
  constexpr const char* kRefused = "isinstance() of a protocol that asks for attributes of objects";
  const int result = PyObject_IsSubclass(reinterpret_cast<PyObject*>(type), of);
  if (result < 0) {
    PyErr_Clear();
    interpreter.refuse(ReasonCode::expression, kRefused);
  }
  if (result == 1) return true;
  const bool has_attributes = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 ||
                              type->tp_dictoffset != 0 ||
                              type->tp_getattro != PyObject_GenericGetAttr;
  if (has_attributes) interpreter.refuse(ReasonCode::expression, kRefused);
  return ask_abstract_class(interpreter, type, of);
}

/// An object may say that it is of another class than it is of.
void expect_plain_class(const Frames& frames, PyTypeObject* type) {
  PyObject* const own = _PyType_Lookup(type, name_object(frames, "__class__").get());
  static PyObject* const plain =
      PyDict_GetItemString(python::class_dict(&PyBaseObject_Type), "__class__");
  if (own != plain)
    frames.refuse(ReasonCode::expression, "isinstance() of an object with its own __class__");
}

}  // namespace

void collect_classes(Interpreter& interpreter, const Value& value, std::vector<Value>& classes) {
  const Nesting deeper(interpreter);
  Value shadow = opened(interpreter, value);
  if (const auto* sequence = as<Sequence>(shadow)) {
    if (sequence->is_list || sequence->viewed != nullptr)
      interpreter.refuse(ReasonCode::would_raise, "TypeError: the classes are in no tuple");
    for (const Value& element : sequence->elements) collect_classes(interpreter, element, classes);
    return;
  }
  const auto* known = as<Known>(value);
  if (known == nullptr) interpreter.refuse(ReasonCode::expression, "isinstance()");
  interpreter.assume_identity(*known);
  static PyObject* const union_type = imported("types.UnionType");
  if (reinterpret_cast<PyObject*>(Py_TYPE(known->object.get())) != union_type) {
    classes.push_back(value);
    return;
  }
  const Object parts = interpreter.must(PyObject_GetAttrString(known->object.get(), "__args__"));
  for (const Object& part : python::elements(parts.get())) {
    if (!PyType_Check(part.get()))
      interpreter.refuse(ReasonCode::expression,
                         "isinstance() of a union whose members are not all classes");
    classes.push_back(std::make_shared<Known>(part, nullptr));
  }
}

Value asked_metaclass(Interpreter& interpreter, const Value& of, const char* method,
                      const Value& value) {
  const std::string module = module_of_method(interpreter, known_object(of), method);
  const auto* tensor = as<Tensor>(value);
  // Torch's would ask the tensor, which is not there yet.
  const bool is_made = tensor != nullptr && !tensor->object && module.starts_with("torch.");
  if (is_known_module(module) && !is_made) return nullptr;
  return call(interpreter, special_method(interpreter, of, method),
              {.positional = {value}, .keywords = {}});
}

bool is_subclass(Interpreter& interpreter, PyTypeObject* type, PyObject* of) {
  const std::string module = module_of_method(interpreter, of, kSubclassCheck);
  if (PyType_Check(of) && module.empty())
    return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(of)) != 0;
  if (!is_known_module(module))
    interpreter.refuse(ReasonCode::expression, "a class check by a metaclass of the program's");
  return ask_abstract_class(interpreter, type, of);
}

bool has_instances_of(Interpreter& interpreter, PyTypeObject* type, PyObject* of,
                      PyObject* instance) {
  if (reinterpret_cast<PyObject*>(type) == of) return true;
  expect_plain_class(interpreter, type);
  const std::string module = module_of_method(interpreter, of, kInstanceCheck);
  if (!is_known_module(module))
    interpreter.refuse(ReasonCode::expression, "a class check by a metaclass of the program's");
  if (instance == nullptr && PyType_IsSubtype(type, tensor_class()) != 0 &&
      asks_in_c(interpreter, of))
    interpreter.refuse(ReasonCode::expression, "isinstance() of an older class of tensors");
  if (is_protocol(interpreter, of)) return ask_protocol(interpreter, type, of);
  if (!PyType_Check(of) || module == "abc" || is_typing(module) || instance == nullptr)
    return is_subclass(interpreter, type, of);
  if (Py_TYPE(of) == &PyType_Type)
    return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(of)) != 0;
  const int result = PyObject_IsInstance(instance, of);
  if (result < 0) interpreter.refuse_raised();
  return result == 1;
}

}  // namespace janus::frontend
