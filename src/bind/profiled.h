// Calls that are profiled: the instrumented copy runs, and its time is noted.
#pragma once

#include "speculate/dispatch.h"

namespace janus::bind {

/// A new reference, or null with the exception that the function raised.
PyObject* profiled_call(speculate::Dispatcher& dispatcher, const speculate::Call& call);

}  // namespace janus::bind
