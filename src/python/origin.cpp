#include "python/origin.h"

#include <map>
#include <string>
#include <utility>

namespace janus::python {
namespace {

std::string text_attribute(PyObject* object, const char* name) {
  const Object text = try_attribute(object, name);
  return text && PyUnicode_Check(text.get()) ? to_string(text.get()) : std::string();
}

/// The file of a module that is loaded; empty if there is none.
std::string file_of(std::string_view name) {
  const Object module = Object::steal(PyImport_GetModule(string(name).get()));
  PyErr_Clear();
  return module ? text_attribute(module.get(), "__file__") : std::string();
}

/// Its folder, with the last slash; empty if there is no such folder.
const std::string& folder_of(std::string_view name) {
  static auto* const known = new std::map<std::string, std::string, std::less<>>();
  const auto found = known->find(name);
  if (found != known->end()) return found->second;
  std::string file = file_of(name);
  file.resize(file.find_last_of('/') + 1);
  return known->emplace(name, std::move(file)).first->second;
}

/// Installed packages lie below the folder of Python's own library, so that is not enough.
bool lies_in(std::string_view file, std::string_view folder) {
  if (folder.empty() || !file.starts_with(folder)) return false;
  file.remove_prefix(folder.size());
  return !file.starts_with("site-packages/") && !file.starts_with("dist-packages/");
}

bool is_of_python(std::string_view module) {
  PyObject* names = PySys_GetObject("stdlib_module_names");
  const bool found = names != nullptr && PySet_Contains(names, string(module).get()) == 1;
  PyErr_Clear();
  return found;
}

/// contextlib, and `deprecated` of typing_extensions.
bool has_decorators(const std::string& file) {
  static const auto* const extensions = new std::string(file_of("typing_extensions"));
  return file == *extensions || lies_in(file, folder_of("contextlib"));
}

/// Follows decorators to what they wrap: those of others may stand before the library's code.
bool is_made_by(PyFunctionObject* function, std::string_view library) {
  const std::string file = text_attribute(function->func_code, "co_filename");
  const Object inner = try_attribute(reinterpret_cast<PyObject*>(function), "__wrapped__");
  const bool is_outer = inner && PyFunction_Check(inner.get());
  const bool is_own = file.starts_with("<frozen ") || lies_in(file, folder_of(library)) ||
                      (is_outer && has_decorators(file));
  return is_own && (!inner || python::is_made_by(inner.get(), library));
}

/// Private C modules of a library, and those that compilers make, begin with an underscore.
bool is_made_by(PyTypeObject* type, std::string_view library) {
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return true;
  std::string module = text_attribute(reinterpret_cast<PyObject*>(type), "__module__");
  module.resize(std::min(module.size(), module.find('.')));
  if (module == library || module == "builtins") return true;
  return (module.starts_with('_') && module != "__main__") ||
         (is_of_python(library) && is_of_python(module));
}

}  // namespace

bool is_made_by(PyObject* object, std::string_view library) {
  if (PyFunction_Check(object))
    return is_made_by(reinterpret_cast<PyFunctionObject*>(object), library);
  if (PyMethod_Check(object)) return is_made_by(PyMethod_GET_FUNCTION(object), library);
  if (PyType_Check(object)) return is_made_by(reinterpret_cast<PyTypeObject*>(object), library);
  for (const auto& [type, name] : {std::pair{&PyProperty_Type, "fget"},
                                   {&PyStaticMethod_Type, "__func__"},
                                   {&PyClassMethod_Type, "__func__"}}) {
    if (!PyObject_TypeCheck(object, type)) continue;
    const Object inner = try_attribute(object, name);
    return !inner || inner.is(Py_None) || is_made_by(inner.get(), library);
  }
  return is_made_by(Py_TYPE(object), library);
}

}  // namespace janus::python
