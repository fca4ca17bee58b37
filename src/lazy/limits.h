// Limits of lazy execution, beside those in base/policy.h.
#pragma once

#include <cstddef>

namespace janus::policy {

/// Bytes of an operand in memory that others may change, of which a call that is noted keeps a copy.
inline constexpr size_t kLargestCopiedOperand = size_t{4} << 20;  // chosen, not measured

}  // namespace janus::policy
