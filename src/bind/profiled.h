// Profiled calls: the instrumented copy of a function runs, and its time is noted.
#pragma once

#include "speculate/dispatch.h"

namespace janus::bind {

/// The result, a new reference; null with the exception that the function raised.
PyObject* profiled_call(speculate::Dispatcher& dispatcher, const speculate::Call& call);

}  // namespace janus::bind
