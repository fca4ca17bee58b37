// What eager's operators compute on this processor (ops/eager_arithmetic.h), asked of torch.
#pragma once

namespace janus::torch {

/// Tries out torch's operators on a few numbers each, in well under a millisecond. Call once,
/// before the first graph.
void ask_for_eager_arithmetic();

}  // namespace janus::torch
