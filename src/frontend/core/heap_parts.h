// What the files of the heap share.
#pragma once

#include <map>
#include <vector>

#include "frontend/core/heap.h"
#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The object that a path leads to in the call at hand; null if it leads nowhere.
class Resolver {
 public:
  explicit Resolver(Interpreter& interpreter) : interpreter_(interpreter) {}
  PyObject* operator()(const Source* source);

 private:
  Interpreter& interpreter_;
  std::map<const Source*, PyObject*> objects_;
  std::vector<python::Object> owned_;
};

/// Whether it is the path to what `object.__dict__` gives.
bool is_own_dictionary(const Source* source);

bool is_changed(const Heap::List& list);

}  // namespace janus::frontend
