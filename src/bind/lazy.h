// Lazy execution, for the Python package.
#pragma once

#include <nanobind/nanobind.h>

namespace janus::bind {

void bind_lazy(nanobind::module_& module);

}  // namespace janus::bind
