// Connects the rooms when the extension module is imported.
#pragma once

#include <nanobind/nanobind.h>

namespace janus::bind {

/// Exceptions of the rooms pass through; the import fails with them.
void start_up();

/// The debug switches as functions of the module.
void bind_options(nanobind::module_& module);

}  // namespace janus::bind
