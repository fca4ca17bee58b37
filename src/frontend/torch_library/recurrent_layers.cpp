// Recurrent layers (torch.gru, torch.lstm, ...): in a graph they are the program of
// torchjanus/recurrent.py, whose time steps are a loop like any other. The cell of a step is the
// operators' (ops/recurrent.h).
#include <algorithm>

#include "base/policy.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/functions.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/described_call.h"
#include "frontend/tensors/packed.h"
#include "frontend/tensors/tensor.h"
#include "frontend/torch_library/special_callables.h"
#include "frontend/values/make.h"
#include "ops/list.h"
#include "ops/recurrent.h"

namespace janus::frontend {

namespace {

/// The arguments of torch.gru and its like; those of packed sequences have others in these places.
struct Layers {
  std::shared_ptr<Tensor> input;
  std::vector<Value> states, weights;
  bool has_biases = false, train = false, bidirectional = false, batch_first = false;
  Value count, dropout;
};

constexpr size_t kArguments = 9;

std::optional<Layers> layers_of(Interpreter& interpreter, const CallArguments& arguments) {
  const std::vector<Value>& given = arguments.positional;
  if (given.size() != kArguments || !arguments.keywords.empty()) return {};
  Layers layers;
  layers.input = shared_as<Tensor>(given[0]);
  const Value state = opened(interpreter, given[1]);
  if (const auto* states = as<Sequence>(state))
    layers.states.assign(states->elements.begin(), states->elements.end());
  else
    layers.states = {state};
  const Value weights = opened(interpreter, given[2]);
  if (layers.input == nullptr || as<Sequence>(weights) == nullptr) return {};
  const auto& all = as<Sequence>(weights)->elements;
  layers.weights.assign(all.begin(), all.end());
  layers.has_biases = truth(interpreter, given[3], -1);
  layers.count = given[4];
  layers.dropout = given[5];
  layers.train = truth(interpreter, given[6], -1);
  layers.bidirectional = truth(interpreter, given[7], -1);
  layers.batch_first = truth(interpreter, given[8], -1);
  return layers;
}

/// Whether all are tensors of the input's kind, and no weights but those of inputs and states.
bool are_plain(const Layers& layers) {
  const graph::Type& type = layers.input->value->type;
  const auto fits = [&](const Value& value, size_t least_rank) {
    const auto* tensor = as<Tensor>(value);
    return tensor != nullptr && tensor->value->type.dtype == type.dtype &&
           tensor->value->type.shape.size() >= least_rank;
  };
  PyObject* count = known_object(layers.count);
  if (count == nullptr || PyLong_Check(count) == 0 ||
      (type.dtype != graph::DType::f32 && type.dtype != graph::DType::f64))
    return false;
  const size_t expected =
      PyLong_AsSize_t(count) * (layers.bidirectional ? 2 : 1) * (layers.has_biases ? 4 : 2);
  return type.shape.size() == 3 && layers.weights.size() == expected &&
         std::ranges::all_of(layers.states, [&](const Value& each) { return fits(each, 3); }) &&
         std::ranges::all_of(layers.weights, [&](const Value& each) { return fits(each, 1); });
}

/// Whether eager has a kernel for the whole layer, oneDNN's for LSTMs, and that is quicker than a
/// loop of the graph, which has no planned memory.
bool is_quicker_as_operator(const Layers& layers) {
  const graph::Type& input = layers.input->value->type;
  if (layers.states.size() != 2 || input.dtype != graph::DType::f32) return false;
  const graph::Dim& iterations = input.shape[layers.batch_first ? 1 : 0];
  return !iterations.is_constant() || iterations.value() > policy::kMostUnrolledLayerSteps;
}

/// The more iterations, the longer a graph of them all takes to be made: many are a loop of the
/// graph.
class RolledWhereLong {
 public:
  explicit RolledWhereLong(Scopes& scopes)
      : scopes_(scopes),
        before_(std::exchange(scopes.most_unrolled,
                              std::min(scopes.most_unrolled, policy::kMostUnrolledLayerSteps))) {}
  ~RolledWhereLong() { scopes_.most_unrolled = before_; }
  RolledWhereLong(const RolledWhereLong&) = delete;
  RolledWhereLong& operator=(const RolledWhereLong&) = delete;

 private:
  Scopes& scopes_;
  int64_t before_;
};

/// The outputs with the batch first: a view of a layer of LSTM's, of others a tensor of their own
/// that lies so.
std::shared_ptr<Tensor> with_batch_first(Interpreter& interpreter, const Value& outputs,
                                         bool is_view) {
  auto tensor = tensor_by(interpreter, "transpose",
                          {outputs, interpreter.integer(0), interpreter.integer(1)});
  if (is_view) return tensor;
  auto own = make_tensor(interpreter, tensor->value, tensor->requires_grad);
  own->strides = tensor->strides;
  return own;
}

/// A function of torch's, the cell that stands for its steps in torchjanus/recurrent.py, what that
/// computes, and how many states it has.
struct Kind {
  const char *callable, *cell;
  ops::RecurrentCell* step;
  size_t states;
};
constexpr Kind kGru{"torch.gru", "torchjanus.recurrent.gru_cell", ops::gru_step, 1};
constexpr Kind kLstm{"torch.lstm", "torchjanus.recurrent.lstm_cell", ops::lstm_step, 2};
constexpr Kind kTanh{"torch.rnn_tanh", "torchjanus.recurrent.tanh_cell", ops::tanh_step, 1};
constexpr Kind kRelu{"torch.rnn_relu", "torchjanus.recurrent.relu_cell", ops::relu_step, 1};

/// A cell of torchjanus/recurrent.py: the states after a step, of the input's product, the states
/// before it, and the state's weight and bias.
template <const Kind& kind>
Value call_cell(Interpreter& interpreter, const CallArguments& arguments) {
  const auto of_input = shared_as<Tensor>(arguments.positional[0]);
  const Value given = opened(interpreter, arguments.positional[1]);
  const auto* states = as<Sequence>(given);
  const auto of_state =
      tensor_by(interpreter, "nn.functional.linear",
                {states->elements[0], arguments.positional[2], arguments.positional[3]});
  graph::Builder& builder = interpreter.builder();
  bool is_tracked = of_input->requires_grad || of_state->requires_grad;
  std::vector<ops::Expression> before;
  for (const Value& state : states->elements) {
    auto& tensor = *shared_as<Tensor>(state);
    is_tracked = is_tracked || tensor.requires_grad;
    before.emplace_back(builder, read(interpreter, tensor));
  }
  const ops::Expression input(builder, read(interpreter, *of_input)),
      product(builder, read(interpreter, *of_state));
  const bool keeps_gradient = is_tracked && interpreter.modes.grad_enabled;
  std::vector<Value> after;
  for (const ops::Expression& state : kind.step(input, product, before)) {
    graph::Value* value = state;
    if (is_tracked && !keeps_gradient) value = op::detach(builder, {value});
    after.push_back(make_tensor(interpreter, value, keeps_gradient));
  }
  return make_tuple(std::move(after));
}

template <const Kind& kind>
Value call_layers(Interpreter& interpreter, const CallArguments& arguments) {
  static PyObject *const callable = imported(kind.callable), *const cell = imported(kind.cell);
  static PyObject* const program = imported("torchjanus.recurrent.layers");
  if (interpreter.modes.autocast.is_on) return nullptr;
  if (const Value packed = call_packed_layers(interpreter, callable, arguments)) return packed;
  const std::optional<Layers> layers = layers_of(interpreter, arguments);
  if (!layers || layers->states.size() != kind.states || !are_plain(*layers) ||
      is_quicker_as_operator(*layers))
    return nullptr;
  CallArguments given;
  const Value first = interpreter.integer(0), second = interpreter.integer(1);
  const Value input = layers->batch_first
                          ? tensor_by(interpreter, "transpose", {layers->input, first, second})
                          : layers->input;
  given.positional = {interpreter.constant_borrowed(cell),
                      input,
                      make_tuple(layers->states),
                      make_tuple(layers->weights),
                      interpreter.boolean(layers->has_biases),
                      layers->count,
                      layers->dropout,
                      interpreter.boolean(layers->train),
                      interpreter.boolean(layers->bidirectional)};
  const RolledWhereLong within(interpreter);
  Value results = inline_function(interpreter, program, nullptr, given);
  std::vector<Value> all(as<Sequence>(results)->elements.begin(),
                         as<Sequence>(results)->elements.end());
  if (layers->batch_first) all[0] = with_batch_first(interpreter, all[0], kind.states == 2);
  if (auto output = shared_as<Tensor>(all[0]); output->requires_grad)
    output->produced_by = describe_call(interpreter, callable, arguments, 0);
  return make_tuple(std::move(all));
}

}  // namespace

std::span<const SpecialCallable> recurrent_callables() {
  static constexpr SpecialCallable table[] = {
      {kGru.callable, call_layers<kGru>},   {kLstm.callable, call_layers<kLstm>},
      {kTanh.callable, call_layers<kTanh>}, {kRelu.callable, call_layers<kRelu>},
      {kGru.cell, call_cell<kGru>},         {kLstm.cell, call_cell<kLstm>},
      {kTanh.cell, call_cell<kTanh>},       {kRelu.cell, call_cell<kRelu>},
  };
  return table;
}

}  // namespace janus::frontend
