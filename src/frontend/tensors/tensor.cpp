// Tensors as Python objects. An operation in place gives a tensor a new value; a view written to
// scatters into its base, and views of a base that was written are taken again when next read.
#include "frontend/tensors/tensor.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/core/torch_services.h"
#include "frontend/values/batch_sizes.h"
#include "frontend/values/make.h"
#include "frontend/values/strides.h"
#include "graph/constant.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

// --- aliases ------------------------------------------------------------------------------------

void PossibleAliases::add(PossibleAlias alias) {
  std::erase_if(all_, [](const PossibleAlias& each) { return each.tensor.expired(); });
  if (!alias.tensor.expired() && std::ranges::find(all_, alias) == all_.end())
    all_.push_back(std::move(alias));
}

// --- contents -----------------------------------------------------------------------------------

namespace {

[[noreturn]] void refuse_written_alias(const Frames& frames) {
  frames.refuse(ReasonCode::unsupported_tensor,
                "a tensor that may share memory with another one, which was written");
}

void check_aliases_unchanged(const Frames& frames, const Tensor& tensor) {
  for (const PossibleAlias& alias : tensor.possible_aliases)
    if (auto other = alias.tensor.lock(); other != nullptr && other->version != alias.version)
      frames.refuse(ReasonCode::unsupported_tensor,
                    "a tensor that may be another one, which was written");
  if (tensor.taken_from != nullptr && tensor.seen_version != memory_of(&tensor)->version)
    refuse_written_alias(frames);
}

/// Eager moves what retains a gradient to the tensor as it is written.
bool retains_gradient(const Tensor& tensor) { return !tensor.is_leaf && tensor.grad != nullptr; }

}  // namespace

bool has_live_alias(const Tensor& tensor) {
  for (const PossibleAlias& alias : tensor.possible_aliases)
    if (!alias.tensor.expired()) return true;
  return false;
}

graph::Value* read(Interpreter& interpreter, Tensor& tensor) {
  check_aliases_unchanged(interpreter, tensor);
  if (tensor.base == nullptr) return tensor.value;
  graph::Value* base = read(interpreter, *tensor.base);
  if (tensor.seen_version == tensor.base->version) return tensor.value;
  if (reshaping_by(*tensor.view_node, *tensor.base) == Reshaping::unknown)
    refuse_written_alias(interpreter);
  if (tensor.requires_grad && tensor.is_leaf)
    interpreter.refuse(ReasonCode::autograd, "a leaf shares memory with a tensor that was written");
  if (tensor.requires_grad && retains_gradient(tensor))
    interpreter.refuse(ReasonCode::hook, "a view (what it was taken from is changed in place)");
  std::vector<graph::Value*> inputs = tensor.view_node->inputs;
  inputs[0] = base;
  graph::Node* again =
      interpreter.builder().append(*tensor.view_node->op, inputs, tensor.view_node->attributes);
  tensor.value = again->outputs[tensor.view_output];
  if (tensor.base->requires_grad && !tensor.untracked)
    interpreter.differentiable.insert(tensor.value);
  else if (tensor.base->requires_grad)
    tensor.value = op::detach(interpreter.builder(), {tensor.value});
  tensor.seen_version = tensor.base->version;
  ++tensor.version;
  return tensor.value;
}

const std::shared_ptr<Tensor>& viewed_by(const TensorState& tensor) {
  return tensor.base != nullptr ? tensor.base : tensor.taken_from;
}

bool is_leaf_view(const Tensor& tensor) {
  const Tensor* viewed = viewed_by(tensor).get();
  if (viewed == nullptr || tensor.requires_grad || tensor.untracked ||
      !graph::is_differentiable(tensor.value->type.dtype) ||
      (tensor.view_node != nullptr && tensor.view_node->op == &op::detach))
    return false;
  return viewed->requires_grad || is_leaf_view(*viewed);
}

void refuse_leaf_view(const Interpreter& interpreter, const Tensor& tensor) {
  if (interpreter.modes.grad_enabled && is_leaf_view(tensor))
    interpreter.refuse(ReasonCode::autograd,
                       "gradients of a view that was taken without gradients");
}

bool is_current(const Tensor& tensor) {
  return tensor.base == nullptr ||
         (tensor.seen_version == tensor.base->version && is_current(*tensor.base));
}

const Tensor* memory_of(const Tensor* tensor) {
  while (const Tensor* next = viewed_by(*tensor).get()) tensor = next;
  return tensor;
}

std::shared_ptr<Tensor> memory_of(std::shared_ptr<Tensor> tensor) {
  const Tensor* memory = memory_of(tensor.get());
  while (tensor.get() != memory) tensor = viewed_by(*tensor);
  return tensor;
}

namespace {

/// What `base` is after a view of it was written. A view made of several is undone one by one.
graph::Value* scatter(Interpreter& interpreter, const Tensor& tensor, graph::Value* base,
                      graph::Value* contents) {
  graph::Builder& builder = interpreter.builder();
  const graph::Node& node = *tensor.view_node;
  const bool is_one = node.outputs.size() == 1;
  if (is_one && node.op->scatter != nullptr)
    return node.op->scatter({builder, node, base, contents});
  std::vector<const graph::Node*> views;
  if (is_one && node.inputs.size() == 1 && node.op->decompose != nullptr) {
    graph::Value* inputs[] = {base};
    const graph::Value* value = node.op->decompose({builder, node, inputs}).at(0);
    for (; value != base; value = value->definition->inputs[0]) {
      const graph::Node* view = value->definition;
      if (view == nullptr || view->inputs.size() != 1 || view->op->scatter == nullptr) break;
      views.push_back(view);
    }
    if (value != base) views.clear();
    if (value == base && views.empty()) return contents;
  }
  if (views.empty())
    interpreter.refuse(ReasonCode::unsupported_tensor,
                       cat("an in-place write through the view ", node.op->name));
  for (const graph::Node* view : views)
    contents = view->op->scatter({builder, *view, view->inputs[0], contents});
  return contents;
}

/// Whether it is a view of a leaf that requires a gradient, linked to it by autograd. Autograd sees
/// no write to such memory: it changes what the view holds, not where its gradient goes.
bool is_linked_to_leaf(const Tensor& view) {
  if (!view.requires_grad || view.is_leaf) return false;
  for (const Tensor* step = view.base.get(); step != nullptr; step = step->base.get())
    if (step->requires_grad && step->is_leaf) return true;
  return false;
}

/// So that the next read takes a view again.
constexpr uint32_t kNeverSeen = std::numeric_limits<uint32_t>::max();

}  // namespace

void write(Interpreter& interpreter, Tensor& tensor, graph::Value* contents) {
  if (tensor.source != nullptr) ++interpreter.outside_writes;
  if (tensor.uncertain_alias || has_live_alias(tensor))
    interpreter.refuse(ReasonCode::unsupported_tensor,
                       "an in-place write to a tensor that may share memory with another");
  if (interpreter.made_in_inference && !interpreter.modes.inference_mode &&
      tensor.source == nullptr)
    interpreter.refuse(ReasonCode::mode_active, "an in-place write after inference mode");
  if (tensor.base != nullptr) {
    Tensor& base = *tensor.base;
    graph::Value* whole = scatter(interpreter, tensor, read(interpreter, base), contents);
    // A leaf is only written where autograd does not see it: what stays of it is the leaf anew.
    // What a leaf was detached from is no leaf, even if it holds the same.
    if ((base.is_leaf && base.requires_grad) || (tensor.requires_grad && !base.requires_grad))
      whole = op::detach(interpreter.builder(), {whole});
    write(interpreter, base, whole);
    tensor.seen_version = is_linked_to_leaf(tensor) ? kNeverSeen : base.version;
  } else {
    tensor.written = true;
  }
  interpreter.history.overwritten.emplace(tensor.value, nullptr);
  if (const graph::Value* counterpart = interpreter.switches.counterpart_or_null(tensor.value))
    interpreter.history.overwritten.emplace(counterpart, nullptr);
  tensor.past_values.push_back(tensor.value);
  tensor.value = contents;
  ++tensor.version;
  if (tensor.requires_grad) interpreter.differentiable.insert(contents);
}

namespace {

Tensor& root_of(Tensor& tensor) {
  Tensor* root = &tensor;
  while (root->base != nullptr) root = root->base.get();
  return *root;
}

bool is_untracked_alias(const Tensor& tensor) {
  for (const Tensor* step = &tensor; step != nullptr; step = step->base.get())
    if (step->untracked) return true;
  return false;
}

/// Whether it was taken from its base by detach(), somewhere on the way.
bool is_detached_alias(const Tensor& tensor) {
  for (const Tensor* step = &tensor; step->base != nullptr; step = step->base.get())
    if (step->view_node->op == &op::detach) return true;
  return false;
}

/// Whether it is one of several views that one call gave, which autograd lets nobody write.
bool is_one_of_several(const Tensor& tensor) {
  for (const Tensor* step = &tensor; step->base != nullptr; step = step->base.get())
    if (step->producer.is(op::unbind)) return true;
  return false;
}

/// Refuses a write that moves hooks, or goes past them: those of views are none of what was written
/// through them.
void check_hooks_stay(Interpreter& interpreter, const Tensor& written) {
  for (const Tensor* step = &written; step != nullptr; step = step->base.get())
    if (retains_gradient(*step) ||
        (step->base != nullptr && has_hooks(interpreter.tensor_hooks, *step, step->value)))
      interpreter.refuse(ReasonCode::hook, "a tensor (it is changed in place)");
}

/// What autograd calls the nodes of a tensor that was written, and of the one it was taken from.
void name_after_write(Tensor& tensor, Tensor& root) {
  root.produced_by = tensor.produced_by = nullptr;
  root.grad_fn_name = tensor.grad_fn_name = {};
  if (&tensor == &root) return;
  root.grad_fn_name = "torch::autograd::CopySlices";
  for (Tensor* step = &tensor; step != &root; step = step->base.get())
    step->grad_fn_name = "AsStridedBackward0";
}

}  // namespace

void write_tracked(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                   graph::Value* contents, bool tracked) {
  Tensor& root = root_of(*tensor);
  if (tracked && interpreter.modes.grad_enabled &&
      !graph::is_differentiable(tensor->value->type.dtype))
    interpreter.refuse(ReasonCode::autograd,
                       "an in-place write with a gradient to integers or flags");
  const bool is_detached = is_detached_alias(*tensor);
  if (tracked && interpreter.modes.grad_enabled && is_detached && !is_untracked_alias(*tensor))
    interpreter.refuse(ReasonCode::autograd, "an in-place write with a gradient after detach()");
  if (interpreter.modes.grad_enabled && !is_detached) check_hooks_stay(interpreter, *tensor);
  if (tracked && interpreter.modes.grad_enabled) name_after_write(*tensor, root);
  if (!interpreter.modes.grad_enabled || is_detached) {
    if (root.requires_grad && !root.is_leaf)
      interpreter.refuse(ReasonCode::autograd,
                         "an in-place write that autograd does not see to a tensor that it tracks");
    // No gradient may flow through what autograd did not see.
    if (tracked || root.requires_grad) contents = op::detach(interpreter.builder(), {contents});
    if (is_untracked_alias(*tensor)) ++root.silent_writes;
    return write(interpreter, *tensor, contents);
  }
  if (root.requires_grad && root.is_leaf)
    interpreter.refuse(ReasonCode::would_raise,
                       "RuntimeError: an in-place operation on a leaf that requires grad");
  if ((root.requires_grad || tracked) && is_one_of_several(*tensor))
    interpreter.refuse(ReasonCode::would_raise,
                       "RuntimeError: an in-place operation on one of several views");
  if (tracked) {
    for (Tensor* step = tensor.get(); step != nullptr; step = step->base.get()) {
      step->requires_grad = true;
      step->is_leaf = false;
    }
  }
  write(interpreter, *tensor, contents);
}

namespace {

bool is_negative_or_unknown(const graph::Value* number) {
  const auto known = graph::constant_number(number);
  return known ? !(*known >= 0) : !number->type.is_none();
}

/// Whether eager's autograd keeps a copy of what an in-place operator had as its first operand, or
/// needs its result only. Where not, backward() raises: with negative slopes, and where torch has
/// no such derivative.
bool survives_its_own_write(const graph::Node& node) {
  if (std::ranges::count(node.inputs, node.inputs[0]) > 1) return false;  // kept without a copy
  const graph::Saves saves = graph::saves_of(*node.op);
  if (saves == graph::Saves::values_once) return false;
  if (saves == graph::Saves::result_in_place)
    return std::ranges::none_of(node.inputs | std::views::drop(1), is_negative_or_unknown);
  return node.op != &op::opaque ||
         !torch_services().facts(node.attributes.get<std::string>("operator")).overwrites_saved;
}

}  // namespace

void write_in_place(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                    const graph::Node& node, graph::Value* contents, bool tracked) {
  const graph::Value* before = tensor->value;
  write_tracked(interpreter, tensor, contents, tracked);
  if (!node.inputs.empty() && node.inputs[0] == before && survives_its_own_write(node))
    interpreter.history.overwritten[before] = &node;
}

graph::Value* cast(Interpreter& interpreter, graph::Value* contents, graph::DType dtype) {
  if (contents->type.dtype == dtype) return contents;
  bool narrows = (graph::is_floating(contents->type.dtype) && !graph::is_floating(dtype)) ||
                 (graph::is_complex(contents->type.dtype) && !graph::is_complex(dtype)) ||
                 (dtype == graph::DType::b1);
  if (narrows)
    interpreter.refuse(ReasonCode::would_raise,
                       "RuntimeError: the result can't be cast to the tensor's dtype");
  return op::to(interpreter.builder(), {contents}, {{"dtype", dtype}});
}

std::shared_ptr<Tensor> make_tensor(Interpreter& interpreter, graph::Value* value,
                                    bool requires_grad) {
  if (requires_grad && interpreter.made_in_inference)
    interpreter.refuse(ReasonCode::mode_active, "gradients after inference mode");
  (interpreter.modes.inference_mode ? interpreter.made_in_inference
                                    : interpreter.made_outside_inference) = true;
  auto tensor = std::make_shared<Tensor>();
  tensor->value = value;
  tensor->requires_grad = requires_grad;
  tensor->is_leaf = !requires_grad;
  if (value->type.is_tensor()) tensor->strides = contiguous_strides(value->type.shape);
  if (requires_grad) interpreter.differentiable.insert(value);
  return tensor;
}

std::shared_ptr<Tensor> view_of(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                                const graph::OpDef& op, graph::Attributes attributes,
                                const CallArguments& arguments) {
  graph::Node* node = nullptr;
  try {
    node = interpreter.builder().append(op, {read(interpreter, *tensor)}, std::move(attributes));
  } catch (const graph::TypeError& error) {
    interpreter.refuse(ReasonCode::shape_mismatch, error.what());
  }
  return view_by(interpreter, tensor, node, arguments);
}

std::shared_ptr<Tensor> view_by(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                                const graph::Node* node, const CallArguments& arguments) {
  bool tracked = tensor->requires_grad && interpreter.modes.grad_enabled;
  graph::Value* value = node->output();
  if (tensor->requires_grad && !interpreter.modes.grad_enabled)
    value = op::detach(interpreter.builder(), {value});
  auto view = make_tensor(interpreter, value, tracked);
  view->producer = *node->op;
  view->base = tensor;
  tensor->is_viewed = true;
  view->view_node = node;
  view->seen_version = tensor->version;
  view->strides = strides_of_view(*node, 0, *tensor);
  view->uncertain_alias = tensor->uncertain_alias;
  static PyObject* const getitem = imported("torch.Tensor.__getitem__");
  note_view_call(interpreter, *view, getitem, arguments);
  return view;
}

namespace {

/// Lists as they are now: the program may change them.
Value settled(Interpreter& interpreter, const Value& argument) {
  const Value shadow = opened(interpreter, argument);
  const auto* sequence = as<Sequence>(shadow);
  if (sequence == nullptr || !sequence->is_list || sequence->elements.rolled()) return argument;
  return make_list(sequence->elements.known());
}

}  // namespace

void note_view_call(Interpreter& interpreter, Tensor& view, PyObject* callable,
                    const CallArguments& arguments) {
  view.view_callee = interpreter.constant_borrowed(callable);
  view.view_arguments = arguments;
  for (Value& argument : view.view_arguments.positional) argument = settled(interpreter, argument);
  for (auto& [name, argument] : view.view_arguments.keywords)
    argument = settled(interpreter, argument);
  view.taken_with_gradients = interpreter.modes.grad_enabled;
}

// --- metadata -----------------------------------------------------------------------------------

Value size_of(ValueMaker& maker, const Tensor& tensor) {
  auto size = std::make_shared<Sequence>(false);
  size->type = Object::borrow(reinterpret_cast<PyObject*>(size_class()));
  for (const graph::Dim& dim : tensor.value->type.shape)
    size->elements.push_back(maker.dimension(dim));
  return size;
}

Value item(Interpreter& interpreter, Tensor& tensor) {
  graph::Value* value = read(interpreter, tensor);
  for (const graph::Dim& dim : value->type.shape)
    if (!dim.is(1))
      interpreter.refuse(ReasonCode::would_raise,
                         "RuntimeError: a tensor with more than one element as a number");
  if (graph::is_complex(value->type.dtype))
    interpreter.refuse(ReasonCode::dynamic_value, "a complex number");
  if (const std::optional<graph::Dim> batch = batch_at_first_step(*value))
    return interpreter.dimension(*batch);
  return interpreter.number(op::item(interpreter.builder(), {value}));
}

}  // namespace janus::frontend
