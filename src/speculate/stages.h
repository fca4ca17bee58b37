// What a graph that is being made goes through, told to a listener in Python: notebooks show it.
// Nobody listens by default.
#pragma once

#include <string>

#include "python/object.h"

namespace janus::speculate {

/// Calls the listener with the stage, and with name, file and line of what is converted. Stages are
/// "generating", "compiling" (in the background, while calls run in Python), "ready" and "refused".
/// What the listener raises is written as unraisable, since it is no error of the program's call.
void tell_stage(const char* stage, const std::string& name, const std::string& file, int line);

/// From now on this callable is told; null: nobody.
void listen_to_stages(python::Object listener);

}  // namespace janus::speculate
