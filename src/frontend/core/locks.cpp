#include "frontend/core/locks.h"

#include "frontend/core/heap.h"
#include "frontend/core/torch_objects.h"

namespace janus::frontend {

bool is_lock(PyObject* object) {
  static PyObject* const lock = imported("_thread.LockType");
  static PyObject* const reentrant = imported("_thread.RLock");
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return type == lock || type == reentrant;
}

PyObject* lock_in_use(const Heap& heap) {
  for (PyObject* identity : heap.table_order()) {
    const Heap::Table& table = *heap.table(identity);
    if (!table.changes.empty() && is_lock(table.target.object.get()))
      return table.target.object.get();
  }
  return nullptr;
}

}  // namespace janus::frontend
