// The reducer of DistributedDataParallel for Python: see torch/reducer.h.
#pragma once

#include <nanobind/nanobind.h>

namespace janus::bind {

void bind_reducer(nanobind::module_& module);

}  // namespace janus::bind
