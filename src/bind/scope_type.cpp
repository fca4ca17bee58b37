#include "bind/scope_type.h"

#include <memory>
#include <utility>
#include <vector>

#include "bind/co_execution_scope.h"
#include "bind/region.h"
#include "python/type_slots.h"

namespace janus::bind {

namespace {

using python::slot;

struct ScopeObject {
  PyObject_HEAD std::shared_ptr<CoExecutionScope>* scope;
};

CoExecutionScope& scope_of(PyObject* object) {
  return **reinterpret_cast<ScopeObject*>(object)->scope;
}

PyObject* create(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"regions", "is_loop", nullptr};
  PyObject* regions = nullptr;
  int is_loop = 0;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "Op:CoExecutionScope",
                                  const_cast<char**>(names), &regions, &is_loop) == 0)
    return nullptr;
  try {
    auto scope = std::make_shared<CoExecutionScope>(is_loop != 0 ? CoExecution::Kind::loop
                                                                 : CoExecution::Kind::function);
    std::vector<PyObject*> of_iteration;
    const std::vector<python::Object> given = python::elements(regions);
    for (const python::Object& region : given) of_iteration.push_back(region.get());
    if (!put_into_scope(of_iteration, scope)) {
      PyErr_SetString(PyExc_TypeError, "CoExecutionScope: regions must be Regions, one or more");
      return nullptr;
    }
    auto* made = reinterpret_cast<ScopeObject*>(type->tp_alloc(type, 0));
    if (made == nullptr) return nullptr;
    made->scope = new std::shared_ptr<CoExecutionScope>(std::move(scope));
    return reinterpret_cast<PyObject*>(made);
  } catch (const python::ErrorSet&) {
    return nullptr;
  }
}

void deallocate(PyObject* object) {
  delete reinterpret_cast<ScopeObject*>(object)->scope;
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* begin_with(PyObject* object, PyObject* /*unused*/) {
  try {
    scope_of(object).enter();
    Py_RETURN_NONE;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

PyObject* end_with(PyObject* object, PyObject* const* error, Py_ssize_t count) {
  const bool is_error = count > 0 && error[0] != Py_None;
  if (!scope_of(object).exit(is_error)) return nullptr;
  Py_RETURN_NONE;
}

/// Code that is pickled by value arrives without its scopes, as without its regions.
PyObject* reduce(PyObject* /*object*/, PyObject* /*protocol*/) {
  try {
    const python::Object made = python::import_attribute("torchjanus.regions", "Unconverted");
    return python::tuple({made, python::tuple({})}).release();
  } catch (const python::ErrorSet&) {
    return nullptr;
  }
}

PyMethodDef methods[] = {
    {"__enter__", begin_with, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(end_with)),
     METH_FASTCALL, "Ends the last iteration, and runs all that is pending."},
    {"__reduce_ex__", reduce, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

constexpr const char* kDoc = "A loop or function of a script whose iterations may be co-executed.";

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(kDoc)},
                       {Py_tp_new, slot(create)},
                       {Py_tp_dealloc, slot(deallocate)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

PyType_Spec spec = {"torchjanus.CoExecutionScope", sizeof(ScopeObject), 0, Py_TPFLAGS_DEFAULT,
                    slots};

}  // namespace

PyObject* co_execution_scope_type() {
  static PyObject* type = python::check(PyType_FromSpec(&spec)).release();
  return type;
}

}  // namespace janus::bind
