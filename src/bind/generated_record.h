// A record of all that the generator gives, for golden files of the front end: graphs as they are
// before the passes, what is assumed, and refusals.
#pragma once

#include <nanobind/nanobind.h>

namespace janus::bind {

/// Adds record_generated() and take_generated() to torchjanus._core.testing.
void bind_generated_record(nanobind::module_& testing);

}  // namespace janus::bind
