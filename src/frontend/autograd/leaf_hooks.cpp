#include "frontend/autograd/leaf_hooks.h"

#include <algorithm>

#include "base/mutation.h"
#include "frontend/core/grad_mode.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/snapshot.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

/// The hooks that the tensor keeps in the dict of that name, in order.
std::vector<Value> hooks_at(Interpreter& interpreter, const Tensor& leaf, const char* attribute) {
  if (!interpreter.hooked_leaves.contains(&leaf)) return {};
  const Object name = Object::steal(PyUnicode_InternFromString(attribute));
  const Object table = interpreter.must(PyObject_GetAttr(leaf.object.get(), name.get()));
  const Value value = interpreter.wrap(
      table.get(), interpreter.sources().step(Source::Kind::attribute, leaf.source, name));
  if (is_none(value)) return {};
  std::vector<Value> hooks;
  for (const auto& [id, hook] : as<Dictionary>(opened(interpreter, value))->items)
    hooks.push_back(hook);
  return hooks;
}

/// While a hook runs, only the gradient of its own leaf is known to be there, or not yet.
class HookOfLeaf {
 public:
  HookOfLeaf(AutogradState& autograd, const Tensor& leaf)
      : autograd_(autograd), before_(autograd.hook_of) {
    autograd.hook_of = &leaf;
  }
  ~HookOfLeaf() { autograd_.hook_of = before_; }
  HookOfLeaf(const HookOfLeaf&) = delete;
  HookOfLeaf& operator=(const HookOfLeaf&) = delete;

 private:
  AutogradState& autograd_;
  const Tensor* before_;
};

}  // namespace

graph::Value* through_hooks(Interpreter& interpreter, const std::shared_ptr<Tensor>& leaf,
                            graph::Value* gradient, Handed& handed) {
  const std::vector<Value> hooks = hooks_at(interpreter, *leaf, "_backward_hooks");
  if (hooks.empty()) return gradient;
  const HookOfLeaf scope(interpreter, *leaf);
  const auto given = make_tensor(interpreter, gradient, /*requires_grad=*/false);
  const Value result = run_hooks(interpreter, hooks, given);
  handed.insert(handed.end(), {given, memory_of(shared_as<Tensor>(result))});
  graph::Value* replaced = read(interpreter, *as<Tensor>(result));
  if (replaced->type != gradient->type)
    interpreter.refuse(ReasonCode::autograd, "a gradient of another shape or dtype");
  return replaced;
}

void call_accumulation_hooks(Interpreter& interpreter, const std::shared_ptr<Tensor>& leaf) {
  const std::vector<Value> hooks = hooks_at(interpreter, *leaf, "_post_accumulate_grad_hooks");
  if (hooks.empty()) return;
  const HookOfLeaf scope(interpreter, *leaf);
  const GradMode mode(interpreter, false);
  for (const Value& hook : hooks) {
    CallArguments arguments;
    arguments.positional = {leaf};
    if (is_planted(State::hook, Mutation::not_written)) continue;
    if (is_planted(State::hook, Mutation::twice)) call(interpreter, hook, arguments);
    if (!is_none(call(interpreter, hook, arguments)))
      interpreter.refuse(ReasonCode::would_raise,
                         "RuntimeError: a hook after the accumulation gives something");
  }
}

namespace {

bool draws(const graph::Node& node) {
  bool found = node.op == &op::opaque ? node.attributes.get_or<bool>("_draws", false)
                                      : node.op->is(graph::Trait::random);
  for (const auto& block : node.blocks)
    graph::for_each_node(*block, [&](const graph::Node& inner) { found = found || draws(inner); });
  return found;
}

/// Compares the state after the hooks with a checkpoint of it before they ran.
class SideEffectCheck {
 public:
  SideEffectCheck(Interpreter& interpreter, std::span<const std::shared_ptr<Tensor>> leaves,
                  bool is_one)
      : interpreter_(interpreter), leaves_(leaves), is_one_(is_one) {
    for (const auto& leaf : leaves) gradients_.push_back(leaf->grad);
  }

  /// Refuses what an order would show: of one leaf's hooks, writes to tensors, which those parts of
  /// the gradient see that come later; of several, whatever leaves a trace.
  void check() const {
    const auto& nodes = interpreter_.builder().block().nodes;
    const bool leaves_trace =
        changes_ != interpreter_.heap.change_count() || effects_ != interpreter_.effect_count() ||
        std::any_of(nodes.begin() + static_cast<std::ptrdiff_t>(node_count_), nodes.end(),
                    [](const graph::Node* node) {
                      return draws(*node) || node->op->is(graph::Trait::communicates);
                    });
    if (!is_one_ && leaves_trace) refuse();
    for (const Snapshot::Saved& saved : before_.objects())
      if (!saved.was_only_read() && !may_change(saved)) refuse();
  }

 private:
  [[noreturn]] void refuse() const {
    interpreter_.refuse(ReasonCode::hook, "a leaf (what it does shows when it runs)");
  }

  bool may_change(const Snapshot::Saved& saved) const {
    const auto* tensor = dynamic_cast<const Tensor*>(saved.object);
    if (tensor == nullptr) return is_one_;
    return is_gradient(*tensor) ||
           is_same_but_for_gradient(std::get<TensorState>(saved.state), *tensor);
  }

  bool is_gradient(const Tensor& tensor) const {
    const auto holds = [&](const Value& gradient) {
      const auto* optional = as<Optional>(gradient);
      return as<Tensor>(optional != nullptr ? optional->value : gradient) == &tensor;
    };
    return std::ranges::any_of(gradients_, holds) ||
           std::ranges::any_of(leaves_, [&](const auto& leaf) { return holds(leaf->grad); });
  }

  static bool is_same_but_for_gradient(TensorState before, const Tensor& now) {
    before.grad = now.grad;
    before.grad_replaced = now.grad_replaced;
    before.grad_unread = now.grad_unread;
    return same_state(ChangeableState(std::move(before)), state_of(now));
  }

  Interpreter& interpreter_;
  const std::span<const std::shared_ptr<Tensor>> leaves_;
  const bool is_one_;
  std::vector<Value> gradients_;
  const Snapshot before_ = Snapshot::take();
  const size_t changes_ = interpreter_.heap.change_count();
  const size_t effects_ = interpreter_.effect_count();
  const size_t node_count_ = interpreter_.builder().block().nodes.size();
};

/// Whether what the function gives depends on nothing but its arguments: its code names, beside its
/// own variables, modules and what is built in.
bool is_self_contained(Names& names, const Value& hook) {
  const auto* known = as<Known>(hook);
  PyObject* const function = known == nullptr ? nullptr : known->object.get();
  if (function == nullptr || !PyFunction_Check(function)) return false;
  if (PyFunction_GetDefaults(function) != nullptr || PyFunction_GetKwDefaults(function) != nullptr)
    return false;
  PyObject* const constants =
      reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function))->co_consts;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); ++i)
    if (PyCode_Check(PyTuple_GET_ITEM(constants, i))) return false;  // a function within
  const auto code = names.code_of(function, known->source);
  PyObject* const globals = PyFunction_GET_GLOBALS(function);
  return std::ranges::all_of(code->tree->scope->names, [&](const auto& name) {
    if (name.second == syntax::NameKind::free) return false;
    if (name.second != syntax::NameKind::global) return true;
    // What is built in, and torch. Other modules have variables that hooks may change.
    PyObject* const value = PyDict_GetItemString(globals, name.first.c_str());
    return value == nullptr || value == torch_module();
  });
}

/// Whether the hooks see nothing of what other hooks, and Functions, may have changed before.
bool are_self_contained(Interpreter& interpreter, std::span<const std::shared_ptr<Tensor>> leaves) {
  return std::ranges::all_of(leaves, [&](const std::shared_ptr<Tensor>& leaf) {
    if (!hooks_at(interpreter, *leaf, "_post_accumulate_grad_hooks").empty()) return false;
    return std::ranges::all_of(
        hooks_at(interpreter, *leaf, "_backward_hooks"),
        [&](const Value& hook) { return is_self_contained(interpreter, hook); });
  });
}

}  // namespace

void in_any_order(Interpreter& interpreter, std::span<const std::shared_ptr<Tensor>> leaves,
                  const std::function<void()>& body) {
  const auto hooked = std::ranges::count_if(leaves, [&](const std::shared_ptr<Tensor>& leaf) {
    return interpreter.hooked_leaves.contains(leaf.get());
  });
  if (hooked == 0) return body();
  const bool is_alone = interpreter.custom_gradients.empty();
  if (!is_alone && !are_self_contained(interpreter, leaves))
    interpreter.refuse(ReasonCode::hook, "a leaf (beside a Function or a hook of another tensor)");
  const SideEffectCheck effects(interpreter, leaves, hooked == 1 && is_alone);
  body();
  effects.check();
}

}  // namespace janus::frontend
