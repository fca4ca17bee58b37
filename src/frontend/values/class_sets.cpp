#include "frontend/values/class_sets.h"

#include <algorithm>

namespace janus::frontend {

bool has_class(const Classes& classes, const PyTypeObject* type) {
  return std::ranges::any_of(classes, [&](const python::Object& each) {
    return each.get() == reinterpret_cast<const PyObject*>(type);
  });
}

Classes united(Classes classes, const Classes& more) {
  for (const python::Object& each : more)
    if (!has_class(classes, reinterpret_cast<PyTypeObject*>(each.get()))) classes.push_back(each);
  return classes;
}

}  // namespace janus::frontend
