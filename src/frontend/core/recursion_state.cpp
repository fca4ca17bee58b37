#include "frontend/core/recursion_state.h"

#include <algorithm>

#include "frontend/core/entry_facts.h"

namespace janus::frontend {

using python::Object;
using speculate::Source;

bool is_data(const Value& value) {
  if (const auto* tuple = as<Sequence>(value)) return tuple->source != nullptr;
  const auto* known = as<Known>(value);
  if (known == nullptr) return false;
  static PyObject* const module =
      PyObject_GetAttrString(python::check(PyImport_ImportModule("torch.nn")).get(), "Module");
  PyTypeObject* type = Py_TYPE(known->object.get());
  if (type == &PyList_Type || type == &PyTuple_Type || type == &PyDict_Type)
    return known->source != nullptr;
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && !PyType_Check(known->object.get()) &&
         PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(module)) == 0;
}

const Source* path_at_entry(const Value& value) {
  if (const auto* tuple = as<Sequence>(value)) return tuple->source;
  const auto* known = as<Known>(value);
  return known == nullptr ? nullptr : known->source;
}

std::string place_of(const Source* source) {
  if (source->kind == Source::Kind::index && source->base != nullptr)
    return source->base->describe() + "[*]";
  return source->describe();
}

void Generalisation::add(const Generalise& found) {
  if (!found.written.empty()) written.push_back(found.written);
  if (found.function != nullptr && recursive.insert(found.function).second)
    facts_keys.push_back(found.facts_key);
  if (!found.run_time.empty()) run_time.insert(found.run_time);
  if (!found.varying.empty()) varying.emplace(found.function, found.varying);
  if (found.equal) equal_sizes.insert(*found.equal);
}

bool Generalisation::owns(const TestKey& test) const {
  return std::any_of(facts_keys.begin(), facts_keys.end(),
                     [&](const Object& key) { return key.is(test.facts_key.get()); });
}

bool RecursionState::is_run_time(const Source* source) const {
  return !known_.run_time.empty() && (known_.run_time.contains(source->describe()) ||
                                      known_.run_time.contains(place_of(source)));
}

void RecursionState::leave_to_run(const Value& value) const {
  const Source* path = is_data(value) ? path_at_entry(value) : nullptr;
  if (path != nullptr && facts_.differs_from_call_to_call(path))
    throw Generalise{.run_time = place_of(path)};
}

bool RecursionState::is_first_activation(const TestKey& test) const {
  return known_.owns(test) && !is_building();
}

bool RecursionState::is_recursive(const Code& code) const {
  return known_.owns({code.facts_key, -1});
}

}  // namespace janus::frontend
