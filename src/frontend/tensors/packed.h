// Packed sequences (torch.nn.utils.rnn): all steps of sequences of several lengths, one behind the
// other, and how many sequences each step has. Their operators give sizes that only the data say,
// so they are taken apart from other black-box operators. As a layer's first step has all
// sequences, the first of the batch sizes is the size of the batch.
#pragma once

#include <optional>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The size of the batch, if the value is the first of the batch sizes of what the run packs.
std::optional<graph::Dim> batch_at_first_step(const graph::Value& value);

/// torch.lstm and its like of packed sequences; null if the arguments are others.
Value call_packed_layers(Interpreter& interpreter, PyObject* callable,
                         const CallArguments& arguments);

}  // namespace janus::frontend
