// Torch can't be asked what these operators give: it checks the lengths, which a trial does not
// have. So what it gives is stated here.
#include "frontend/tensors/packed.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "frontend/core/autocast_state.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/core/torch_services.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/described_call.h"
#include "frontend/tensors/opaque.h"
#include "frontend/tensors/special_callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/batch_sizes.h"
#include "frontend/values/operands.h"
#include "ops/list.h"
#include "python/integer.h"

namespace janus::frontend {

namespace {

using graph::Dim;
using graph::Type;

/// An overload with the operands and constants that it is given, and what it gives.
class StatedCall {
 public:
  StatedCall(Interpreter& interpreter, std::string name, std::string operands)
      : described_(interpreter) {
    resolved_.attributes.set("operator", std::move(name));
    resolved_.attributes.set("operands", std::move(operands));
    resolved_.packing = ResolvedOperator::Packing::tuple;
  }

  /// Names the arguments of the call; false if they can't be described.
  bool describe(const CallArguments& arguments) { return described_.add_all(arguments); }
  /// Argument number `index`, or each of its elements, is an operand.
  void add_operands(size_t index) {
    const OperatorArgument& argument = described_.list[index];
    if (argument.kind != OperatorArgument::Kind::sequence)
      return resolved_.operands.push_back(&argument);
    for (const OperatorArgument& element : argument.elements)
      resolved_.operands.push_back(&element);
  }
  template <class Constant>
  void set(const std::string& name, Constant constant) {
    resolved_.attributes.set(name, std::move(constant));
  }
  void add_result(Type type, const std::string& grad_fn_name) {
    resolved_.results.push_back(std::move(type));
    resolved_.differentiable.push_back(!grad_fn_name.empty());
    resolved_.grad_fn_names.push_back(grad_fn_name);
    resolved_.alias_of.push_back(-1);
    resolved_.same_as.push_back(nullptr);
  }
  void draw() { resolved_.random = true; }
  /// `in_order`: the elements of the results lie in the order of their indices.
  Value call(Interpreter& interpreter, PyObject* callable, bool in_order) {
    for (size_t i = 0; i < resolved_.operands.size(); ++i)
      if (resolved_.operands[i]->type.dtype == graph::DType::i64)
        resolved_.without_gradient.insert(i);
    return call_resolved(interpreter, callable, described_, resolved_, in_order);
  }

 private:
  DescribedArguments described_;
  ResolvedOperator resolved_;
};

std::optional<bool> constant_flag(const Value& value) {
  PyObject* const object = known_object(value);
  return object == Py_True || object == Py_False ? std::optional(object == Py_True) : std::nullopt;
}

std::optional<double> constant_float(const Value& value) {
  PyObject* const object = known_object(value);
  if (object == nullptr) return std::nullopt;
  if (PyFloat_CheckExact(object)) return PyFloat_AS_DOUBLE(object);
  const auto number = PyLong_CheckExact(object) ? python::int64_of(object) : std::nullopt;
  return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
}

/// A vector of ints, as lengths and batch sizes are; null: something else.
std::shared_ptr<Tensor> vector_of_ints(const Value& value) {
  auto tensor = shared_as<Tensor>(value);
  const bool fits = tensor != nullptr && tensor->value->type.rank() == 1 &&
                    tensor->value->type.dtype == graph::DType::i64;
  return fits ? tensor : nullptr;
}

std::optional<Dim> size_of(Interpreter& interpreter, const std::shared_ptr<Tensor>& number) {
  return interpreter.run_time_dimension(
      op::item(interpreter.builder(), {read(interpreter, *number)}));
}

std::shared_ptr<Tensor> first_of(Interpreter& interpreter, const std::shared_ptr<Tensor>& vector) {
  return tensor_by(interpreter, "select", {vector, interpreter.integer(0), interpreter.integer(0)});
}

/// torch._pack_padded_sequence(input, lengths, batch_first); the lengths are sorted.
Value call_pack(Interpreter& interpreter, const CallArguments& arguments) {
  const std::vector<Value>& given = arguments.positional;
  if (given.size() != 3 || !arguments.keywords.empty() || interpreter.modes.autocast.is_on)
    return nullptr;
  const auto input = shared_as<Tensor>(given[0]);
  const auto lengths = vector_of_ints(given[1]);
  const auto batch_first = constant_flag(given[2]);
  if (input == nullptr || lengths == nullptr || !batch_first || input->value->type.rank() < 2)
    return nullptr;
  const auto steps = size_of(interpreter, tensor_by(interpreter, "sum", {lengths}));
  const auto longest = size_of(interpreter, first_of(interpreter, lengths));
  StatedCall call(interpreter, "aten::_pack_padded_sequence", "input,lengths");
  if (!steps || !longest || !call.describe(arguments)) return nullptr;
  call.add_operands(0);
  call.add_operands(1);
  call.set("batch_first", *batch_first);
  graph::Shape shape{*steps};
  const graph::Shape& whole = input->value->type.shape;
  shape.insert(shape.end(), whole.begin() + 2, whole.end());
  call.add_result(Type::tensor(input->value->type.dtype, shape), "PackPaddedSequenceBackward0");
  call.add_result(Type::tensor(graph::DType::i64, {*longest}), "");
  static PyObject* const callable = imported("torch._pack_padded_sequence");
  return call.call(interpreter, callable, /*in_order=*/true);
}

/// How many sequences the batch has.
std::optional<Dim> batch_of(Interpreter& interpreter, const std::shared_ptr<Tensor>& batch_sizes) {
  const auto first = first_of(interpreter, batch_sizes);
  if (const auto known = batch_at_first_step(*read(interpreter, *first))) return known;
  return size_of(interpreter, first);
}

/// torch._pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length)
Value call_pad(Interpreter& interpreter, const CallArguments& arguments) {
  const std::vector<Value>& given = arguments.positional;
  if (given.size() != 5 || !arguments.keywords.empty() || interpreter.modes.autocast.is_on)
    return nullptr;
  const auto data = shared_as<Tensor>(given[0]);
  const auto batch_sizes = vector_of_ints(given[1]);
  const auto batch_first = constant_flag(given[2]);
  const auto padding = constant_float(given[3]);
  const auto length = dim_of(given[4]);
  if (data == nullptr || batch_sizes == nullptr || !batch_first || !padding || !length ||
      length->lower_bound().value_or(0) < 1 || data->value->type.rank() < 1)
    return nullptr;
  const auto batch = batch_of(interpreter, batch_sizes);
  StatedCall call(interpreter, "aten::_pad_packed_sequence", "data,batch_sizes");
  if (!batch || !call.describe(arguments)) return nullptr;
  call.add_operands(0);
  call.add_operands(1);
  call.set("batch_first", *batch_first);
  call.set("padding_value", *padding);
  if (length->is_constant())
    call.set("total_length", length->value());
  else
    call.set("total_length", *length);
  graph::Shape shape = *batch_first ? graph::Shape{*batch, *length} : graph::Shape{*length, *batch};
  const graph::Shape& steps = data->value->type.shape;
  shape.insert(shape.end(), steps.begin() + 1, steps.end());
  call.add_result(Type::tensor(data->value->type.dtype, shape),
                  *batch_first ? "TransposeBackward0" : "torch::autograd::CopySlices");
  call.add_result(Type::tensor(graph::DType::i64, {*batch}), "");
  static PyObject* const callable = imported("torch._pad_packed_sequence");
  return call.call(interpreter, callable, /*in_order=*/!*batch_first);
}

/// What is given to a layer of packed sequences: the data, the batch sizes, the states, the
/// weights, and settings.
struct PackedLayers {
  std::shared_ptr<Tensor> data, batch_sizes;
  std::vector<std::shared_ptr<Tensor>> states, weights;
  bool has_biases = false, train = false, bidirectional = false;
  int64_t count = 0;
  double dropout = 0;
};

/// One tensor, or those of a list or tuple; empty: something else.
std::vector<std::shared_ptr<Tensor>> tensors_of(Interpreter& interpreter, const Value& value) {
  if (auto tensor = shared_as<Tensor>(value)) return {tensor};
  const Value parts = opened(interpreter, value);
  const auto* sequence = as<Sequence>(parts);
  if (sequence == nullptr || sequence->elements.rolled() != nullptr) return {};
  std::vector<std::shared_ptr<Tensor>> tensors;
  for (const Value& element : sequence->elements) {
    tensors.push_back(shared_as<Tensor>(element));
    if (tensors.back() == nullptr) return {};
  }
  return tensors;
}

std::optional<PackedLayers> layers_of(Interpreter& interpreter, const CallArguments& arguments) {
  const std::vector<Value>& given = arguments.positional;
  if (given.size() != 9 || !arguments.keywords.empty()) return std::nullopt;
  PackedLayers layers;
  layers.data = shared_as<Tensor>(given[0]);
  layers.batch_sizes = vector_of_ints(given[1]);
  if (layers.data == nullptr || layers.batch_sizes == nullptr) return std::nullopt;
  layers.states = tensors_of(interpreter, given[2]);
  layers.weights = tensors_of(interpreter, given[3]);
  const auto has_biases = constant_flag(given[4]), train = constant_flag(given[7]),
             bidirectional = constant_flag(given[8]);
  PyObject* const count = known_object(given[5]);
  const auto dropout = constant_float(given[6]);
  if (!has_biases || !train || !bidirectional || count == nullptr || !PyLong_CheckExact(count) ||
      !dropout)
    return std::nullopt;
  layers.has_biases = *has_biases;
  layers.train = *train;
  layers.bidirectional = *bidirectional;
  layers.count = PyLong_AsLongLong(count);
  layers.dropout = *dropout;
  return layers;
}

/// Whether there are no weights but those of inputs and states, as with projections.
bool are_plain(const PackedLayers& layers) {
  const size_t expected = static_cast<size_t>(layers.count) * (layers.bidirectional ? 2 : 1) *
                          (layers.has_biases ? 4 : 2);
  const auto is_matrix = [](const auto& tensor) { return tensor->value->type.rank() == 2; };
  return layers.data->value->type.rank() == 2 && layers.weights.size() == expected &&
         is_matrix(layers.weights[1]) && !layers.states.empty() &&
         std::ranges::all_of(layers.states,
                             [](const auto& state) { return state->value->type.rank() == 3; });
}

}  // namespace

Value call_packed_layers(Interpreter& interpreter, PyObject* callable,
                         const CallArguments& arguments) {
  const auto layers = layers_of(interpreter, arguments);
  if (!layers || !are_plain(*layers)) return nullptr;
  const auto name = torch_services().operator_name(callable);
  const bool is_list = layers->states.size() > 1;
  StatedCall call(interpreter, *name + ".data",
                  cat("data,batch_sizes,hx", is_list ? cat('*', layers->states.size()) : "",
                      ",params*", layers->weights.size()));
  if (!call.describe(arguments)) return nullptr;
  for (const size_t operand : {0, 1, 2, 3}) call.add_operands(operand);
  call.set("has_biases", layers->has_biases);
  call.set("num_layers", layers->count);
  call.set("dropout", layers->dropout);
  call.set("train", layers->train);
  call.set("bidirectional", layers->bidirectional);
  if (layers->dropout != 0 && layers->train) call.draw();
  const Type& data = layers->data->value->type;
  const Dim units = layers->weights[1]->value->type.shape[1];
  call.add_result(
      Type::tensor(data.dtype, {data.shape[0], units * Dim(layers->bidirectional ? 2 : 1)}),
      "CatBackward0");
  for (const auto& state : layers->states)
    call.add_result(Type::tensor(data.dtype, state->value->type.shape), "StackBackward0");
  return call.call(interpreter, callable, /*in_order=*/true);
}

std::span<const SpecialCallable> packed_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch._pack_padded_sequence", call_pack},
      {"torch._pad_packed_sequence", call_pad},
  };
  return table;
}

}  // namespace janus::frontend
