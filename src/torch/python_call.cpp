// Functions of Python's library, called in the middle of a run: Python's lock is taken for each.
#include "torch/python_call.h"

#include <map>
#include <stdexcept>

#include "ops/list.h"
#include "ops/python.h"
#include "python/integer.h"
#include "python/lock.h"
#include "python/object.h"
#include "torch/random_state.h"

namespace janus::torch {

using execute::Slot;
using ops::PythonArgument;
using python::Object;

namespace {

/// The object found by a dotted path, looked up once: programs may put others there later.
PyObject* object_at(const std::string& path) {
  static auto* const known = new std::map<std::string, PyObject*>;
  PyObject*& object = (*known)[path];
  if (object != nullptr) return object;
  size_t end = path.find('.');
  Object found = python::import_module(path.substr(0, end).c_str());
  while (end != std::string::npos) {
    const size_t next = path.find('.', end + 1);
    found = python::attribute(
        found.get(),
        path.substr(end + 1, next == std::string::npos ? next : next - end - 1).c_str());
    end = next;
  }
  object = found.release();
  return object;
}

/// Whose state a function of the library changes: a path, empty for an instance's method (its first
/// argument) and for a clock.
std::string generator_path(const std::string& function) {
  if (function.starts_with("numpy.random.mtrand.") || function.starts_with("random.Random."))
    return {};
  if (function.starts_with("random.")) return "random._inst";
  if (function.starts_with("numpy.random.")) return "numpy.random.mtrand._rand";
  return {};
}

Object to_object(const Slot& slot) {
  switch (slot.kind()) {
    case Slot::Kind::boolean:
      return python::boolean(slot.boolean());
    case Slot::Kind::i64:
      return python::integer(slot.i64());
    case Slot::Kind::f64:
      return python::check(PyFloat_FromDouble(slot.f64()));
    case Slot::Kind::object:
      return Object::borrow(static_cast<PyObject*>(slot.object()));
    default:
      return python::none();
  }
}

/// A number of exactly that type. `takes_numpy`: or a scalar of NumPy's with that value.
Slot to_slot(PyObject* object, graph::Type::Kind kind, bool takes_numpy) {
  if (kind == graph::Type::Kind::f64 &&
      (PyFloat_CheckExact(object) || (takes_numpy && PyFloat_Check(object))))
    return Slot::of(PyFloat_AS_DOUBLE(object));
  if (kind == graph::Type::Kind::boolean && PyBool_Check(object))
    return Slot::of(object == Py_True);
  if (kind == graph::Type::Kind::i64 && PyLong_CheckExact(object))
    if (const auto number = python::int64_of(object)) return Slot::of(*number);
  if (kind == graph::Type::Kind::i64 && takes_numpy && !PyLong_Check(object) &&
      PyIndex_Check(object))
    return to_slot(python::check(PyNumber_Index(object)).get(), kind, false);
  throw std::runtime_error("a function of Python's library gave another kind of number");
}

class PythonCall final : public execute::Operation {
 public:
  explicit PythonCall(const graph::Node& node)
      : arguments_(*ops::parse_python_arguments(node.attributes.get<std::string>("arguments"))),
        draws_(node.op == &op::python_draw) {
    const std::string function = node.attributes.get<std::string>("function");
    for (const graph::Value* output : node.outputs) kinds_.push_back(output->type.kind);
    of_instance_ = !node.inputs.empty() && node.inputs[0]->type.kind == graph::Type::Kind::object;
    const python::WithLock gil;
    python_errors([&] {
      function_ = object_at(function);
      const std::string generator = generator_path(function);
      if (draws_ && !generator.empty()) generator_ = object_at(generator);
    });
  }

  void run(const execute::Operands& operands) override {
    const python::WithLock gil;
    python_errors([&] {
      if (generator_ != nullptr) save_python_generator(generator_);
      if (draws_ && of_instance_)
        save_python_generator(static_cast<PyObject*>(operands.in(0).object()));
      call(operands);
    });
  }

 private:
  /// Exceptions of Python become those of a run that is given up; the program's own call raises
  /// them again.
  template <class Body>
  static void python_errors(const Body& body) {
    try {
      body();
    } catch (const python::ErrorSet&) {
      if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
      throw std::runtime_error(python::take_error_message());
    }
  }

  void call(const execute::Operands& operands) const {
    std::vector<Object> positional;
    Object keywords, changed;
    size_t next = 0;
    for (const PythonArgument& argument : arguments_) {
      Object value = argument.kind == PythonArgument::Kind::operand ? to_object(operands.in(next++))
                                                                    : range(argument.length);
      if (argument.kind == PythonArgument::Kind::list) {
        value = python::check(PySequence_List(value.get()));
        changed = value;
      }
      if (argument.keyword.empty()) {
        positional.push_back(std::move(value));
        continue;
      }
      if (!keywords) keywords = python::check(PyDict_New());
      python::check_status(
          PyDict_SetItemString(keywords.get(), argument.keyword.c_str(), value.get()));
    }
    const Object given = python::tuple(positional);
    const Object result = python::check(PyObject_Call(function_, given.get(), keywords.get()));
    give(changed ? changed.get() : result.get(), operands);
  }

  static Object range(int64_t length) {
    const Object bound = python::integer(length);
    return python::call(reinterpret_cast<PyObject*>(&PyRange_Type), {bound.get()});
  }

  void give(PyObject* result, const execute::Operands& operands) const {
    if (!PyList_CheckExact(result)) {
      if (kinds_.size() == 1) operands.out(0) = to_slot(result, kinds_[0], !draws_);
      return;
    }
    if (PyList_GET_SIZE(result) != static_cast<Py_ssize_t>(kinds_.size()))
      throw std::runtime_error("a function of Python's library gave a list of another length");
    for (size_t i = 0; i < kinds_.size(); ++i)
      operands.out(i) =
          to_slot(PyList_GET_ITEM(result, static_cast<Py_ssize_t>(i)), kinds_[i], !draws_);
  }

  std::vector<PythonArgument> arguments_;
  std::vector<graph::Type::Kind> kinds_;
  PyObject* function_ = nullptr;   // lives as long as the process, as does
  PyObject* generator_ = nullptr;  // the one that a function of a module draws from
  bool of_instance_ = false;       // its first operand is the generator
  bool draws_ = false;
};

}  // namespace

std::unique_ptr<execute::Operation> bind_python_call(const graph::Node& node) {
  if (node.op != &op::python_call && node.op != &op::python_draw) return nullptr;
  return std::make_unique<PythonCall>(node);
}

}  // namespace janus::torch
