// Paths of the entry, followed in the call at hand.
#pragma once

#include <map>
#include <vector>

#include "frontend/core/frames.h"
#include "frontend/core/graph_writer.h"

namespace janus::frontend {

/// The object that a path leads to in the call at hand; null if it leads nowhere.
class Resolver {
 public:
  explicit Resolver(const Frames& frames) : frames_(frames) {}
  PyObject* operator()(const Source* source);

 private:
  const Frames& frames_;
  std::map<const Source*, PyObject*> objects_;
  std::vector<python::Object> owned_;
};

/// Whether it is the path to what `object.__dict__` gives.
bool is_own_dictionary(const Source* source);

}  // namespace janus::frontend
