// The lattice of facts, and the process's ProfileStore.
#include "speculate/facts.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/policy.h"

namespace janus::speculate {
namespace {

using python::Object;

/// Whether the object is a C function that is bound to no object of the program.
bool is_builtin(PyObject* object) {
  if (Py_TYPE(object) == &PyMethodDescr_Type || Py_TYPE(object) == &PyWrapperDescr_Type)
    return true;
  if (!PyCFunction_Check(object)) return false;
  PyObject* const self = PyCFunction_GET_SELF(object);
  return self == nullptr || PyModule_Check(self) || PyType_Check(self);
}

/// Whether the object is a constant that may be kept, since it keeps nothing of the program alive.
bool is_plain(PyObject* object) {
  if (object == Py_None || object == Py_Ellipsis || object == Py_NotImplemented) return true;
  if (PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
      PyComplex_CheckExact(object))
    return true;
  if (is_builtin(object)) return true;
  if (PyUnicode_CheckExact(object)) return PyUnicode_GET_LENGTH(object) <= policy::kLongestKeptText;
  if (PyBytes_CheckExact(object)) return PyBytes_GET_SIZE(object) <= policy::kLongestKeptText;
  if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) > policy::kLongestKeptTuple)
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!is_plain(PyTuple_GET_ITEM(object, i))) return false;
  return true;
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// Whether two such objects have the same class and value.
bool same_plain(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyComplex_CheckExact(a)) {
    const Py_complex left = PyComplex_AsCComplex(a), right = PyComplex_AsCComplex(b);
    return same_bits(left.real, right.real) && same_bits(left.imag, right.imag);
  }
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
      if (!same_plain(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  return python::equal(a, b);  // int, str, bytes, builtins: comparing runs no code of the program
}

}  // namespace

PyObject* ValueFact::value() const {
  if (level_ != Level::value) return nullptr;
  // A living referent has another owner, so the reference can be borrowed.
  return value_is_weak_ ? python::referent(value_.get()).get() : value_.get();
}

void ValueFact::see_class(PyObject* object) {
  if (too_many_classes_) return;
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  for (const Object& each : classes_)
    if (each.is(type)) return;
  too_many_classes_ = classes_.size() == policy::kMostClassesSeen;
  if (too_many_classes_)
    classes_.clear();
  else
    classes_.push_back(Object::borrow(type));
}

void ValueFact::see(PyObject* object) {
  see_class(object);
  if (level_ == Level::anything) return;
  if (level_ == Level::nothing) return start(object);
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != type_.get()) return rise(Level::anything);
  if (level_ == Level::type) return;
  const bool fits = level_ == Level::value ? is_same_value(object) : join_tensor(object);
  if (!fits) rise(Level::type);
}

void ValueFact::start(PyObject* object) {
  type_ = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  if (start_tensor(object)) return;
  if (is_plain(object)) {
    value_ = Object::borrow(object);
  } else {
    value_ = python::weak_reference(object);
    value_is_weak_ = true;
  }
  level_ = value_ ? Level::value : Level::type;
}

bool ValueFact::start_tensor(PyObject* object) {
  if (!has_tensor_access() || !tensor_access().is_tensor(object)) return false;
  std::string why_not;
  const auto tensor = tensor_access().describe(object, &why_not);
  if (!tensor) return false;
  is_tensor_ = true;
  dtype_ = tensor->dtype;
  sizes_ = least_sizes_ = tensor->sizes;
  level_ = Level::shape;
  return true;
}

bool ValueFact::join_tensor(PyObject* object) {
  std::string why_not;
  const auto tensor = tensor_access().describe(object, &why_not);
  if (!tensor || tensor->dtype != dtype_ || tensor->sizes.size() != sizes_.size()) return false;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (tensor->sizes[i] == sizes_[i]) continue;
    sizes_[i] = -1;
    least_sizes_[i] = std::min(least_sizes_[i], tensor->sizes[i]);
    level_ = Level::varying_shape;
  }
  return true;
}

void ValueFact::note_tensor(uint64_t call, PyObject* object) {
  const auto tensor = tensor_access().describe(object, nullptr);
  if (!tensor || (!latest_.empty() && latest_.back().call == call)) return;
  latest_.push_back({call, object, tensor->sizes});
  if (latest_.size() > policy::kMostCallsCompared) latest_.pop_front();
}

bool ValueFact::have_differed(const ValueFact& a, size_t dimension, const ValueFact& b,
                              size_t other_dimension) {
  for (const TensorInCall& one : a.latest_)
    for (const TensorInCall& other : b.latest_)
      if (one.call == other.call && dimension < one.sizes.size() &&
          other_dimension < other.sizes.size() &&
          one.sizes[dimension] != other.sizes[other_dimension])
        return true;
  return false;
}

bool ValueFact::were_different(const ValueFact& a, const ValueFact& b) {
  return std::ranges::any_of(a.latest_, [&](const TensorInCall& one) {
    return std::ranges::any_of(b.latest_, [&](const TensorInCall& other) {
      return one.call == other.call && one.identity != other.identity;
    });
  });
}

bool ValueFact::is_same_value(PyObject* object) const {
  return value_is_weak_ ? python::referent(value_.get()).is(object)
                        : same_plain(value_.get(), object);
}

void ValueFact::rise(Level level) {
  level_ = level;
  value_ = {};
  value_is_weak_ = false;
  sizes_.clear();
  least_sizes_.clear();
  if (level == Level::anything) {
    type_ = {};
    is_tensor_ = false;
  }
}

std::string ValueFact::type_text() const {
  return python::to_string(python::attribute(type_.get(), "__qualname__").get());
}

std::string ValueFact::describe() const {
  switch (level_) {
    case Level::nothing:
      return "nothing";
    case Level::value: {
      PyObject* const seen = value();
      return seen == nullptr ? "one " + type_text() : python::repr(seen);
    }
    case Level::shape:
    case Level::varying_shape: {
      std::string text = cat(graph::name(dtype_), "[");
      for (size_t i = 0; i < sizes_.size(); ++i)
        text += cat(i == 0 ? "" : ",", sizes_[i] < 0 ? "?" : std::to_string(sizes_[i]));
      return text + "]";
    }
    case Level::type:
      return type_text();
    case Level::anything:
      return "anything";
  }
  return "?";
}

void NodeFact::see_trips(int64_t count) {
  least_trips = least_trips < 0 ? count : std::min(least_trips, count);
  most_trips = std::max(most_trips, count);
}

NodeFact& NodeFacts::at(size_t number) {
  std::unique_ptr<NodeFact>& fact = facts_.at(number);
  if (fact == nullptr) fact = std::make_unique<NodeFact>();
  return *fact;
}

const NodeFact& NodeFacts::at(size_t number) const {
  static const auto& nothing = *new NodeFact();
  const NodeFact* const fact = facts_.at(number).get();
  return fact == nullptr ? nothing : *fact;
}

Facts& ProfileStore::of(PyObject* code, size_t node_count) {
  std::unique_ptr<Facts>& facts = facts_[code];
  if (facts == nullptr) {
    alive_.push_back(Object::borrow(code));
    facts = std::make_unique<Facts>();
  }
  // Never shrinks: hooks of an older instrumented copy keep their numbers.
  if (facts->nodes.size() < node_count) facts->nodes.resize(node_count);
  return *facts;
}

Facts* ProfileStore::find(PyObject* code) {
  const auto found = facts_.find(code);
  return found == facts_.end() ? nullptr : found->second.get();
}

ProfileStore& profiles() {
  static auto& store = *new ProfileStore();  // never freed, since the interpreter ends before it
  return store;
}

}  // namespace janus::speculate
