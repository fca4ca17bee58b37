// Python's heap as runs read it (execute/library/heap.h).
#pragma once

#include <memory>
#include <vector>

#include "execute/library/heap.h"
#include "python/object.h"

namespace janus::speculate {

/// `objects`: those that the graph's operators refer to by number, classes among them.
std::shared_ptr<const execute::Heap> object_heap(std::vector<python::Object> objects);

}  // namespace janus::speculate
