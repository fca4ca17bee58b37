// Puts the rooms together when the extension module is imported.
#pragma once

#include <nanobind/nanobind.h>

namespace janus::bind {

/// Throws what the rooms throw; the import then fails with it.
void start_up();

/// The debug switches as functions of the module.
void bind_options(nanobind::module_& module);

}  // namespace janus::bind
