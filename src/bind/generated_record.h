// A record of everything that the generator returns, for golden files of the front end: graphs
// before the passes, assumptions, and refusals.
#pragma once

#include <nanobind/nanobind.h>

namespace janus::bind {

/// Adds record_generated() and take_generated() to torchjanus._core.testing.
void bind_generated_record(nanobind::module_& testing);

}  // namespace janus::bind
