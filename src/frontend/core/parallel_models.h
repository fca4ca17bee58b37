// Models within DistributedDataParallel that the run has called, whose gradients processes share.
#pragma once

#include <string>
#include <vector>

#include "frontend/values/value.h"
#include "python/object.h"

namespace janus::frontend {

struct ParallelModel {
  python::Object wrapper;  ///< the DistributedDataParallel
  python::Object module;   ///< the one within
  std::string group;       ///< the name of the processes' group
  Value reducer;
  /// Its parameters as the reducer sends their gradients: by bucket, in order.
  std::vector<std::vector<python::Object>> buckets;
  /// The next backward() that reaches the parameters shares their gradients. After a call within
  /// no_sync() alone it does not.
  bool shares = false;
  /// Some call was not within no_sync().
  bool has_shared = false;

  bool has(const PyObject* parameter) const {
    for (const auto& bucket : buckets)
      for (const python::Object& each : bucket)
        if (each.get() == parameter) return true;
    return false;
  }
};

}  // namespace janus::frontend
