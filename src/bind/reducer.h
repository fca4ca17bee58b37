// What a graph leaves undone at the reducer of DistributedDataParallel.
#pragma once

#include <nanobind/nanobind.h>

namespace janus::bind {

void bind_reducer(nanobind::module_& module);

}  // namespace janus::bind
