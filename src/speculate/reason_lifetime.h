// For how long a reason holds, by its code.
#pragma once

#include "speculate/reason.h"

namespace janus::speculate {

/// Whether no later call can change the reason.
inline bool is_permanent(ReasonCode code) {
  return code == ReasonCode::no_source || code == ReasonCode::generator ||
         code == ReasonCode::internal_error;
}

/// Whether the reason lies in the code that is called, whatever the values are.
inline bool is_lasting(ReasonCode code) {
  return code == ReasonCode::unknown_callable || code == ReasonCode::communication ||
         is_permanent(code);
}

}  // namespace janus::speculate
