// The one place that lists the tables of callables of all rooms.
#pragma once

namespace janus::frontend {

/// Registers them; once, at start-up.
void register_special_callables();

}  // namespace janus::frontend
