// Cells of recurrent networks, made of the products and gates that eager computes: so the products
// of an input that stays the same are computed once, and the gates by one kernel.
#include "ops/expression.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

/// Operand 0 is the input, then come `states` states, two weights and two biases. All states are
/// alike, and so are the results.
std::vector<Type> infer_cell(const Infer& infer, size_t states, int64_t gates) {
  if (infer.inputs.size() != states + 5) infer.fail(cat("takes ", states, " states"));
  const Type& input = floating_tensor(infer, 0);
  const Type& state = tensor_of_rank(infer, 1, 2);
  const auto require = [&](size_t operand, const Shape& shape) {
    const Type& type = infer.type(operand);
    if (type.dtype != input.dtype) infer.fail(cat("input ", input, ", operand ", type));
    if (type.shape.size() != shape.size()) infer.fail(cat("operand ", operand, " is ", type));
    for (size_t d = 0; d < shape.size(); ++d)
      require_equal(infer, type.shape[d], shape[d], "sizes do not fit the cell");
  };
  tensor_of_rank(infer, 0, 2);
  const Dim& batch = input.shape[0];
  const Dim& hidden = state.shape[1];
  for (size_t i = 1; i <= states; ++i) require(i, {batch, hidden});
  require(states + 1, {hidden * gates, input.shape[1]});
  require(states + 2, {hidden * gates, hidden});
  for (size_t i = states + 3; i < states + 5; ++i)
    if (!infer.type(i).is_none()) require(i, {hidden * gates});
  return std::vector<Type>(states, state);
}

/// What a cell computes of its input, or of its first state, in one product: its gates side by
/// side.
Expression product(const Decompose& d, size_t operand, size_t weight) {
  return apply(op::linear, in(d, operand), in(d, weight), in(d, weight + 2));
}

/// Part `index` of the gates, which are as wide as the state.
Expression gate(const Decompose& d, const Expression& gates, int64_t index) {
  const Dim hidden = in(d, 1).shape()[1];
  return sliced(gates, 1, hidden * index, hidden * (index + 1));
}

std::vector<Value*> decompose_gru_cell(const Decompose& d) {
  const auto state = in(d, 1), ours = product(d, 0, 2), its = product(d, 1, 3);
  const auto reset = apply(op::sigmoid, gate(d, its, 0) + gate(d, ours, 0));
  const auto kept = apply(op::sigmoid, gate(d, its, 1) + gate(d, ours, 1));
  const auto fresh = apply(op::tanh, gate(d, ours, 2) + gate(d, its, 2) * reset);
  return {(state - fresh) * kept + fresh};
}

std::vector<Value*> decompose_lstm_cell(const Decompose& d) {
  const auto gates = product(d, 1, 4) + product(d, 0, 3);
  const auto entering = apply(op::sigmoid, gate(d, gates, 0));
  const auto kept = apply(op::sigmoid, gate(d, gates, 1));
  const auto fresh = apply(op::tanh, gate(d, gates, 2));
  const auto shown = apply(op::sigmoid, gate(d, gates, 3));
  const auto state = kept * in(d, 2) + entering * fresh;
  return {shown * apply(op::tanh, state), state};
}

std::vector<Value*> decompose_plain_cell(const Decompose& d, const OpDef& activation) {
  return {apply(activation, product(d, 1, 3) + product(d, 0, 2))};
}

}  // namespace

constinit const OpDef op::gru_cell{
    .name = "gru_cell",
    .doc = "One step of a gated recurrent unit.",
    .schema =
        "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
        "Tensor? b_hh=None) -> Tensor",
    .aten = "gru_cell",
    .python = "gru_cell _VF.gru_cell",
    .traits = Trait::pure | Trait::composite,
    .infer = [](const Infer& infer) { return infer_cell(infer, 1, 3); },
    .decompose = decompose_gru_cell,
};

constinit const OpDef op::lstm_cell{
    .name = "lstm_cell",
    .doc = "One step of a long short-term memory: its output and its state.",
    .schema =
        "(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
        "Tensor? b_hh=None) -> (Tensor, Tensor)",
    .aten = "lstm_cell",
    .python = "lstm_cell _VF.lstm_cell",
    .traits = Trait::pure | Trait::composite,
    .infer = [](const Infer& infer) { return infer_cell(infer, 2, 4); },
    .decompose = decompose_lstm_cell,
};

constinit const OpDef op::rnn_tanh_cell{
    .name = "rnn_tanh_cell",
    .doc = "One step of a plain recurrent network.",
    .schema =
        "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
        "Tensor? b_hh=None) -> Tensor",
    .aten = "rnn_tanh_cell",
    .python = "rnn_tanh_cell _VF.rnn_tanh_cell",
    .traits = Trait::pure | Trait::composite,
    .infer = [](const Infer& infer) { return infer_cell(infer, 1, 1); },
    .decompose = [](const Decompose& d) { return decompose_plain_cell(d, op::tanh); },
};

constinit const OpDef op::rnn_relu_cell{
    .name = "rnn_relu_cell",
    .doc = "rnn_tanh_cell with another activation.",
    .schema =
        "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
        "Tensor? b_hh=None) -> Tensor",
    .aten = "rnn_relu_cell",
    .python = "rnn_relu_cell _VF.rnn_relu_cell",
    .traits = Trait::pure | Trait::composite,
    .infer = [](const Infer& infer) { return infer_cell(infer, 1, 1); },
    .decompose = [](const Decompose& d) { return decompose_plain_cell(d, op::relu); },
};

}  // namespace janus
