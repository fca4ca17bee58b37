// Packed sequences (torch.nn.utils.rnn): all steps of sequences of several lengths, one behind the
// other, and how many sequences each step has. Their operators give sizes that only the data say,
// so they are taken apart from other black-box operators.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// torch.lstm and its like of packed sequences; null if the arguments are others.
Value call_packed_layers(Interpreter& interpreter, PyObject* callable,
                         const CallArguments& arguments);

}  // namespace janus::frontend
