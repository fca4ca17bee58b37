// Operators of single recurrent cells. They decompose into the products and gates that eager
// computes, so that the product of an input that stays the same is computed once and the gates are
// one kernel.
#include "ops/recurrent.h"

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

/// The product of the input, or of the first state, with its weight and bias.
Expression product(const Decompose& d, size_t operand, size_t weight) {
  return apply(op::linear, in(d, operand), in(d, weight), in(d, weight + 2));
}

/// Part `index` of the gates, each as wide as the state.
Expression gate(const Expression& gates, const Expression& state, int64_t index) {
  const Dim hidden = state.shape()[1];
  return sliced(gates, 1, hidden * index, hidden * (index + 1));
}

/// One state of a cell after the step; its operands are as infer_cell() says.
template <ops::RecurrentCell& step, size_t states>
std::vector<Value*> decompose_cell(const Decompose& d) {
  std::vector<Expression> before;
  for (size_t i = 1; i <= states; ++i) before.push_back(in(d, i));
  const auto of_state = product(d, 1, states + 2), of_input = product(d, 0, states + 1);
  std::vector<Value*> results;
  for (const Expression& state : step(of_input, of_state, before)) results.push_back(state);
  return results;
}

}  // namespace

std::vector<Expression> ops::gru_step(const Expression& of_input, const Expression& of_state,
                                      std::span<const Expression> states) {
  const Expression& state = states[0];
  const auto ours = [&](int64_t index) { return gate(of_input, state, index); };
  const auto its = [&](int64_t index) { return gate(of_state, state, index); };
  const auto reset = apply(op::sigmoid, its(0) + ours(0));
  const auto update = apply(op::sigmoid, its(1) + ours(1));
  const auto fresh = apply(op::tanh, ours(2) + its(2) * reset);
  return {(state - fresh) * update + fresh};
}

std::vector<Expression> ops::lstm_step(const Expression& of_input, const Expression& of_state,
                                       std::span<const Expression> states) {
  const Expression& memory = states[1];
  const auto gates = of_state + of_input;
  const auto input = apply(op::sigmoid, gate(gates, memory, 0));
  const auto forget = apply(op::sigmoid, gate(gates, memory, 1));
  const auto fresh = apply(op::tanh, gate(gates, memory, 2));
  const auto output = apply(op::sigmoid, gate(gates, memory, 3));
  const auto next = forget * memory + input * fresh;
  return {output * apply(op::tanh, next), next};
}

std::vector<Expression> ops::tanh_step(const Expression& of_input, const Expression& of_state,
                                       std::span<const Expression>) {
  return {apply(op::tanh, of_state + of_input)};
}

std::vector<Expression> ops::relu_step(const Expression& of_input, const Expression& of_state,
                                       std::span<const Expression>) {
  return {apply(op::relu, of_state + of_input)};
}

constinit const OpDef op::gru_cell{
    .name = "gru_cell",
    .doc = "One step of a gated recurrent unit.",
    .schema =
        "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
        "Tensor? b_hh=None) -> Tensor",
    .aten = "gru_cell",
    .python = "gru_cell _VF.gru_cell",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::unfollowed,
    .infer = [](const Infer& infer) { return infer_cell(infer, 1, 3); },
    .decompose = decompose_cell<ops::gru_step, 1>,
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
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::unfollowed,
    .infer = [](const Infer& infer) { return infer_cell(infer, 2, 4); },
    .decompose = decompose_cell<ops::lstm_step, 2>,
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
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::unfollowed,
    .infer = [](const Infer& infer) { return infer_cell(infer, 1, 1); },
    .decompose = decompose_cell<ops::tanh_step, 1>,
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
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::unfollowed,
    .infer = [](const Infer& infer) { return infer_cell(infer, 1, 1); },
    .decompose = decompose_cell<ops::relu_step, 1>,
};

}  // namespace janus
