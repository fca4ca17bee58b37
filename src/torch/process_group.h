// Processes that train together.
#pragma once

namespace janus::torch {

/// Whether the process belongs to a group of several, as torch.distributed has it. Takes Python's
/// lock to be held.
bool trains_with_others();

}  // namespace janus::torch
