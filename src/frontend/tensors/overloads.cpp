#include "frontend/tensors/overloads.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <ranges>
#include <span>

#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/tensors/described_call.h"
#include "frontend/tensors/equal_sizes.h"
#include "frontend/tensors/guarded_numbers.h"
#include "frontend/tensors/operator_call.h"
#include "frontend/tensors/overlap.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "frontend/values/strides.h"
#include "ops/eager_rules.h"
#include "ops/list.h"
#include "ops/promotion.h"
#include "ops/view_rules.h"

namespace janus::frontend {

using graph::Parameter;
using python::Object;

namespace {

/// Whether the result of an operator on the tensors has a gradient, were gradients enabled.
bool is_tracked(Interpreter& interpreter, const graph::OpDef& op,
                const std::vector<std::shared_ptr<Tensor>>& tensors) {
  if (op.is(graph::Trait::no_gradient)) return false;
  for (const auto& tensor : tensors)
    if (tensor->requires_grad) return true;
  for (const auto& tensor : tensors) refuse_leaf_view(interpreter, *tensor);
  return false;
}

/// Result class of operators that give named results: torch.return_types.max for `max(dim)`.
Object result_class(PyObject* callable) {
  if (callable == nullptr) return {};
  Object name = Object::steal(PyObject_GetAttrString(callable, "__name__"));
  PyErr_Clear();
  if (!name) return {};
  static PyObject* const types = imported("torch.return_types");
  Object type = types == nullptr ? Object() : Object::steal(PyObject_GetAttr(types, name.get()));
  PyErr_Clear();
  return type;
}

/// Operators that give a view or a copy, depending on strides.
bool may_copy(const graph::OpDef& op) {
  return op.sees == graph::Sees::reshaped || op.sees == graph::Sees::in_order;
}

bool is_copy(const graph::Node& node, const Tensor& operand) {
  return reshaping_by(node, operand) == Reshaping::copy;
}

void note_view(Interpreter& interpreter, Tensor& result, const graph::Node& node,
               const std::shared_ptr<Tensor>& base, PyObject* callable,
               const CallArguments& arguments) {
  result.base = base;
  base->is_viewed = true;
  result.view_node = &node;
  if (result.value->definition == &node) result.view_output = result.value->index;
  result.seen_version = base->version;
  if (callable != nullptr) note_view_call(interpreter, result, callable, arguments);
  result.is_one_of_list = node.op->signature().result_count != 1;
  result.strides = strides_of_view(node, result.view_output, *base);
  if (reshaping_by(node, *base) == Reshaping::unknown) {
    result.uncertain_alias = true;
    base->uncertain_alias = true;
  }
}

/// Which operand is the running mean, in front of the variance, of an operator whose results 1 and
/// 2 are the new ones in training: a batch norm.
std::optional<size_t> running_mean_of(const graph::OpDef& op) {
  if (op.signature().result_count != 3) return std::nullopt;
  const auto operands = op.signature().operands();
  const auto found = std::ranges::find(operands, "running_mean", &Parameter::name);
  if (found == operands.end()) return std::nullopt;
  return static_cast<size_t>(found - operands.begin());
}

void write_running_statistics(Interpreter& interpreter, OperatorCall& call, const graph::Node& node,
                              size_t mean) {
  for (size_t i = 0; i < 2; ++i) {
    graph::Value* statistic = node.outputs[1 + i];
    if (!statistic->type.is_tensor() || call.values[mean + i] == nullptr) continue;
    if (!node.attributes.get_or<bool>("training", false)) continue;
    Tensor& running = *call.values[mean + i];
    graph::Value* before = running.value;
    write(interpreter, running, op::detach(interpreter.builder(), {statistic}));
    ++running.silent_writes;
    interpreter.history.overwritten[before] = &node;
  }
}

/// Whether eager's result lies in order although the operands lie otherwise, and ours would not.
bool gives_a_copy_in_order(const graph::OpDef& op, const OperatorCall& call) {
  if (std::ranges::all_of(call.tensors, [](const auto& tensor) { return is_contiguous(*tensor); }))
    return false;
  // What a convolution gives may be channels last: then it stays so.
  if (op.layout == graph::Layout::normalised_image)
    return is_surely_not_contiguous(*call.tensors[0]) && !is_channels_last(*call.tensors[0]);
  return op.layout == graph::Layout::contiguous_copy;
}

bool flattens_one_dimension(const graph::Node& node) {
  const auto rank = static_cast<int64_t>(node.inputs[0]->type.shape.size());
  return rank > 0 && ops::dim_of(node, rank, "start_dim") == ops::dim_of(node, rank, "end_dim");
}

bool is_word_of(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == name) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

/// Losses have no derivative by the weights of their classes or elements, and normalisations none
/// by running statistics; eager raises.
void refuse_constants_with_gradient(Interpreter& interpreter, const OperatorCall& call,
                                    const graph::OpDef& op) {
  if (!interpreter.modes.grad_enabled || op.constants.empty()) return;
  auto value = call.values.begin();
  for (const Parameter& parameter : op.signature().parameters) {
    if (!parameter.is_operand()) continue;
    const std::shared_ptr<Tensor>& tensor = *value++;
    if (tensor != nullptr && tensor->requires_grad && is_word_of(op.constants, parameter.name))
      interpreter.refuse(ReasonCode::autograd,
                         cat("a gradient of ", op.name, " by its ", parameter.name));
  }
}

Value finish_call(Interpreter& interpreter, OperatorCall& call, const graph::OpDef& op,
                  graph::Node* node, PyObject* callable, const CallArguments& arguments) {
  if (&op == &op::sum_to_size && node->output()->type.shape == call.tensors[0]->value->type.shape)
    interpreter.refuse(ReasonCode::unsupported_tensor, "sum_to_size gives a view of all");
  if (&op == &op::flatten && flattens_one_dimension(*node)) return call.tensors[0];
  bool tracked = is_tracked(interpreter, op, call.tensors);
  const std::optional<size_t> running_mean = running_mean_of(op);
  if (running_mean) write_running_statistics(interpreter, call, *node, *running_mean);
  refuse_constants_with_gradient(interpreter, call, op);
  const bool in_order = gives_a_copy_in_order(op, call);
  std::vector<Value> results;
  for (graph::Value* output : node->outputs) {
    if (output->type.is_none()) {
      results.push_back(interpreter.none());
      continue;
    }
    if (!output->type.is_tensor()) {
      results.push_back(interpreter.number(output));
      continue;
    }
    bool differentiable = tracked && graph::is_differentiable(output->type.dtype);
    graph::Value* value = output;
    if (in_order) value = op::contiguous(interpreter.builder(), {value});
    if (differentiable && !interpreter.modes.grad_enabled) {
      value = op::detach(interpreter.builder(), {value});
      differentiable = false;
    }
    auto tensor = make_tensor(interpreter, value, differentiable);
    tensor->producer = op;
    if (differentiable)
      tensor->produced_by = describe_call(interpreter, callable, arguments, results.size());
    tensor->strides = call.wants_order || in_order
                          ? contiguous_strides(output->type.shape)
                          : strides_of_result(op, output->type.shape, call.tensors);
    if (op.is(graph::Trait::view) && !call.tensors.empty()) {
      if (is_copy(*node, *call.tensors[0])) {
        tensor->producer =
            &op == &op::contiguous ? Producer(op::clone) : Producer::named("_unsafe_view");
        tensor->strides = contiguous_strides(output->type.shape);
      } else {
        note_view(interpreter, *tensor, *node, call.tensors[0], callable, arguments);
      }
    }
    if (call.requires_grad) switch_requires_grad(interpreter, tensor, true);
    results.push_back(std::move(tensor));
  }
  if (running_mean) return results[0];
  if (op.signature().result_count == 1) return results.empty() ? interpreter.none() : results[0];
  Value packed = make_tuple(std::move(results));
  if (op.signature().result_count > 1) as<Sequence>(packed)->type = result_class(callable);
  return packed;
}

bool is_one_of(const graph::OpDef& op, std::initializer_list<const graph::OpDef*> ops) {
  return std::ranges::find(ops, &op) != ops.end();
}

bool is_comparison(const graph::OpDef& op) {
  return is_one_of(op, {&op::eq, &op::ne, &op::lt, &op::le, &op::gt, &op::ge});
}

/// In place, eager's autograd sees comparisons: what they write requires a gradient, even flags. It
/// does not see logical operators: the gradient goes on as if nothing had been written.
void refuse_unlike_out_of_place(const Interpreter& interpreter, const graph::OpDef& op,
                                const std::vector<std::shared_ptr<Tensor>>& tensors) {
  if (!interpreter.modes.grad_enabled) return;
  const bool is_logical =
      is_one_of(op, {&op::logical_and, &op::logical_or, &op::logical_xor, &op::logical_not});
  const auto requires_grad = [](const auto& tensor) { return tensor->requires_grad; };
  if (is_logical
          ? requires_grad(tensors[0])
          : is_comparison(op) && std::ranges::any_of(tensors | std::views::drop(1), requires_grad))
    interpreter.refuse(ReasonCode::autograd, cat(op.name, "_ with a tensor that requires grad"));
}

/// The result of an in-place form: the operand itself, with new contents.
Value finish_in_place(Interpreter& interpreter, OperatorCall& call, const graph::OpDef& op,
                      graph::Node* node, PyObject* callable, const CallArguments& arguments) {
  if (op.is(graph::Trait::view))  // it would change where the tensor looks
    interpreter.refuse(ReasonCode::unsupported_tensor, cat(op.name, "_ of a tensor"));
  const std::shared_ptr<Tensor>& self = call.tensors[0];
  graph::Value* contents = node->output();
  const graph::Type& type = self->value->type;
  if (contents->type.shape != type.shape)
    interpreter.refuse(ReasonCode::would_raise, "RuntimeError: shape of an in-place operation");
  if (contents->type.dtype != type.dtype) contents = cast(interpreter, contents, type.dtype);
  refuse_overlap(interpreter, *self, *node, std::span(call.tensors).subspan(1));
  refuse_unlike_out_of_place(interpreter, op, call.tensors);
  // Autograd does not see a copy into integers.
  const bool is_copy_cut = &op == &op::copy && !graph::is_differentiable(type.dtype);
  bool tracked = is_tracked(interpreter, op, call.tensors) && !is_copy_cut;
  if (is_comparison(op) && self->requires_grad) {  // of which the gradient is zeros
    contents = op::copy(interpreter.builder(), {call.operands[0], contents});
    tracked = true;
  }
  auto produced_by = tracked ? describe_call(interpreter, callable, arguments, 0) : nullptr;
  write_in_place(interpreter, self, *node, contents, tracked);
  if (graph::saves_of(op) == graph::Saves::result_in_place)
    node->attributes.set("_saves_results", std::vector<bool>{true});
  self->producer = op;
  self->produced_by = std::move(produced_by);
  return self;
}

/// Eager draws into memory in the order of the operand's strides; a graph's tensors are contiguous.
bool draws_in_order_of_strides(const graph::OpDef& op, const OperatorCall& call, bool in_place) {
  if (!op.is(graph::Trait::random) || op.draws == graph::Draws::channels) return false;
  for (const char* flag : {"train", "training"})
    if (!call.attributes.get_or<bool>(flag, true)) return false;
  const bool fills_new_memory = !in_place && op.layout == graph::Layout::operands;
  return std::ranges::any_of(call.tensors, [&](const std::shared_ptr<Tensor>& tensor) {
    const graph::Shape& shape = tensor->value->type.shape;
    return shape.size() > 1 && !is_contiguous(*tensor) &&
           !(fills_new_memory &&
             are_contiguous(shape, strides_of_result(op::clone, shape, {tensor})));
  });
}

/// Whether the numbers that the operator draws for its new memory are the same whatever dimensions
/// that memory is seen with (normal ones are drawn otherwise where elements don't lie in order).
bool draws_for_memory(const graph::OpDef& op) {
  if (op.draws != graph::Draws::memory) return false;
  static const bool is_so = [] {
    const Object answer =
        Object::steal(PyObject_CallNoArgs(imported("torchjanus.draws.fill_memory_in_order")));
    PyErr_Clear();
    return answer.get() == Py_True;
  }();
  return is_so;
}

/// The operator on an operand whose dimensions are put into the order in which eager's result fills
/// its memory, and then back.
graph::Node* drawn_in_order_of_strides(Interpreter& interpreter, OperatorCall& call,
                                       const graph::OpDef& op, bool in_place) {
  const graph::Shape& shape = call.tensors[0]->value->type.shape;
  std::optional<graph::Shape> order;
  if (!in_place && draws_for_memory(op))
    order = order_in_memory(shape, strides_of_result(op, shape, call.tensors));
  if (!order)
    interpreter.refuse(ReasonCode::unsupported_tensor,
                       cat(op.name, " of a tensor whose memory is in another order"));
  graph::Builder& builder = interpreter.builder();
  call.operands[0] = op::permute(builder, {call.operands[0]}, {{"dims", *order}});
  graph::Node* node = builder.append(op, call.operands, std::move(call.attributes));
  return op::permute(builder, {node->output()}, {{"dims", inverse_order(*order)}})->definition;
}

/// Eager raises where it does not lie between 0 and 1, also where nothing is dropped.
void assume_that_it_is_a_probability(Interpreter& interpreter, graph::Value* number) {
  if (const auto known = graph::constant_number(number)) {
    if (!(*known >= 0 && *known <= 1))
      interpreter.refuse(ReasonCode::would_raise,
                         "ValueError: the probability of a dropout is not between 0 and 1");
    return;
  }
  assume_compares(interpreter, op::scalar_ge, number, 0);
  assume_compares(interpreter, op::scalar_le, number, 1);
}

/// Whether it is a dropout that drops nothing: eager gives the operand itself. Of a probability
/// that varies it is guarded that there is one.
bool gives_its_operand(Interpreter& interpreter, const graph::OpDef& op, const OperatorCall& call) {
  if (!op.is(graph::Trait::random) || !op.is(graph::Trait::composite)) return false;
  if (call.tensors.empty()) return false;
  assume_that_it_is_a_probability(interpreter, call.operands[1]);
  if (!call.attributes.get_or<bool>("train", true) ||
      !call.attributes.get_or<bool>("training", true))
    return true;
  const graph::Shape& shape = call.tensors[0]->value->type.shape;
  if (std::ranges::any_of(shape, [](const graph::Dim& dim) { return dim.is(0); })) return true;
  graph::Value* probability = call.operands[1];
  if (const auto known = graph::constant_number(probability)) return *known == 0;
  assume_compares(interpreter, op::scalar_ne, probability, 0);
  return false;
}

/// The least and the largest number that eager makes an element of half precision of, or of an
/// integer dtype narrower than Python's ints. What is negative wraps in an unsigned dtype.
std::pair<int64_t, int64_t> range_of(graph::DType dtype) {
  if (dtype == graph::DType::u8) return {-255, 255};
  if (dtype == graph::DType::f16) return {-65504, 65504};
  const int bits = static_cast<int>(graph::byte_size(dtype)) * 8;
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

/// That it lies between the least and the largest of such a dtype is guarded.
void assume_that_it_fits(Interpreter& interpreter, graph::Value* number, graph::DType dtype) {
  const auto [least, largest] = range_of(dtype);
  assume_compares(interpreter, op::scalar_ge, number, least);
  assume_compares(interpreter, op::scalar_le, number, largest);
}

[[noreturn]] void refuse_number(Interpreter& interpreter, double number) {
  interpreter.refuse(ReasonCode::would_raise,
                     cat("RuntimeError: ", number, " does not fit the tensor's dtype"));
}

/// A bound of `clamp` becomes one that the dtype holds. Eager raises if no element can be within
/// it.
graph::Value* fitting_bound(Interpreter& interpreter, graph::Value* bound, bool is_upper,
                            graph::DType dtype) {
  const int64_t largest = range_of(dtype).second;
  const int64_t least = dtype == graph::DType::u8 ? 0 : range_of(dtype).first;  // it does not wrap
  const auto number = graph::constant_number(bound);
  if (!number) {
    graph::Builder& builder = interpreter.builder();
    const graph::OpDef& inside = is_upper ? op::scalar_le : op::scalar_ge;
    const graph::OpDef& reaches = is_upper ? op::scalar_ge : op::scalar_le;
    graph::Value* end = builder.constant(is_upper ? largest : least);
    graph::Value* fits = inside(builder, {bound, end});
    assume_compares(interpreter, reaches, bound, is_upper ? least : largest);
    return op::scalar_select(builder, {fits, bound, end});
  }
  const bool is_below = *number < static_cast<double>(least);
  const bool is_above = *number > static_cast<double>(largest);
  if (is_upper ? is_below : is_above) refuse_number(interpreter, *number);
  if (!is_below && !is_above) return bound;
  return interpreter.builder().constant(is_below ? least : largest);
}

/// Fits bounds that are ints to a dtype that is narrower than they are, as some versions of eager
/// do.
void fit_bounds(Interpreter& interpreter, const graph::OpDef& op, OperatorCall& call) {
  const bool is_clamp = &op == &op::clamp || &op == &op::clamp_min || &op == &op::clamp_max;
  if (!is_clamp || !ops::eager_rules().clamp_fits_bounds) return;
  const graph::DType dtype = call.operands[0]->type.dtype;
  if (!graph::is_integral(dtype) || dtype == graph::DType::b1 || dtype == graph::DType::i64) return;
  const auto bounds = std::span(call.operands).subspan(1);
  if (std::ranges::any_of(bounds, [](const graph::Value* bound) {
        return bound->type.kind == graph::Type::Kind::f64;
      }))
    return;
  for (graph::Value*& bound : bounds)
    if (bound->type.kind == graph::Type::Kind::i64)
      bound =
          fitting_bound(interpreter, bound, &op == &op::clamp_max || &bound != &bounds[0], dtype);
}

/// Whether eager makes an element of the number. Negative integers wrap in an unsigned dtype.
bool makes_element(graph::DType dtype, const graph::Value& value, double number) {
  const bool wraps = dtype == graph::DType::u8 && value.type.kind == graph::Type::Kind::i64;
  return ops::can_hold(dtype, wraps ? std::abs(number) : number);
}

/// Whether eager makes an element of every number: any one is a boolean, Python's integers are i64,
/// and what `where` rounds to half precision becomes infinite.
bool takes_every_number(const graph::OpDef& op, graph::DType dtype) {
  return graph::is_complex(dtype) || dtype == graph::DType::i64 || dtype == graph::DType::b1 ||
         (&op == &op::where && graph::is_half(dtype));
}

/// Eager raises if a number that replaces elements, or is an operator's parameter, does not fit the
/// tensor's dtype (numbers among the operands of arithmetic wrap, or become infinite).
void assume_that_numbers_fit(Interpreter& interpreter, const graph::Node& node) {
  if (node.outputs.empty()) return;  // of a dimension without elements
  const graph::Type& result = node.outputs.front()->type;
  if (!result.is_tensor() || takes_every_number(*node.op, result.dtype)) return;
  const bool replaces = node.op->replaces_elements;
  const auto operands = node.op->signature().operands();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    graph::Value* value = node.inputs[i];
    const bool is_parameter = i < operands.size() && operands[i]->kind == Parameter::Kind::scalar;
    if (!value->type.is_number() || !(replaces || is_parameter)) continue;
    if (const auto number = graph::constant_number(value)) {
      if (!makes_element(result.dtype, *value, *number)) refuse_number(interpreter, *number);
    } else if (graph::is_integral(result.dtype) ? value->type.kind == graph::Type::Kind::i64
                                                : result.dtype == graph::DType::f16) {
      assume_that_it_fits(interpreter, value, result.dtype);
    }
  }
}

bool is_convolution(const graph::OpDef& op) {
  return &op == &op::conv1d || &op == &op::conv2d || &op == &op::conv3d ||
         &op == &op::conv1d_padding || &op == &op::conv2d_padding || &op == &op::conv3d_padding ||
         &op == &op::convolution;
}

/// Of an input without channels eager gives a result without channels, whatever the weight says.
/// That there are some is guarded.
void expect_channels(Interpreter& interpreter, const graph::OpDef& op, const OperatorCall& call) {
  if (!is_convolution(op)) return;
  const graph::Type& weight = call.operands[1]->type;
  if (!weight.is_tensor() || weight.shape.size() < 2) return;
  const graph::Dim& channels = weight.shape[1];
  if (channels.lower_bound().value_or(0) >= 1) return;
  if (!holds(interpreter, interpreter.integer(0), syntax::CompareOperator::Lt,
             interpreter.dimension(channels)))
    interpreter.refuse(ReasonCode::unsupported_tensor, "a convolution of no channels");
}

bool needs_view(const graph::OpDef& op) { return op.sees == graph::Sees::viewed; }

/// What eager makes of the operand's strides: a view that there isn't raises, and a reshape that
/// copies puts the elements in order, which later passes must not undo. Null: only the run knows
/// whether there is such a view.
graph::Node* reshaped_as_in_eager(Interpreter& interpreter, OperatorCall& call, graph::Node* node) {
  const graph::OpDef& op = *node->op;
  if (!needs_view(op) && !may_copy(op)) return node;
  const Reshaping reshaping = reshaping_by(*node, *call.tensors[0]);
  if (reshaping == Reshaping::view) return node;
  if (needs_view(op) && reshaping == Reshaping::unknown) return nullptr;
  if (needs_view(op))
    interpreter.refuse(ReasonCode::would_raise, "RuntimeError: the strides allow no such view");
  if (reshaping == Reshaping::unknown || &op == &op::contiguous) {
    node->attributes.set("_may_copy", true);
    return node;
  }
  call.operands[0] = op::contiguous(interpreter.builder(), {call.operands[0]});
  call.operands[0]->definition->attributes.set("_may_copy", true);
  return interpreter.builder().append(op, call.operands, node->attributes);
}

/// `memory_format=torch.contiguous_format`: of operands that lie otherwise only copies keep to it.
void put_in_order(Interpreter& interpreter, OperatorCall& call, const graph::OpDef& op) {
  if (!call.wants_order || &op == &op::contiguous || call.tensors.empty()) return;
  if (std::ranges::all_of(call.tensors, [](const auto& t) { return is_contiguous(*t); })) return;
  if (&op != &op::clone)
    interpreter.refuse(ReasonCode::unsupported_argument, "the argument memory_format");
  call.operands[0] = op::contiguous(interpreter.builder(), {call.operands[0]});
}

/// Fits the call to one overload; null if it does not fit, and `why` may say why.
Value call_overload(Interpreter& interpreter, const OperatorForm& form, const graph::OpDef& op,
                    bool takes_elements, PyObject* callable, const CallArguments& arguments,
                    NoOverload& why) {
  OperatorCall call(interpreter, op, arguments, callable, takes_elements);
  if (!call.bind()) return nullptr;
  bool in_place = form.in_place || call.in_place_flag;
  if (in_place &&
      (call.tensors.empty() ||
       as<Tensor>(arguments.positional.empty() ? arguments.keywords[0].second
                                               : arguments.positional[0]) != call.tensors[0].get()))
    return nullptr;
  if (gives_its_operand(interpreter, op, call)) return call.tensors[0];
  try {
    put_in_order(interpreter, call, op);
    fit_bounds(interpreter, op, call);
    expect_channels(interpreter, op, call);
    if (!in_place) assume_equal_sizes(interpreter, op, call.operands, call.attributes);
    graph::Node* node =
        draws_in_order_of_strides(op, call, in_place)
            ? drawn_in_order_of_strides(interpreter, call, op, in_place)
            : interpreter.builder().append(op, call.operands, std::move(call.attributes));
    interpreter.mark(speculate::LineMark::Kind::graph);
    assume_that_numbers_fit(interpreter, *node);
    node = reshaped_as_in_eager(interpreter, call, node);
    if (node == nullptr) {
      why.strides_unknown = true;
      return nullptr;
    }
    if (in_place) return finish_in_place(interpreter, call, op, node, callable, arguments);
    return finish_call(interpreter, call, op, node, callable, arguments);
  } catch (const graph::TypeError& error) {
    // Later overloads are for operands of another kind.
    if (why.message.empty()) why.message = error.what();
    return nullptr;
  }
}

/// Whether an overload differs from this one only in that it takes a tensor where this one takes a
/// number. Torch chooses that one for every tensor, whatever it says of its shape.
bool is_tensor_elsewhere(const OperatorForm& form, const graph::OpDef& op) {
  using Kind = Parameter::Kind;
  const std::vector<Parameter>& ours = op.signature().parameters;
  return std::ranges::any_of(form.ops, [&](const graph::OpDef* other) {
    const auto [mine, its] = std::ranges::mismatch(ours, other->signature().parameters, {},
                                                   &Parameter::kind, &Parameter::kind);
    const std::ranges::subrange rest(mine, ours.end());
    const std::ranges::subrange its_rest(its, other->signature().parameters.end());
    return !rest.empty() && !its_rest.empty() && mine->kind == Kind::scalar &&
           its->kind == Kind::tensor &&
           std::ranges::equal(rest.next(), its_rest.next(), {}, &Parameter::kind, &Parameter::kind);
  });
}

}  // namespace

Value call_overloads(Interpreter& interpreter, const OperatorForm& form, PyObject* callable,
                     const CallArguments& arguments, NoOverload& why) {
  // Torch takes a tensor without dimensions for a number where no overload takes it for a tensor.
  for (const bool takes_elements : {false, true})
    for (const graph::OpDef* op : form.ops) {
      if (takes_elements && is_tensor_elsewhere(form, *op)) continue;
      Value result =
          call_overload(interpreter, form, *op, takes_elements, callable, arguments, why);
      if (result != nullptr || why.strides_unknown) return result;
    }
  return nullptr;
}

}  // namespace janus::frontend
