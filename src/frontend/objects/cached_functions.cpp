// The cache is a dict inside the function's object, found through the garbage collector; its links
// are read at known offsets.
#include "frontend/objects/cached_functions.h"

#include <vector>

#include "frontend/control/journal.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/folding.h"
#include "speculate/path.h"

namespace janus::frontend {

using python::Object;

namespace {

/// The parts of a function with a cache, found through the garbage collector: most have no name in
/// Python.
struct Parts {
  struct Link {
    PyObject *key, *result;
  };
  std::vector<Link> links;  ///< of a bounded cache: they hold the results
  PyTypeObject* of_links = nullptr;
  PyObject* cache = nullptr;  ///< the dict from keys to results, or to links
  PyObject* mark = nullptr;   ///< stands between positional arguments and others in a key

  explicit Parts(PyObject* function) {
    const std::vector<PyObject*> found = referents(function);
    size_t i = 1;  // behind its class: of each link the key, the result, and the class of links
    for (; i + 2 < found.size() && is_link_class(found[i + 2]); i += 3) {
      links.push_back({found[i], found[i + 1]});
      of_links = reinterpret_cast<PyTypeObject*>(found[i + 2]);
    }
    const Object attributes = Object::steal(PyObject_GenericGetDict(function, nullptr));
    for (; i < found.size(); ++i) {
      if (PyDict_CheckExact(found[i]) && !attributes.is(found[i]) && cache == nullptr)
        cache = found[i];
      if (Py_IS_TYPE(found[i], &PyBaseObject_Type)) mark = found[i];
    }
  }

 private:
  static std::vector<PyObject*> referents(PyObject* object) {
    std::vector<PyObject*> found;
    const visitproc note = [](PyObject* each, void* list) {
      static_cast<std::vector<PyObject*>*>(list)->push_back(each);
      return 0;
    };
    Py_TYPE(object)->tp_traverse(object, note, &found);
    return found;
  }

  static bool is_link_class(PyObject* object) {
    return PyType_Check(object) &&
           std::string_view(reinterpret_cast<PyTypeObject*>(object)->tp_name) ==
               "functools._lru_list_elem";
  }
};

/// The offset of the result within a link, behind its key; 0: not known. A link is reused for other
/// keys and results.
Py_ssize_t place_of_result(PyObject* link, const Parts& parts) {
  constexpr Py_ssize_t word = sizeof(PyObject*);
  const Py_ssize_t size = Py_TYPE(link)->tp_basicsize;
  for (Py_ssize_t place = sizeof(PyObject); place + 2 * word <= size; place += word)
    for (const Parts::Link& each : parts.links)
      if (speculate::object_at(link, place) == each.key &&
          speculate::object_at(link, place + word) == each.result)
        return place + word;
  return 0;
}

/// The key of the arguments, as functools makes it.
Object cache_key(Interpreter& interpreter, PyObject* mark, const CallArguments& arguments) {
  std::vector<Object> parts;
  for (const Value& value : arguments.positional) parts.push_back(key_object(interpreter, value));
  if (arguments.keywords.empty() && parts.size() == 1 &&
      (PyUnicode_CheckExact(parts[0].get()) || PyLong_CheckExact(parts[0].get())))
    return parts[0];
  if (!arguments.keywords.empty()) parts.push_back(Object::borrow(mark));
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

}  // namespace

Value call_cached_function(Interpreter& interpreter, const Known& function,
                           const CallArguments& arguments) {
  PyObject* const object = function.object.get();
  const Parts parts(object);
  if (is_typed(object) || parts.cache == nullptr || parts.mark == nullptr) return nullptr;
  const Object key = cache_key(interpreter, parts.mark, arguments);
  Object result = python::dict_item(parts.cache, key.get());
  if (!result) return nullptr;
  const Source* place = interpreter.sources().step(
      Source::Kind::item,
      interpreter.sources().root(Source::Kind::constant, Object::borrow(parts.cache)), key);
  if (Py_TYPE(result.get()) == parts.of_links) {
    const Py_ssize_t offset = place_of_result(result.get(), parts);
    if (offset == 0) return nullptr;
    place = interpreter.sources().step(Source::Kind::link_result, place,
                                       Object::borrow(reinterpret_cast<PyObject*>(parts.of_links)),
                                       offset);
    result = Object::borrow(speculate::object_at(result.get(), offset));
  }
  interpreter.assume_identity(function);
  interpreter.assume(Assumption::Kind::identity, place, result);
  call_behind_run(interpreter, object, arguments);
  return interpreter.wrap(result.get(), interpreter.sources().root(Source::Kind::constant, result));
}

}  // namespace janus::frontend
