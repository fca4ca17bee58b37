#include "frontend/recursion/lazy_stacks.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>

#include "frontend/control/list_reductions.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/lengths.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/symbolic_list.h"
#include "frontend/values/unnamed_sizes.h"
#include "ops/list.h"

namespace janus::frontend {

namespace {

bool is_one_of(PyObject* callable, std::initializer_list<std::string_view> paths) {
  return std::ranges::any_of(paths,
                             [&](std::string_view path) { return callable == imported(path); });
}

/// sum(tensor, dim, keepdim) over the first dimension.
struct Reduction {
  bool is_mean = false, keeps = false;

  /// Nothing for another call.
  static std::optional<Reduction> of(PyObject* callable, const CallArguments& arguments,
                                     int64_t rank) {
    Reduction reduction{.is_mean = is_one_of(callable, {"torch.mean", "torch.Tensor.mean"})};
    if (!reduction.is_mean && !is_one_of(callable, {"torch.sum", "torch.Tensor.sum"}))
      return std::nullopt;
    const auto given = [&](size_t place, std::string_view name) {
      const Value* keyword = arguments.keyword(name);
      if (keyword != nullptr) return *keyword;
      return place < arguments.positional.size() ? arguments.positional[place] : nullptr;
    };
    size_t known = arguments.positional.size();
    for (const auto& [name, value] : arguments.keywords)
      known += name == "dim" || name == "keepdim";
    PyObject* const dim = known_object(given(1, "dim"));
    PyObject* const keeps = known_object(given(2, "keepdim"));
    const bool fits = known == arguments.positional.size() + arguments.keywords.size() &&
                      known <= 3 && dim != nullptr && PyLong_CheckExact(dim) &&
                      (keeps == nullptr || PyBool_Check(keeps));
    if (!fits) return std::nullopt;
    const int64_t place = PyLong_AsLongLong(dim);
    if (place != 0 && place != -rank) return std::nullopt;
    reduction.keeps = keeps == Py_True;
    return reduction;
  }
};

/// Whether the node only says that the tensor stands for a list.
bool stands_for_list(const graph::Node& node) {
  return node.outputs.size() == 1 && node.output()->type.is_tensor() &&
         node.output()->type.rank() > 0 && is_unnamed(node.output()->type.shape.front());
}

void collect_used(const graph::Block& block, std::set<const graph::Value*>& used) {
  used.insert(block.results.begin(), block.results.end());
  for (const graph::Node* node : block.nodes) {
    used.insert(node->inputs.begin(), node->inputs.end());
    for (const auto& inner : node->blocks) collect_used(*inner, used);
  }
}

/// Removes lazy stacks without uses. Gives whether there was one.
bool remove_unused(graph::Block& block, const std::set<const graph::Value*>& used) {
  bool removed = std::erase_if(block.nodes, [&](const graph::Node* node) {
                   return stands_for_list(*node) && !used.contains(node->output());
                 }) > 0;
  for (graph::Node* node : block.nodes)
    for (const auto& inner : node->blocks) removed = remove_unused(*inner, used) || removed;
  return removed;
}

bool remove_unused(graph::Block& body) {
  std::set<const graph::Value*> used;
  collect_used(body, used);
  return remove_unused(body, used);
}

}  // namespace

Value LazyStacks::standing_for(Interpreter& interpreter, Rows rows) {
  const graph::Dim size = graph::Dim::symbol(cat(kUnnamed, interpreter.new_place()));
  graph::Value* value = op::list_stack(interpreter.builder(), {rows.list->lists.front()},
                                       {{"dim", int64_t{0}}, {"size", size}});
  if (rows.has_one_row_each) {
    graph::Shape shape = value->type.shape;
    shape.erase(shape.begin() + 1);
    value = op::reshape(interpreter.builder(), {value}, {{"shape", shape}});
  }
  auto tensor =
      make_tensor(interpreter, value, rows.list->form.tracked && interpreter.modes.grad_enabled);
  lists_.emplace(value, std::move(rows));
  return tensor;
}

Value LazyStacks::stacked(Interpreter& interpreter, std::shared_ptr<const Rolled> list) {
  return standing_for(interpreter, {.list = std::move(list)});
}

Value LazyStacks::joined(Interpreter& interpreter, std::shared_ptr<const Rolled> list) {
  return standing_for(interpreter, {.list = std::move(list), .has_one_row_each = true});
}

Value LazyStacks::call(Interpreter& interpreter, PyObject* callable,
                       const CallArguments& arguments) const {
  const auto* tensor = lists_.empty() || arguments.positional.empty()
                           ? nullptr
                           : as<Tensor>(arguments.positional[0]);
  const auto rows = tensor == nullptr ? lists_.end() : lists_.find(tensor->value);
  if (rows == lists_.end()) return nullptr;
  const Rolled& list = *rows->second.list;
  const auto reduction = Reduction::of(callable, arguments, tensor->value->type.rank());
  if (!reduction || tensor->requires_grad != list.form.tracked) return nullptr;
  Value total = total_of(interpreter, list);
  if (reduction->is_mean)
    total = binary(interpreter, syntax::Operator::Div, total, length_of(interpreter, list));
  if (reduction->keeps == rows->second.has_one_row_each) return total;
  return tensor_by(interpreter, reduction->keeps ? "unsqueeze" : "squeeze",
                   {total, interpreter.integer(0)});
}

void LazyStacks::finish(Interpreter& interpreter) const {
  if (lists_.empty()) return;
  // From the last one back, since removing one may leave an earlier one without uses.
  while (remove_unused(interpreter.output().graph.body())) {
  }
  for_each_node(interpreter.output().graph.body(), [&](const graph::Node& node) {
    if (stands_for_list(node))
      interpreter.refuse(ReasonCode::dynamic_value,
                         "a tensor of a list whose length only an activation knows");
  });
}

}  // namespace janus::frontend
