// From the arguments that Python passes to the operands and attributes of an operator, and back
// from its results to tensors. The overloads of a callable are tried in order; none fitting, a
// function of torch written in Python is inlined, a builtin becomes an opaque operator.
#include "frontend/tensors/callables.h"

#include <algorithm>
#include <span>

#include "frontend/tensors/overlap.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/strides.h"
#include "graph/constant.h"
#include "ops/list.h"
#include "ops/promotion.h"
#include "ops/view_rules.h"
#include "python/integer.h"
#include "frontend/values/constants.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/make.h"
#include "frontend/core/torch_objects.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/autocast_state.h"
#include "frontend/core/operations.h"
#include "frontend/tensors/autocast.h"

namespace janus::frontend {

using graph::AttributeValue;
using graph::Parameter;
using python::Object;

namespace {

/// An int as an attribute: a number or a dimension expression.
std::optional<graph::Dim> as_dimension(const Value& value) {
  if (const auto* known = as<Known>(value)) {
    if (!PyLong_CheckExact(known->object.get())) return std::nullopt;
    return python::int64_of(known->object.get());
  }
  const auto* number = as<Number>(value);
  return number != nullptr && number->type == graph::Type::Kind::i64 ? number->dim : std::nullopt;
}

bool is_integer(const Value& value) {
  const auto* number = as<Number>(value);
  return as_dimension(value) || (number != nullptr && number->type == graph::Type::Kind::i64);
}

/// One attempt to fit a call to one overload. `takes_elements`: a tensor without dimensions may
/// stand for its element where a number is asked for.
class OperatorCall {
 public:
  OperatorCall(Interpreter& interpreter, const graph::OpDef& op, const CallArguments& arguments,
               bool is_python_function, bool takes_elements)
      : interpreter_(interpreter),
        signature_(op.signature()),
        arguments_(arguments),
        is_python_function_(is_python_function),
        takes_elements_(takes_elements) {}

  /// False: the arguments do not fit.
  bool bind() {
    return !signature_.free_form && assign_positional() && assign_keywords() && convert_all();
  }

  std::vector<graph::Value*> operands;
  graph::Attributes attributes;
  std::vector<std::shared_ptr<Tensor>> tensors;  // that are operands
  std::vector<std::shared_ptr<Tensor>> values;   // by operand; null: no tensor
  bool requires_grad = false;                    // `requires_grad=True` of a factory function
  bool in_place_flag = false;                    // `inplace=True`
  bool wants_order = false;                      // `memory_format=torch.contiguous_format`

 private:
  size_t positional_parameters() const {
    size_t count = 0;
    for (const Parameter& parameter : signature_.parameters)
      count += parameter.keyword_only ? 0 : 1;
    return count;
  }

  /// `view(2, 3)`: a list of ints given as separate arguments, first (after self) and last.
  bool takes_separate_ints(size_t index) const {
    const Parameter& parameter = signature_.parameters[index];
    if (parameter.kind != Parameter::Kind::integer_list) return false;
    if (arguments_.positional.size() <= index || !is_integer(arguments_.positional[index]))
      return false;
    if (arguments_.positional.size() == index + 1) return false;
    bool first = index == 0 || (index == 1 && signature_.parameters[0].name == "self");
    return first && positional_parameters() == index + 1;
  }

  bool assign_positional() {
    values_.resize(signature_.parameters.size());
    const auto& given = arguments_.positional;
    size_t most = positional_parameters();
    for (size_t i = 0; i < given.size(); ++i) {
      if (i >= most) return accepts_extra_positional(i);
      if (takes_separate_ints(i)) {
        values_[i] = make_tuple({given.begin() + static_cast<std::ptrdiff_t>(i), given.end()});
        return true;
      }
      values_[i] = given[i];
    }
    return true;
  }

  /// nn.functional's `inplace` flag may stand last: relu(x, True).
  bool accepts_extra_positional(size_t index) {
    return is_python_function_ && index + 1 == arguments_.positional.size() &&
           known_object(arguments_.positional[index]) == Py_False;
  }

  static bool same_name(std::string_view parameter, std::string_view keyword) {
    if (parameter == keyword) return true;
    if (parameter == "self") return keyword == "input";
    if (parameter == "dim") return keyword == "axis";
    if (parameter == "keepdim") return keyword == "keepdims";
    return false;
  }

  bool assign_keywords() {
    for (const auto& [keyword, value] : arguments_.keywords) {
      bool found = false;
      for (size_t i = 0; i < signature_.parameters.size() && !found; ++i) {
        if (!same_name(signature_.parameters[i].name, keyword)) continue;
        if (values_[i] != nullptr) return false;
        values_[i] = value;
        found = true;
      }
      if (!found && !accept_extra_keyword(keyword, value)) return false;
    }
    return true;
  }

  bool accept_extra_keyword(const std::string& keyword, const Value& value) {
    PyObject* object = known_object(value);
    if (keyword == "out" || keyword == "generator") return object == Py_None;
    if (keyword == "inplace") {
      in_place_flag = object == Py_True;
      return object == Py_False || object == Py_True;
    }
    if (keyword == "requires_grad") {
      requires_grad = object == Py_True;
      return object == Py_False || object == Py_True;
    }
    return is_default_setting(keyword, value);
  }

  /// Settings of memory and place that the graph has only in their default.
  bool is_default_setting(const std::string& name, const Value& value) {
    PyObject* object = known_object(value);
    if (object == nullptr) return false;
    constexpr std::string_view settings[] = {
        "device", "layout", "memory_format", "pin_memory", "non_blocking", "names", "generator"};
    if (std::find(std::begin(settings), std::end(settings), name) == std::end(settings))
      return false;
    if (object == Py_None || object == Py_False) return true;
    if (name == "layout") return object == imported("torch.strided");
    if (name == "memory_format") {
      wants_order = object == imported("torch.contiguous_format");
      return wants_order || object == imported("torch.preserve_format");
    }
    if (name == "device") {
      Object text = Object::steal(PyObject_Str(object));
      return text_of(text.get()) == "cpu";
    }
    return false;
  }

  bool convert_all() {
    for (size_t i = 0; i < values_.size(); ++i) {
      const Parameter& parameter = signature_.parameters[i];
      if (parameter.is_operand()) values.push_back(shared_as<Tensor>(values_[i]));
      if (values_[i] == nullptr) {
        if (!use_default(parameter)) return false;
      } else if (!(parameter.is_operand() ? add_operand(parameter, values_[i])
                                          : add_attribute(parameter, values_[i]))) {
        return false;
      }
    }
    return true;
  }

  bool use_default(const Parameter& parameter) {
    if (parameter.kind == Parameter::Kind::ignored) return true;
    if (!parameter.default_value) return false;
    if (!parameter.is_operand()) return true;  // Builder fills it in
    graph::Builder& builder = interpreter_.builder();
    const AttributeValue& value = *parameter.default_value;
    if (const auto* number = std::get_if<double>(&value))
      operands.push_back(builder.constant(*number));
    else if (const auto* integer = std::get_if<int64_t>(&value))
      operands.push_back(builder.constant(*integer));
    else if (const auto* flag = std::get_if<bool>(&value))
      operands.push_back(builder.constant(*flag));
    else
      operands.push_back(builder.none());
    return true;
  }

  bool add_tensor(const Value& value) {
    if (auto tensor = shared_as<Tensor>(value)) {
      operands.push_back(read(interpreter_, *tensor));
      tensors.push_back(std::move(tensor));
      return true;
    }
    if (!is_number(value)) return false;
    operands.push_back(interpreter_.graph_value(value));
    return true;
  }

  bool add_operand(const Parameter& parameter, const Value& value) {
    if (parameter.kind == Parameter::Kind::tensor_list) {
      Value twin = opened(interpreter_, value);
      const auto* sequence = as<Sequence>(twin);
      if (sequence == nullptr) return false;
      for (const Value& element : sequence->elements) {
        if (parameter.element_optional && is_none(element))
          operands.push_back(interpreter_.builder().none());
        else if (as<Tensor>(element) == nullptr || !add_tensor(element))
          return false;
      }
      return true;
    }
    if (is_none(value)) {
      if (!parameter.optional) return false;
      operands.push_back(interpreter_.builder().none());
      return true;
    }
    if (parameter.kind == Parameter::Kind::tensor) return add_tensor(value);
    if (auto* tensor = as<Tensor>(value); takes_elements_ && tensor != nullptr &&
                                          tensor->value->type.rank() == 0 &&
                                          !tensor->requires_grad) {
      operands.push_back(interpreter_.graph_value(item(interpreter_, *tensor)));
      return true;
    }
    if (!is_number(value)) return false;
    operands.push_back(interpreter_.graph_value(value));
    return true;
  }

  bool add_attribute(const Parameter& parameter, const Value& value) {
    std::optional<AttributeValue> converted;
    if (parameter.kind == Parameter::Kind::ignored)
      return is_default_setting(parameter.name, value);
    if (is_none(value)) {
      if (!parameter.optional) return false;
      converted = graph::None{};
    } else {
      converted = attribute_value(parameter, value);
    }
    if (!converted) return false;
    attributes.set(parameter.name, std::move(*converted));
    return true;
  }

  std::optional<AttributeValue> attribute_value(const Parameter& parameter, const Value& value) {
    PyObject* object = known_object(value);
    switch (parameter.kind) {
      case Parameter::Kind::integer: {
        if (object != nullptr && PyBool_Check(object))
          return AttributeValue(static_cast<int64_t>(object == Py_True));
        std::optional<graph::Dim> dim = as_size(parameter, value);
        if (!dim) return std::nullopt;
        return dim->is_constant() ? AttributeValue(dim->value()) : AttributeValue(*dim);
      }
      case Parameter::Kind::integer_list:
        return integer_list(parameter, value);
      case Parameter::Kind::boolean:
        if (is_flag(value)) return AttributeValue(truth(interpreter_, value, -1));
        if (object == nullptr || !PyBool_Check(object)) return std::nullopt;
        return AttributeValue(object == Py_True);
      case Parameter::Kind::string:
        if (object == nullptr || !PyUnicode_CheckExact(object)) return std::nullopt;
        return AttributeValue(text_of(object));
      case Parameter::Kind::dtype: {
        std::optional<graph::DType> dtype = object == nullptr ? std::nullopt : dtype_of(object);
        if (!dtype) return std::nullopt;
        return AttributeValue(*dtype);
      }
      case Parameter::Kind::boolean_list:
      case Parameter::Kind::floating_list:
        return constant_list(parameter, value);
      default:
        return std::nullopt;
    }
  }

  /// As a dimension, also where only the run knows the size of what is made.
  std::optional<graph::Dim> as_size(const Parameter& parameter, const Value& value) {
    const std::optional<graph::Dim> dim = as_dimension(value);
    const bool is_size = parameter.name == "size" || parameter.name == "repeats" ||
                         std::ranges::none_of(signature_.parameters, [](const Parameter& each) {
                           return each.kind <= Parameter::Kind::tensor_list;
                         });
    if (dim || !is_integer(value)) return dim;
    graph::Value* const number = interpreter_.graph_value(value);
    if (is_size) return interpreter_.run_time_dimension(number);
    return interpreter_.run_time_size([&](const graph::Value* size) { return size == number; });
  }

  std::optional<AttributeValue> integer_list(const Parameter& parameter, const Value& value) {
    if (std::optional<graph::Dim> dim = as_size(parameter, value)) {
      bool first =
          &parameter == &signature_.parameters[0] ||
          (signature_.parameters[0].name == "self" && &parameter == &signature_.parameters[1]);
      if (parameter.list_size == 0 && !first) return std::nullopt;
      auto length = static_cast<size_t>(std::max(parameter.list_size, 1));
      return AttributeValue(graph::Shape(length, *dim));
    }
    Value twin = opened(interpreter_, value);
    const auto* sequence = as<Sequence>(twin);
    if (sequence == nullptr) return std::nullopt;
    graph::Shape shape;
    for (const Value& element : sequence->elements) {
      std::optional<graph::Dim> dim = as_size(parameter, element);
      if (!dim) return std::nullopt;
      shape.push_back(*dim);
    }
    if (shape.size() == 1 && parameter.list_size > 1)
      shape.resize(static_cast<size_t>(parameter.list_size), graph::Dim(shape[0]));
    return AttributeValue(std::move(shape));
  }

  std::optional<AttributeValue> constant_list(const Parameter& parameter, const Value& value) {
    Value twin = opened(interpreter_, value);
    const auto* sequence = as<Sequence>(twin);
    if (sequence == nullptr) return std::nullopt;
    std::vector<double> numbers;
    std::vector<bool> flags;
    for (const Value& element : sequence->elements) {
      PyObject* object = known_object(element);
      if (object == nullptr) return std::nullopt;
      if (parameter.kind == Parameter::Kind::boolean_list) {
        if (!PyBool_Check(object)) return std::nullopt;
        flags.push_back(object == Py_True);
        continue;
      }
      if (!PyFloat_CheckExact(object) && !PyLong_CheckExact(object)) return std::nullopt;
      numbers.push_back(PyFloat_AsDouble(object));
    }
    if (parameter.kind == Parameter::Kind::boolean_list) return AttributeValue(std::move(flags));
    return AttributeValue(std::move(numbers));
  }

  Interpreter& interpreter_;
  const graph::Signature& signature_;
  const CallArguments& arguments_;
  bool is_python_function_;  ///< of nn.functional, which has `inplace` last
  bool takes_elements_;
  std::vector<Value> values_;
};

/// Whether the result of an operator on the tensors has a gradient, were gradients enabled.
bool is_tracked(Interpreter& interpreter, const graph::OpDef& op,
                const std::vector<std::shared_ptr<Tensor>>& tensors) {
  if (op.is(graph::Trait::no_gradient)) return false;
  for (const auto& tensor : tensors)
    if (tensor->requires_grad) return true;
  for (const auto& tensor : tensors)
    if (interpreter.modes.grad_enabled && is_leaf_view(*tensor))
      interpreter.refuse(ReasonCode::autograd,
                         "gradients of a view that was taken without gradients");
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

Reshaping reshaping_by(const graph::Node& node, const Tensor& operand) {
  if (node.op != &op::contiguous) return reshaping(operand, node.output()->type.shape);
  if (is_contiguous(operand)) return Reshaping::view;
  return is_surely_not_contiguous(operand) ? Reshaping::copy : Reshaping::unknown;
}

bool is_copy(const graph::Node& node, const Tensor& operand) {
  return may_copy(*node.op) && reshaping_by(node, operand) == Reshaping::copy;
}

void note_view(ValueMaker& maker, Tensor& result, const graph::Node& node,
               const std::shared_ptr<Tensor>& base, PyObject* callable,
               const CallArguments& arguments) {
  result.base = base;
  base->is_viewed = true;
  result.view_node = &node;
  if (result.value->definition == &node) result.view_output = result.value->index;
  result.seen_version = base->version;
  if (callable != nullptr) {
    result.view_callee = maker.constant_borrowed(callable);
    result.view_arguments = arguments;
  }
  result.strides = strides_of_view(node, result.view_output, *base);
  if (may_copy(*node.op) && reshaping_by(node, *base) == Reshaping::unknown) {
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

/// Losses have no derivative by the weights of their classes or elements; eager raises.
void refuse_weights_with_gradient(Interpreter& interpreter, const OperatorCall& call,
                                  const graph::OpDef& op) {
  if (!interpreter.modes.grad_enabled || op.constants.empty()) return;
  auto value = call.values.begin();
  for (const Parameter& parameter : op.signature().parameters) {
    if (!parameter.is_operand()) continue;
    const std::shared_ptr<Tensor>& tensor = *value++;
    if (tensor != nullptr && tensor->requires_grad && is_word_of(op.constants, parameter.name))
      interpreter.refuse(ReasonCode::autograd, cat("the gradient of the weights of ", op.name));
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
  refuse_weights_with_gradient(interpreter, call, op);
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
    tensor->producer = std::string(op.name);
    if (differentiable)
      tensor->produced_by = describe_call(interpreter, callable, arguments, results.size());
    tensor->strides = call.wants_order || in_order
                          ? contiguous_strides(output->type.shape)
                          : strides_of_result(op, output->type.shape, call.tensors);
    if (op.is(graph::Trait::view) && !call.tensors.empty()) {
      if (is_copy(*node, *call.tensors[0])) {
        tensor->producer = &op == &op::contiguous ? "clone" : "_unsafe_view";
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
  bool tracked = is_tracked(interpreter, op, call.tensors);
  auto produced_by = tracked ? describe_call(interpreter, callable, arguments, 0) : nullptr;
  write_in_place(interpreter, self, *node, contents, tracked);
  self->producer = std::string(op.name);
  self->produced_by = std::move(produced_by);
  return self;
}

std::string describe_callable_object(PyObject* callable) {
  Object name = Object::steal(PyObject_GetAttrString(callable, "__name__"));
  PyErr_Clear();
  return name ? text_of(name.get()) : "an operator";
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

/// Whether it is a dropout that drops nothing: eager gives the operand itself. Of a probability
/// that varies it is guarded that there is one.
bool gives_its_operand(Interpreter& interpreter, const graph::OpDef& op, const OperatorCall& call) {
  if (!op.is(graph::Trait::random) || !op.is(graph::Trait::composite)) return false;
  if (!call.attributes.get_or<bool>("train", true) ||
      !call.attributes.get_or<bool>("training", true))
    return true;
  const graph::Shape& shape = call.tensors[0]->value->type.shape;
  if (std::ranges::any_of(shape, [](const graph::Dim& dim) { return dim.is(0); })) return true;
  graph::Value* probability = call.operands[1];
  if (const auto known = graph::constant_number(probability)) return *known == 0;
  graph::Builder& builder = interpreter.builder();
  graph::Value* zero = probability->type.kind == graph::Type::Kind::f64
                           ? builder.constant(0.0)
                           : builder.constant(int64_t{0});
  graph::Value* drops = op::scalar_ne(builder, {probability, zero});
  interpreter.follow(drops, Object::borrow(Py_True), /*fact_number=*/-1);
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
  const Object holds = Object::borrow(Py_True);
  graph::Builder& builder = interpreter.builder();
  for (const auto& [comparison, bound] :
       {std::pair(&op::scalar_ge, least), std::pair(&op::scalar_le, largest)}) {
    graph::Value* limit = number->type.kind == graph::Type::Kind::f64
                              ? builder.constant(static_cast<double>(bound))
                              : builder.constant(bound);
    graph::Value* test = (*comparison)(builder, {number, limit});
    interpreter.follow(test, holds, -1);
  }
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
  const graph::Type& result = node.outputs.front()->type;
  if (!result.is_tensor() || takes_every_number(*node.op, result.dtype)) return;
  const bool replaces = node.op->replaces_elements;
  const auto operands = node.op->signature().operands();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    graph::Value* value = node.inputs[i];
    const bool is_parameter = i < operands.size() && operands[i]->kind == Parameter::Kind::scalar;
    if (!value->type.is_number() || !(replaces || is_parameter)) continue;
    if (const auto number = graph::constant_number(value)) {
      if (!makes_element(result.dtype, *value, *number))
        interpreter.refuse(ReasonCode::would_raise,
                           cat("RuntimeError: ", *number, " does not fit the tensor's dtype"));
    } else if (graph::is_integral(result.dtype) ? value->type.kind == graph::Type::Kind::i64
                                                : result.dtype == graph::DType::f16) {
      assume_that_it_fits(interpreter, value, result.dtype);
    }
  }
}

bool needs_view(const graph::OpDef& op) { return op.sees == graph::Sees::viewed; }

/// What eager makes of the operand's strides: a view that there isn't raises, and a reshape that
/// copies puts the elements in order, which later passes must not undo. Null: only the run knows
/// whether there is such a view.
graph::Node* settle_reshaping(Interpreter& interpreter, OperatorCall& call, graph::Node* node) {
  const graph::OpDef& op = *node->op;
  if (!needs_view(op) && !may_copy(op)) return node;
  const Reshaping reshaping = reshaping_by(*node, *call.tensors[0]);
  if (reshaping == Reshaping::view) return node;
  if (needs_view(op) && reshaping == Reshaping::unknown) return nullptr;
  if (needs_view(op))
    interpreter.refuse(ReasonCode::would_raise, "RuntimeError: the strides allow no such view");
  if (reshaping == Reshaping::unknown || &op == &op::contiguous) return node;
  call.operands[0] = op::contiguous(interpreter.builder(), {call.operands[0]});
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

/// Fits the call to one overload; null if it does not fit, or `message` says why.
Value call_overload(Interpreter& interpreter, const OperatorForm& form, const graph::OpDef& op,
                    bool takes_elements, PyObject* callable, const CallArguments& arguments,
                    std::string* message) {
  OperatorCall call(interpreter, op, arguments, callable != nullptr && PyFunction_Check(callable),
                    takes_elements);
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
    graph::Node* node =
        draws_in_order_of_strides(op, call, in_place)
            ? drawn_in_order_of_strides(interpreter, call, op, in_place)
            : interpreter.builder().append(op, call.operands, std::move(call.attributes));
    interpreter.mark(speculate::LineMark::Kind::graph);
    assume_that_numbers_fit(interpreter, *node);
    node = settle_reshaping(interpreter, call, node);
    if (node == nullptr) return call_opaque(interpreter, callable, arguments, {});
    if (in_place) return finish_in_place(interpreter, call, op, node, callable, arguments);
    return finish_call(interpreter, call, op, node, callable, arguments);
  } catch (const graph::TypeError& error) {
    // Later overloads are for operands of another kind.
    if (message->empty()) *message = error.what();
    return nullptr;
  }
}

/// Fits the call to one of the overloads; `message` says why none did.
Value call_form(Interpreter& interpreter, const OperatorForm& form, PyObject* callable,
                const CallArguments& arguments, std::string* message) {
  if (interpreter.modes.autocast.is_on) {
    const graph::OpDef& op = *form.ops.front();
    // Nothing is cast for what is written in place.
    CallArguments cast = form.in_place ? arguments : with_casts(interpreter, op, arguments);
    const WithoutAutocast within(interpreter.modes.autocast);
    const std::optional<graph::DType> narrow =
        form.in_place ? std::nullopt : widen_norm(interpreter, op, cast);
    Value result = call_form(interpreter, form, callable, cast, message);
    return narrow && result != nullptr ? cast_to(interpreter, result, *narrow) : result;
  }
  // Torch takes a tensor without dimensions for a number where no overload takes it for a tensor.
  for (const bool takes_elements : {false, true})
    for (const graph::OpDef* op : form.ops)
      if (Value result =
              call_overload(interpreter, form, *op, takes_elements, callable, arguments, message))
        return result;
  return nullptr;
}

}  // namespace

namespace {

/// f(..., out=tensor): the result is written into the tensor.
Value call_with_out(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments,
                    const std::shared_ptr<Tensor>& out) {
  CallArguments rest = arguments;
  std::erase_if(rest.keywords, [](const auto& keyword) { return keyword.first == "out"; });
  auto result = shared_as<Tensor>(call_operator(interpreter, callable, rest));
  if (result == nullptr || result->value->definition == nullptr ||
      result->value->type != out->value->type || result->requires_grad || out->requires_grad)
    interpreter.refuse(ReasonCode::unsupported_argument, "the argument out");
  refuse_overlap(interpreter, *out, *result->value->definition, rest);
  write_tracked(interpreter, out, result->value, false);
  return out;
}

}  // namespace

Value call_operator(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments) {
  if (const Value* out = arguments.keyword("out"))
    if (auto tensor = shared_as<Tensor>(*out); tensor != nullptr && !PyFunction_Check(callable))
      return call_with_out(interpreter, callable, arguments, tensor);
  if (Value result = call_on_list(interpreter, callable, arguments)) return result;
  std::string message;
  if (const OperatorForm* form = operator_form(callable))
    if (Value result = call_form(interpreter, *form, callable, arguments, &message)) return result;
  if (PyFunction_Check(callable) || PyType_Check(callable)) return nullptr;
  if (Value result = call_opaque(interpreter, callable, arguments, message)) return result;
  if (!message.empty())
    interpreter.refuse(ReasonCode::shape_mismatch,
                       cat(describe_callable_object(callable), ": ", message));
  return nullptr;
}

Value call_named(Interpreter& interpreter, std::string_view python_name,
                 const CallArguments& arguments) {
  std::string message;
  const OperatorForm* form = operator_form_named(python_name);
  PyObject* callable = nullptr;
  if (form != nullptr) {
    callable = imported(cat("torch.", python_name));
    if (Value result = call_form(interpreter, *form, callable, arguments, &message)) return result;
  }
  callable = imported(cat("torch.", python_name));
  if (callable != nullptr)
    if (Value result = call_opaque(interpreter, callable, arguments, message)) return result;
  interpreter.refuse(ReasonCode::shape_mismatch,
                     cat(python_name, ": ", message.empty() ? "unsupported arguments" : message));
}

std::shared_ptr<Tensor> tensor_by(Interpreter& interpreter, std::string_view python_name,
                                  std::vector<Value> operands) {
  CallArguments arguments;
  arguments.positional = std::move(operands);
  auto tensor = shared_as<Tensor>(call_named(interpreter, python_name, arguments));
  TORCHJANUS_CHECK(tensor != nullptr, python_name, " gave no tensor");
  return tensor;
}

Value full(Interpreter& interpreter, std::vector<Value> sizes, const Value& number,
           graph::DType dtype) {
  CallArguments arguments;
  arguments.positional = {make_tuple(std::move(sizes)), number};
  arguments.keywords.emplace_back("dtype", interpreter.constant(dtype_object(dtype)));
  return call_named(interpreter, "full", arguments);
}

}  // namespace janus::frontend
