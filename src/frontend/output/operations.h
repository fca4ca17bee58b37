// Fills the table of core/operations.h.
#pragma once

namespace janus::frontend {

/// Once, at start-up.
void install_operations();

}  // namespace janus::frontend
