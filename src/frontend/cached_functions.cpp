#include "frontend/cached_functions.h"

#include <vector>

#include "frontend/callables.h"
#include "frontend/containers.h"
#include "frontend/effects.h"

namespace janus::frontend {

using python::Object;

namespace {

/// What the object refers to, as the garbage collector sees it: a function's cache has no other
/// name.
std::vector<PyObject*> referents(PyObject* object) {
  std::vector<PyObject*> found;
  const visitproc note = [](PyObject* each, void* list) {
    static_cast<std::vector<PyObject*>*>(list)->push_back(each);
    return 0;
  };
  Py_TYPE(object)->tp_traverse(object, note, &found);
  return found;
}

/// The dict from keys to results, or to links that hold them where the cache is bounded.
PyObject* cache_of(PyObject* function) {
  const Object attributes = Object::steal(PyObject_GenericGetDict(function, nullptr));
  for (PyObject* each : referents(function))
    if (PyDict_CheckExact(each) && !attributes.is(each)) return each;
  return nullptr;
}

/// What stands between positional arguments and others in a key: an object that the function made
/// for that.
PyObject* mark_of(PyObject* function) {
  for (PyObject* each : referents(function))
    if (Py_IS_TYPE(each, &PyBaseObject_Type)) return each;
  return nullptr;
}

/// The key of the arguments, as functools makes it.
Object cache_key(Interpreter& interpreter, PyObject* function, const CallArguments& arguments) {
  std::vector<Object> parts;
  for (const Value& value : arguments.positional) parts.push_back(key_object(interpreter, value));
  if (arguments.keywords.empty() && parts.size() == 1 &&
      (PyUnicode_CheckExact(parts[0].get()) || PyLong_CheckExact(parts[0].get())))
    return parts[0];
  if (!arguments.keywords.empty()) parts.push_back(Object::borrow(mark_of(function)));
  for (const auto& [name, value] : arguments.keywords) {
    parts.push_back(python::string(name));
    parts.push_back(key_object(interpreter, value));
  }
  return python::tuple(parts);
}

bool is_typed(PyObject* function) {
  const Object parameters = python::call_method(function, "cache_parameters");
  return python::dict_item(parameters.get(), "typed").is(Py_True);
}

/// What the link under the key holds: behind its class, the function shows of each link the key,
/// the result and the class.
PyObject* result_of(PyObject* function, PyObject* cache, PyObject* key) {
  PyObject *stored = nullptr, *link = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(cache, &position, &stored, &link) != 0)
    if (python::equal(stored, key)) break;
  auto* const of_links = reinterpret_cast<PyObject*>(Py_TYPE(link));
  const std::vector<PyObject*> shown = referents(function);
  for (size_t i = 1; i + 2 < shown.size() && shown[i + 2] == of_links; i += 3)
    if (shown[i] == stored) return shown[i + 1];
  return nullptr;
}

}  // namespace

bool is_cached_function(PyTypeObject* type) {
  static PyObject* const wrapper = imported("functools._lru_cache_wrapper");
  return reinterpret_cast<PyObject*>(type) == wrapper;
}

Value call_cached_function(Interpreter& interpreter, const Known& function,
                           const CallArguments& arguments) {
  PyObject* const object = function.object.get();
  if (is_typed(object)) return nullptr;
  PyObject* const cache = cache_of(object);
  if (cache == nullptr) return nullptr;
  const Object key = cache_key(interpreter, object, arguments);
  const Object entry = python::dict_item(cache, key.get());
  if (!entry) return nullptr;
  const bool is_link =
      std::string_view(Py_TYPE(entry.get())->tp_name) == "functools._lru_list_elem";
  const Object result = is_link ? Object::borrow(result_of(object, cache, key.get())) : entry;
  if (!result) return nullptr;
  interpreter.assume_identity(function);
  const Source* place = interpreter.sources().step(
      Source::Kind::item, interpreter.sources().root(Source::Kind::constant, Object::borrow(cache)),
      key);
  interpreter.assume(Assumption::Kind::identity, place, entry);
  call_behind_run(interpreter, object, arguments);
  return interpreter.wrap(result.get(), interpreter.sources().root(Source::Kind::constant, result));
}

}  // namespace janus::frontend
