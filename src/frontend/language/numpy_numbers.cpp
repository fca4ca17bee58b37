// NumPy's functions of numbers. They give scalars of NumPy's, which are made after the run, by the
// function itself, where the program shows or keeps them. Where it computes with one beside
// tensors, or makes an int or float of it, the run calls the function (`python_call`).
// Operators of torch take a scalar of floats as they take its value as a Python float.
#include "frontend/language/numpy_numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "frontend/control/journal.h"
#include "frontend/core/class_of.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/python_calls.h"
#include "frontend/language/special_callables.h"
#include "frontend/values/constants.h"
#include "frontend/values/number_kinds.h"
#include "ops/list.h"
#include "python/is_loaded.h"

namespace janus::frontend {

using graph::Type;
using python::Object;
using speculate::Template;

namespace {

using Arguments = CallArguments;

constexpr const char* functions[] = {
    "numpy.sqrt",    "numpy.cbrt",    "numpy.square", "numpy.exp",   "numpy.exp2",  "numpy.expm1",
    "numpy.log",     "numpy.log2",    "numpy.log10",  "numpy.log1p", "numpy.sin",   "numpy.cos",
    "numpy.tan",     "numpy.tanh",    "numpy.arctan", "numpy.ceil",  "numpy.floor", "numpy.trunc",
    "numpy.rint",    "numpy.round",   "numpy.sign",   "numpy.power", "numpy.hypot", "numpy.arctan2",
    "numpy.maximum", "numpy.minimum", "numpy.clip",   "numpy.abs",
};

/// The kind of Python's number that a scalar of that class is; nothing: another class.
std::optional<Type::Kind> kind_of_class(PyObject* type) {
  static PyObject* const float64 = imported("numpy.float64");
  static PyObject* const int64 = imported("numpy.int64");
  if (type == float64) return Type::Kind::f64;
  return type == int64 ? std::optional(Type::Kind::i64) : std::nullopt;
}

/// The class of what the function gives for numbers of these kinds; null: it gives no scalar.
PyTypeObject* class_of_result(PyObject* function, const Arguments& arguments) {
  const Object given =
      Object::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional.size())));
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    const auto kind = kind_of_number(arguments.positional[i]);
    if (!kind || *kind == Type::Kind::boolean) return nullptr;
    PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i),
                     *kind == Type::Kind::f64 ? PyFloat_FromDouble(1.5) : PyLong_FromLong(1));
  }
  const Object result = Object::steal(PyObject_CallObject(function, given.get()));
  PyErr_Clear();
  const bool is_scalar =
      result && kind_of_class(reinterpret_cast<PyObject*>(Py_TYPE(result.get())));
  return is_scalar ? Py_TYPE(result.get()) : nullptr;
}

template <size_t index>
Value call_function(Interpreter& interpreter, const Arguments& arguments) {
  PyObject* const function = imported(functions[index]);
  if (function == nullptr || arguments.positional.empty() || !arguments.keywords.empty())
    return nullptr;
  PyTypeObject* const type = class_of_result(function, arguments);
  if (type == nullptr) return nullptr;
  return defer(interpreter, Object::borrow(function), arguments, type);
}

template <size_t... index>
constexpr std::array<SpecialCallable, sizeof...(index)> rows(
    std::index_sequence<index...> /*rows*/) {
  return {{{functions[index], call_function<index>}...}};
}

/// The path of a function of the table; null: another function.
const char* path_of(PyObject* function) {
  for (const char* path : functions)
    if (imported(path) == function) return path;
  return nullptr;
}

/// What the function gives for constants: NumPy warns of what is not finite, in each call.
Value computed_now(Interpreter& interpreter, const Template& call, Type::Kind kind) {
  const Object given = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(call.children.size())));
  for (size_t i = 0; i < call.children.size(); ++i)
    PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(call.children[i].object.get()));
  const Object result = interpreter.must(PyObject_CallObject(call.object.get(), given.get()));
  if (kind == Type::Kind::i64)
    return interpreter.constant(interpreter.must(PyNumber_Long(result.get())));
  const Object number = interpreter.must(PyNumber_Float(result.get()));
  if (!std::isfinite(PyFloat_AS_DOUBLE(number.get())))
    interpreter.refuse(ReasonCode::dynamic_value, "what a function of NumPy warns of");
  return interpreter.constant(number);
}

}  // namespace

std::span<const SpecialCallable> numpy_number_callables() {
  if (!python::is_loaded("numpy")) return {};
  static constexpr auto all = rows(std::make_index_sequence<std::size(functions)>());
  return all;
}

namespace {

/// Whether it is that class of NumPy's. Others do not have NumPy loaded for the question.
bool is_class_of_numpy(const PyTypeObject* type, const char* name) {
  return type != nullptr && std::string_view(type->tp_name) == name &&
         reinterpret_cast<const PyObject*>(type) == imported(name);
}

/// Whether it is an object of exactly such a class of floats, of which each value is one of
/// Python's.
bool is_scalar_of_floats(PyObject* object) {
  return std::ranges::any_of(
      std::initializer_list<const char*>{"numpy.float64", "numpy.float32", "numpy.float16"},
      [&](const char* name) { return is_class_of_numpy(Py_TYPE(object), name); });
}

/// The float that the object is, as an input of the graph.
Value scalar_input(Interpreter& interpreter, const Known& known) {
  const Object number = interpreter.must(PyNumber_Float(known.object.get()));
  if (known.source == nullptr) return interpreter.constant(number);
  const auto& bindings = interpreter.output().inputs;
  const auto inputs = interpreter.output().graph.inputs();
  for (size_t i = 0; i < bindings.size(); ++i)
    if (bindings[i].source == known.source && inputs[i]->type == Type::f64())
      return interpreter.number(inputs[i], number);
  return interpreter.number(interpreter.add_input(Type::f64(), known.source), number);
}

bool is_float64(const Value& value) { return is_class_of_numpy(class_of(value), "numpy.float64"); }

/// The value of an operand as a float; null if it is neither one of NumPy's nor of Python's.
Value float_operand(Interpreter& interpreter, const Value& value) {
  if (is_float64(value)) return number_of_numpy(interpreter, value);
  return is_number(value) && kind_of_number(value) == Type::Kind::f64 ? value : nullptr;
}

/// NumPy warns of results that are not finite: the run ends before it, and Python makes the call.
void expect_finite(Interpreter& interpreter, const Value& number) {
  if (PyObject* const known = known_object(number); known != nullptr) {
    if (!std::isfinite(PyFloat_AsDouble(known)))
      interpreter.refuse(ReasonCode::dynamic_value, "what a function of NumPy warns of");
    return;
  }
  interpreter.follow(op::scalar_isfinite(interpreter.builder(), {interpreter.graph_value(number)}),
                     Object::borrow(Py_True), -1);
}

}  // namespace

Value numpy_binary(Interpreter& interpreter, syntax::Operator op, const Value& left,
                   const Value& right) {
  using syntax::Operator;
  const bool is_exact = op == Operator::Add || op == Operator::Sub || op == Operator::Mult;
  if (!is_exact || (!is_float64(left) && !is_float64(right))) return nullptr;
  const Value first = float_operand(interpreter, left), second = float_operand(interpreter, right);
  if (first == nullptr || second == nullptr) return nullptr;
  const Value number = binary(interpreter, op, first, second);
  expect_finite(interpreter, number);
  PyTypeObject* const type = class_of(is_float64(left) ? left : right);
  return defer(interpreter, Object::borrow(reinterpret_cast<PyObject*>(type)),
               {.positional = {number}, .keywords = {}}, type);
}

Value number_of_numpy(Interpreter& interpreter, const Value& value) {
  if (const auto* known = as<Known>(value))
    return is_scalar_of_floats(known->object.get()) ? scalar_input(interpreter, *known) : nullptr;
  const auto* deferred = as<Deferred>(value);
  if (deferred == nullptr || deferred->recipe.kind != Template::Kind::call) return nullptr;
  const Template& call = deferred->recipe;
  const bool is_conversion = call.object.is(deferred->type.get());
  const char* const path = path_of(call.object.get());
  if (path == nullptr && !is_conversion) return nullptr;
  const Type::Kind kind = *kind_of_class(deferred->type.get());
  Arguments arguments;
  bool is_known = true;
  for (const Template& child : call.children) {
    Value argument;
    if (child.kind == Template::Kind::result)
      argument = interpreter.number(interpreter.results()[child.index]);
    else if (child.kind == Template::Kind::source)
      argument = interpreter.wrap(nullptr, child.source);  // it was read before
    else if (child.kind == Template::Kind::constant)
      argument = interpreter.constant(child.object);
    if (argument == nullptr || !is_number(argument)) return nullptr;
    is_known = is_known && child.kind == Template::Kind::constant;
    arguments.positional.push_back(std::move(argument));
  }
  if (is_conversion) return arguments.positional.at(0);
  if (is_known) return computed_now(interpreter, call, kind);
  return call_python(interpreter, path, arguments, kind);
}

}  // namespace janus::frontend
