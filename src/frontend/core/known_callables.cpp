#include "frontend/core/known_callables.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "frontend/core/torch_objects.h"
#include "ops/list.h"
#include "python/origin.h"

namespace janus::frontend {

using python::Object;

PyObject* unbound_builtin(PyObject* method) {
  PyObject* const self = PyCFunction_Check(method) ? PyCFunction_GET_SELF(method) : nullptr;
  if (self == nullptr || PyModule_Check(self)) return nullptr;
  const bool is_of_class = PyType_Check(self);
  PyMethodDef* const code = reinterpret_cast<PyCFunctionObject*>(method)->m_ml;
  const Object name = Object::steal(PyUnicode_InternFromString(code->ml_name));
  auto* const owner = is_of_class ? reinterpret_cast<PyTypeObject*>(self) : Py_TYPE(self);
  PyObject* const found = _PyType_Lookup(owner, name.get());
  const bool binds_to_it =
      found != nullptr &&
      Py_IS_TYPE(found, is_of_class ? &PyClassMethodDescr_Type : &PyMethodDescr_Type) &&
      reinterpret_cast<PyMethodDescrObject*>(found)->d_method == code;
  return binds_to_it ? found : nullptr;
}

namespace {

/// The attribute path below `root`; null (and no exception) if a part is missing.
PyObject* find_attribute(PyObject* root, std::string_view path) {
  Object object = Object::borrow(root);
  while (object && !path.empty()) {
    size_t dot = path.find('.');
    std::string name(path.substr(0, dot));
    object = Object::steal(PyObject_GetAttrString(object.get(), name.c_str()));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  PyErr_Clear();
  return object.release();
}

/// What a class has in its dict for a class method that is written in C: each look-up binds it
/// anew. Any other callable is itself.
PyObject* without_class(PyObject* callable) {
  PyObject* const found = unbound_builtin(callable);
  return found != nullptr && Py_IS_TYPE(found, &PyClassMethodDescr_Type) ? found : callable;
}

std::span<const CallableTable> tables;

/// What is made of the tables lives as long as the process, like the callables of torch that they
/// name. What the program put under such a name before is not in them.
struct Registry {
  std::unordered_map<PyObject*, OperatorForm> forms;
  std::unordered_map<PyObject*, Handler> handlers;
  std::unordered_map<std::string, Handler> named_handlers;
  std::unordered_map<PyObject*, PyObject*> codes;  ///< of those that are written in Python
  std::unordered_map<std::string, OperatorForm> named;

  void note_code(PyObject* callable) {
    if (PyFunction_Check(callable))
      codes.try_emplace(callable, Py_NewRef(PyFunction_GET_CODE(callable)));
  }

  /// Whether it still does what its name says: nobody gave it another body.
  bool is_as_it_was(PyObject* callable) const {
    const auto noted = PyFunction_Check(callable) ? codes.find(callable) : codes.end();
    return noted == codes.end() || noted->second == PyFunction_GET_CODE(callable);
  }

  void add_form(const std::string& path, const graph::OpDef* op, bool in_place) {
    PyObject* callable = find_attribute(torch_module(), path);
    if (callable == nullptr || !python::is_made_by(callable, "torch")) return;
    note_code(callable);
    OperatorForm& form = forms[callable];
    for (const graph::OpDef* known : form.ops)
      if (known == op) return;
    form.ops.push_back(op);
    form.in_place = in_place;
  }

  void add_operator(const graph::OpDef& op) {
    std::string_view names = op.python;
    while (!names.empty()) {
      size_t end = names.find(' ');
      std::string path(names.substr(0, end));
      names = end == std::string_view::npos ? std::string_view() : names.substr(end + 1);
      if (path.empty()) continue;
      // A name with a trailing underscore stands for writing the result into the first operand.
      bool writes = path.ends_with('_') && !path.ends_with("__");
      add_form(path, &op, writes);
      named[path].ops.push_back(&op);
      named[path].in_place = writes;
      // Views have no in-place form that writes contents: `t_` and `detach_` change what a tensor
      // is.
      if (!path.ends_with('_') && !op.is(graph::Trait::view)) {
        add_form(path + "_", &op, true);
        OperatorForm& in_place = named[path + "_"];
        in_place.ops.push_back(&op);
        in_place.in_place = true;
      }
    }
  }

  void add_handlers(std::span<const SpecialCallable> table) {
    for (const SpecialCallable& special : table) {
      named_handlers.emplace(special.path, special.handler);
      const std::string_view path = special.path;
      PyObject* callable = imported(path);
      if (callable == nullptr || !python::is_made_by(callable, path.substr(0, path.find('.'))))
        continue;
      note_code(callable);
      handlers.emplace(without_class(callable), special.handler);
    }
  }

  /// Tables that are still empty.
  std::vector<CallableTable> pending;

  Registry() {
    for (const graph::OpDef* op : ops::all()) add_operator(*op);
    pending.assign(tables.begin(), tables.end());
    add_pending();
  }

  void add_pending() {
    std::erase_if(pending, [&](CallableTable table) {
      const auto callables = table();
      add_handlers(callables);
      return !callables.empty();
    });
  }
};

Registry& registry() {
  TORCHJANUS_CHECK(!tables.empty(), "known_callables: no table was registered");
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

void register_callables(std::span<const CallableTable> all) { tables = all; }

Handler special_handler(PyObject* callable) {
  Registry& known = registry();
  known.add_pending();
  const auto found = known.handlers.find(callable);
  return found == known.handlers.end() || !known.is_as_it_was(callable) ? nullptr : found->second;
}

Handler handler_named(std::string_view path) {
  const Handler handler = handler_named_or_null(path);
  TORCHJANUS_CHECK(handler != nullptr, "frontend: nothing handles ", path);
  return handler;
}

Handler handler_named_or_null(std::string_view path) {
  const auto found = registry().named_handlers.find(std::string(path));
  return found == registry().named_handlers.end() ? nullptr : found->second;
}

const OperatorForm* operator_form(PyObject* callable) {
  const Registry& known = registry();
  const auto found = known.forms.find(callable);
  return found == known.forms.end() || !known.is_as_it_was(callable) ? nullptr : &found->second;
}

const OperatorForm* operator_form_named(std::string_view python_name) {
  auto found = registry().named.find(std::string(python_name));
  return found == registry().named.end() ? nullptr : &found->second;
}

}  // namespace janus::frontend
