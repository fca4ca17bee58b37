#include "speculate/finalizers.h"

#include <algorithm>
#include <set>

#include "base/policy.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {
namespace {

using Captured = std::span<const python::Object>;

Py_ssize_t references_from(Captured captured, PyObject* object) {
  return std::ranges::count_if(captured, [&](const auto& each) { return each.is(object); });
}

/// A quick answer for most replaced objects: numbers, strings, tensors and functions have none.
bool has_no_finalizer(PyObject* object) {
  return object == Py_None || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyBool_Check(object) || PyUnicode_CheckExact(object) || PyType_Check(object) ||
         PyModule_Check(object) || PyFunction_Check(object) || tensor_access().is_tensor(object);
}

class Search {
 public:
  explicit Search(Captured captured) : captured_(captured) {}

  bool finds(PyObject* object) {
    if (has_no_finalizer(object)) return false;
    if (seen_.size() >= policy::kMostObjectsForFinalizers || !seen_.insert(object).second)
      return false;
    PyTypeObject* const type = Py_TYPE(object);
    const bool is_of_python = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
    if (is_of_python && type->tp_finalize != nullptr) return true;
    if (PyType_SUPPORTS_WEAKREFS(type) &&
        *reinterpret_cast<PyObject**>(PyObject_GET_WEAKREFS_LISTPTR(object)) != nullptr)
      return true;
    return type->tp_traverse != nullptr && type->tp_traverse(object, visit, this) != 0;
  }

 private:
  static int visit(PyObject* part, void* search) {
    auto& self = *static_cast<Search*>(search);
    const bool is_freed = Py_REFCNT(part) <= 1 + references_from(self.captured_, part);
    return is_freed && self.finds(part) ? 1 : 0;
  }

  Captured captured_;
  std::set<PyObject*> seen_;
};

}  // namespace

bool may_run_finalizer(PyObject* object, Captured captured) {
  return Search(captured).finds(object);
}

bool would_run_finalizer(PyObject* object, Py_ssize_t references, Captured captured) {
  return object != nullptr && !has_no_finalizer(object) &&
         Py_REFCNT(object) <= references + references_from(captured, object) &&
         may_run_finalizer(object, captured);
}

}  // namespace janus::speculate
