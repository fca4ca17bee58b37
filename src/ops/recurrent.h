// The equations of recurrent cells, once for all who compute them: operators of single cells
// (ops/recurrent.cpp) and layers, whose front end has the input's products of all time steps in
// one. A cell is given the products with their weights and biases already.
//
// Source of the equations: the documentation of torch.nn.GRU, torch.nn.LSTM and torch.nn.RNN.
#pragma once

#include <span>
#include <vector>

#include "ops/expression.h"

namespace janus::ops {

/// The states after one time step, the output first. `of_input` and `of_state`: the input's and the
/// first state's product with its weight, gates side by side; `states`: those before the step.
using RecurrentCell = std::vector<Expression>(const Expression& of_input,
                                              const Expression& of_state,
                                              std::span<const Expression> states);

RecurrentCell gru_step;   ///< one state
RecurrentCell lstm_step;  ///< two: the output and the memory
RecurrentCell tanh_step, relu_step;

}  // namespace janus::ops
