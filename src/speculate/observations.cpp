#include "speculate/observations.h"

#include <algorithm>
#include <cctype>

#include "base/check.h"
#include "base/policy.h"

namespace janus::speculate {
namespace {

bool is_number_tuple(PyObject* object) {
  if (!PyTuple_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    PyObject* element = PyTuple_GET_ITEM(object, i);
    if (!PyLong_CheckExact(element) && !PyFloat_CheckExact(element) && !PyBool_Check(element))
      return false;
  }
  return true;
}

/// Calls `visit` with the path and object of each element of a tuple of numbers.
template <class Visit>
void for_each_element(const std::string& path, PyObject* object, Visit&& visit) {
  if (!is_number_tuple(object)) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    visit(cat(path, "[", i, "]"), PyTuple_GET_ITEM(object, i));
}

constexpr const char* kObject = "object";

/// Whether the object is data: an instance of a class written in Python (but no torch module, which
/// is rather code), a list or a tuple, a function with variables of its own.
bool is_plain_object(PyObject* object) {
  static PyObject* const module = python::import_attribute("torch.nn", "Module").release();
  PyTypeObject* type = Py_TYPE(object);
  if (PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyDict_CheckExact(object))
    return true;
  if (PyFunction_Check(object)) return PyFunction_GetClosure(object) != nullptr;
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 || PyType_Check(object)) return false;
  return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(module)) == 0;
}

/// Whether the path leads to an element of a list or tuple.
bool is_element(const std::string& path) {
  return path.size() > 2 && path.back() == ']' &&
         std::isdigit(static_cast<unsigned char>(path[path.size() - 2])) != 0;
}

/// The path without indices, which stands for all elements of the same containers.
std::string path_of_alike(const std::string& path) {
  std::string alike;
  for (size_t i = 0; i < path.size(); ++i) {
    alike += path[i];
    if (path[i] != '[') continue;
    while (i + 1 < path.size() && std::isdigit(static_cast<unsigned char>(path[i + 1])) != 0) ++i;
  }
  return alike;
}

/// The fact about a value that may be any of the class of these two.
ValueFact any_like(const python::Object& one, const python::Object& another) {
  ValueFact fact;
  fact.see(one.get());
  fact.see(another.get());
  return fact;
}

ValueFact any_text() { return any_like(python::string("one"), python::string("another")); }

ValueFact any_number(PyObject* number) {
  if (PyLong_CheckExact(number)) return any_like(python::integer(2), python::integer(3));
  return any_like(python::Object::steal(PyFloat_FromDouble(2)),
                  python::Object::steal(PyFloat_FromDouble(3)));
}

/// Whether other paths are expected to vary as this one does: those of other elements, and numbers
/// of other elements (the learning rates of an optimizer's groups).
bool stands_for_others(const std::string& path, const std::string& kind) {
  return is_element(path) || (kind == "float" && path_of_alike(path) != path);
}

/// The kind of an object; empty for objects that are not recorded, such as flags outside of
/// containers. Sizes 0 and 1 are part of a tensor's kind: a symbolic dimension never stands for
/// them.
std::string kind_of(const std::string& path, PyObject* object) {
  if (PyBool_Check(object)) return is_element(path) ? "bool" : "";
  if (PyLong_CheckExact(object)) return "int";
  if (PyFloat_CheckExact(object)) return "float";
  if (is_number_tuple(object)) return cat("tuple of ", PyTuple_GET_SIZE(object));
  if (!tensor_access().is_tensor(object)) return is_plain_object(object) ? kObject : "";
  const auto fact = tensor_access().describe(object, nullptr);
  if (!fact) return {};
  std::string kind(graph::name(fact->dtype));
  for (const int64_t size : fact->sizes) kind += size < 2 ? cat(",", size) : std::string(",n");
  return kind;
}

}  // namespace

void Observations::begin_call() {
  ++call_;
  tensors_.clear();
}

void Observations::forget() {
  Observations fresh;
  fresh.expected_to_vary_ = std::move(expected_to_vary_);
  *this = std::move(fresh);
}

void Observations::note_tensor(const Key& key, ValueFact& fact, PyObject* object) {
  fact.note_tensor(call_, object);
  const Key& first = tensors_.try_emplace(object, key).first->second;
  if (first != key) shared_.emplace(first, key);
}

/// A text becomes an input only when many were seen: few are choices, each with graphs of its own.
bool Observations::see_text(const std::string& path, PyObject* text) {
  std::set<Py_hash_t>& values = texts_[path];
  if (values.size() >= policy::kFirstValues) return false;
  values.insert(PyObject_Hash(text));
  return values.size() == policy::kFirstValues;
}

bool Observations::see(const std::string& path, PyObject* object) {
  if (PyUnicode_CheckExact(object)) return see_text(path, object);
  const std::string kind = kind_of(path, object);
  if (kind.empty()) return false;
  for_each_element(path, object, [&](const std::string& element_path, PyObject* element) {
    see(element_path, element);
  });
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object)) {
    std::set<Py_hash_t>& values = numbers_[path];
    if (values.size() < policy::kMostValuesCounted) values.insert(PyObject_Hash(object));
  }
  const Key key(path, kind);
  ValueFact& fact = facts_[key];
  const ValueFact::Level level = fact.level();
  const std::vector<int64_t> sizes = fact.sizes();
  fact.see(object);
  if (fact.is_tensor()) note_tensor(key, fact, object);
  if (level == ValueFact::Level::nothing || kind == kObject) return false;
  // Another tensor of the same shape is nothing new, since identity of tensors is never assumed.
  if (fact.is_tensor()) return fact.sizes() != sizes;
  if (fact.level() == level) return false;
  if (stands_for_others(path, kind))
    varied_elements_.insert_or_assign({path_of_alike(path), kind}, fact);
  return true;
}

void Observations::add_fact(const std::string& path, PyObject* object,
                            std::map<std::string, ValueFact, std::less<>>& facts,
                            bool with_texts) const {
  if (PyUnicode_CheckExact(object)) {
    const auto seen = texts_.find(path);
    if (with_texts && seen != texts_.end() && seen->second.size() >= policy::kFirstValues)
      facts.insert_or_assign(path, any_text());
    return;
  }
  const std::string kind = kind_of(path, object);
  const auto found = facts_.find({path, kind});
  if (found != facts_.end()) facts.insert_or_assign(path, found->second);
  if ((kind == "int" || kind == "float") && expected_to_vary_.contains(path))
    facts.insert_or_assign(path, any_number(object));
  // If some flags or numbers of a list have varied, the others are expected to vary.
  const auto alike = stands_for_others(path, kind)
                         ? varied_elements_.find({path_of_alike(path), kind})
                         : varied_elements_.end();
  if (alike != varied_elements_.end()) facts.insert_or_assign(path, alike->second);
  for_each_element(path, object, [&](const std::string& element_path, PyObject* element) {
    add_fact(element_path, element, facts, with_texts);
  });
}

bool Observations::texts_vary() const {
  return std::ranges::any_of(
      texts_, [](const auto& each) { return each.second.size() >= policy::kFirstValues; });
}

bool Observations::any_varies() const {
  if (texts_vary() || !expected_to_vary_.empty()) return true;
  for (const auto& [key, fact] : facts_) {
    if (fact.is_tensor() ? fact.level() >= ValueFact::Level::varying_shape
                         : fact.level() > ValueFact::Level::value)
      return true;
  }
  return aliases_vary();
}

bool Observations::aliases_vary() const {
  return std::ranges::any_of(shared_, [&](const auto& pair) {
    return ValueFact::were_different(facts_.at(pair.first), facts_.at(pair.second));
  });
}

size_t Observations::most_values() const {
  size_t most = 0;
  for (const auto& [path, values] : numbers_) most = std::max(most, values.size());
  return most;
}

}  // namespace janus::speculate
