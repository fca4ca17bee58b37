// The bindings themselves are asked: a binding that is given a tensor of a class with
// `__torch_function__` parses its arguments, and computes nothing.
#include "frontend/tensors/refused_arguments.h"

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "frontend/core/class_of.h"
#include "frontend/core/torch_objects.h"
#include "frontend/core/torch_services.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/number_kinds.h"

namespace janus::frontend {

using python::Object;

namespace {

void expect_taken(Interpreter& interpreter, const std::string& name, const Value& value,
                  size_t position, std::string_view keyword = {}) {
  if (is_number(value) && !torch_services().takes_number(name, position, keyword))
    interpreter.refuse(ReasonCode::would_raise,
                       cat("TypeError: ", name, " takes no number in the place of a tensor"));
}

/// Earlier forms of operators, of which the binding warns: addcmul(x, 0.5, y, z).
bool has_number_before_tensor(const CallArguments& arguments) {
  bool number = false;
  for (const Value& value : arguments.positional) {
    if (number && as<Tensor>(value) != nullptr) return true;
    number = number || is_number(value);
  }
  return false;
}

/// A tensor that makes bindings parse only; one for all tensors that they would parse alike. Null
/// where it can't be made now.
Object stand_in_for(const Tensor& tensor) {
  using Key = std::tuple<graph::DType, int64_t, bool>;
  static std::map<Key, Object>& made = *new std::map<Key, Object>;
  const graph::Type& type = tensor.value->type;
  Object& found = made[Key(type.dtype, type.rank(), tensor.requires_grad)];
  if (!found)
    found = Object::steal(PyObject_CallFunction(
        imported("torchjanus.bindings.stand_in"), "OLO", dtype_object(type.dtype).get(),
        static_cast<long long>(type.rank()), tensor.requires_grad ? Py_True : Py_False));
  return found;
}

/// The arguments of a call for a binding that only parses.
class TrialArguments {
 public:
  /// False if they can't be made, or none makes the binding parse only.
  bool make(const CallArguments& given) {
    positional = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(given.positional.size())));
    keywords = Object::steal(PyDict_New());
    for (size_t i = 0; i < given.positional.size(); ++i) {
      Object made = trial_of(given.positional[i]);
      if (!made) return false;
      PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i), made.release());
    }
    for (const auto& [name, value] : given.keywords) {
      const Object made = trial_of(value);
      if (!made || PyDict_SetItemString(keywords.get(), name.c_str(), made.get()) != 0)
        return false;
    }
    return has_tensor_;
  }

  Object positional, keywords;

 private:
  /// Null: can't be made.
  Object trial_of(const Value& value) {
    if (const auto* tensor = as<Tensor>(value)) {
      has_tensor_ = true;
      return stand_in_for(*tensor);
    }
    if (const auto* number = as<Number>(value)) return number_of(number->type);
    // Lists of the entry stay unopened: that would be an assumption about what they hold.
    if (const auto* sequence = as<Sequence>(value))
      return is_list_or_tuple(value) ? sequence_of(*sequence) : Object();
    PyObject* const object = known_object(value);
    const bool is_constant =
        object != nullptr && (is_immutable_constant(object) || is_torch_constant(object));
    return is_constant ? Object::borrow(object) : Object();
  }

  static Object number_of(graph::Type::Kind kind) {
    if (kind == graph::Type::Kind::f64) return Object::steal(PyFloat_FromDouble(1));
    if (kind == graph::Type::Kind::i64) return Object::steal(PyLong_FromLong(1));
    return Object::borrow(Py_True);
  }

  Object sequence_of(const Sequence& sequence) {
    if (sequence.elements.rolled()) return {};
    const auto size = static_cast<Py_ssize_t>(sequence.elements.size());
    Object list = Object::steal(PyList_New(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      Object made = trial_of(sequence.elements[static_cast<size_t>(i)]);
      if (!made) return {};
      PyList_SET_ITEM(list.get(), i, made.release());
    }
    return sequence.is_list ? list : Object::steal(PyList_AsTuple(list.get()));
  }

  bool has_tensor_ = false;
};

/// Whether the binding, given such arguments, raises TypeError. What can't be tried is taken.
bool is_refused(PyObject* callable, const CallArguments& arguments) {
  const python::ErrorScope unnoticed;
  TrialArguments trial;
  if (has_number_before_tensor(arguments) || !trial.make(arguments)) return false;
  const Object answer = Object::steal(
      PyObject_CallFunctionObjArgs(imported("torchjanus.bindings.refuses"), callable,
                                   trial.positional.get(), trial.keywords.get(), nullptr));
  return answer.is(Py_True);
}

/// Whether it is of an operator of `torch.ops`, which goes by its schema's names alone.
bool is_misnamed(PyObject* callable, const CallArguments& arguments) {
  if (arguments.keywords.empty() || !torch_services().operator_name(callable)) return false;
  const python::ErrorScope unnoticed;
  const Object names =
      Object::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.keywords.size())));
  for (size_t i = 0; i < arguments.keywords.size(); ++i)
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i),
                     PyUnicode_FromString(arguments.keywords[i].first.c_str()));
  const Object answer = Object::steal(PyObject_CallFunctionObjArgs(
      imported("torchjanus.bindings.misnames"), callable, names.get(), nullptr));
  return answer.is(Py_True);
}

/// Methods of tensors but those that torch keeps to itself.
bool is_public_method(PyObject* callable) {
  static const auto* const tensor_base =
      reinterpret_cast<PyTypeObject*>(imported("torch._C.TensorBase"));
  return Py_IS_TYPE(callable, &PyMethodDescr_Type) && PyDescr_TYPE(callable) == tensor_base &&
         !text_of(PyDescr_NAME(callable)).starts_with("_");
}

}  // namespace

void refuse_numbers_for_tensors(Interpreter& interpreter, PyObject* callable,
                                const CallArguments& arguments) {
  if (!PyCFunction_Check(callable) && !Py_IS_TYPE(callable, &PyMethodDescr_Type)) return;
  const auto name = torch_services().operator_name(callable);
  if (!name) return;
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    expect_taken(interpreter, *name, arguments.positional[i], i);
  for (const auto& [keyword, value] : arguments.keywords)
    expect_taken(interpreter, *name, value, 0, keyword);
}

void refuse_what_binding_refuses(Interpreter& interpreter, PyObject* callable,
                                 const CallArguments& arguments) {
  const bool is_method = Py_IS_TYPE(callable, &PyMethodDescr_Type);
  const bool is_function = PyCFunction_Check(callable) != 0;
  const bool is_binding = is_method
                              ? is_public_method(callable)
                              : is_function && torch_services().operator_name(callable).has_value();
  const bool refuses = is_method || is_function ? is_binding && is_refused(callable, arguments)
                                                : is_misnamed(callable, arguments);
  if (!refuses) return;
  refuse_numbers_for_tensors(interpreter, callable, arguments);
  const Object name = Object::steal(PyObject_GetAttrString(callable, "__name__"));
  interpreter.refuse(ReasonCode::would_raise,
                     cat("TypeError: ", text_of(name.get()), " takes no such arguments"));
}

}  // namespace janus::frontend
