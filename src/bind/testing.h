// torchjanus._core.testing: guards and the dispatcher, driven by hand-written descriptions. Their
// tests need no generator.
#pragma once

#include <nanobind/nanobind.h>

namespace janus::bind {

void bind_testing(nanobind::module_& module);

}  // namespace janus::bind
