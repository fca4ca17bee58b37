#include "frontend/recursion/list_calls.h"

#include "frontend/control/entry_lists.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/torch_objects.h"
#include "frontend/recursion/recursion.h"
#include "ops/list.h"

namespace janus::frontend {

namespace {

Value concatenated(Interpreter& interpreter, const Rolled& list, int64_t dim) {
  const graph::Shape& each = list.form.type.shape;
  auto rank = static_cast<int64_t>(each.size());
  // Images may be laid out channels last, and then so is what eager makes of them.
  if (list.form.kind != ElementForm::Kind::tensor || rank == 0 || rank > 3) return nullptr;
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) return nullptr;
  graph::Dim size = dimension_of(interpreter, list);
  graph::Value* stacked = op::list_stack(interpreter.builder(), {in_order(interpreter, list)},
                                         {{"dim", dim}, {"size", size_attribute(size)}});
  graph::Shape shape = each;
  shape[static_cast<size_t>(dim)] = size * each[static_cast<size_t>(dim)];
  graph::Value* value = op::reshape(interpreter.builder(), {stacked}, {{"shape", shape}});
  return tensor_of_list(interpreter, list, value, op::cat);
}

Value stacked(Interpreter& interpreter, const Rolled& list, int64_t dim) {
  if (list.form.kind != ElementForm::Kind::tensor) return nullptr;
  int64_t rank = list.form.type.rank() + 1;
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) return nullptr;
  graph::Dim size = dimension_of(interpreter, list);
  graph::Value* value = op::list_stack(interpreter.builder(), {in_order(interpreter, list)},
                                       {{"dim", dim}, {"size", size_attribute(size)}});
  return tensor_of_list(interpreter, list, value, op::stack);
}

/// The argument `dim`; nothing unless it is a known int.
std::optional<int64_t> dim_argument(const CallArguments& arguments) {
  const Value* dim = arguments.keyword("dim");
  if (arguments.positional.size() > 2 || arguments.keywords.size() > (dim == nullptr ? 0 : 1))
    return std::nullopt;
  if (arguments.positional.size() == 2) dim = &arguments.positional[1];
  if (dim == nullptr) return 0;
  const auto* known = as<Known>(*dim);
  if (known == nullptr || !PyLong_CheckExact(known->object.get())) return std::nullopt;
  return PyLong_AsLongLong(known->object.get());
}

}  // namespace

Value call_list_operator(Interpreter& interpreter, PyObject* callable,
                         const CallArguments& arguments) {
  if (arguments.positional.empty()) return nullptr;
  LazyStacks& lazy_stacks = recursion_of(interpreter).lazy_stacks;
  if (Value reduced = lazy_stacks.call(interpreter, callable, arguments)) return reduced;
  bool stacks = callable == imported("torch.stack");
  bool concatenates = callable == imported("torch.cat") || callable == imported("torch.concat") ||
                      callable == imported("torch.concatenate");
  if (!stacks && !concatenates) return nullptr;
  const Value given = opened_if_varying(interpreter, arguments.positional[0]);
  const Rolled* list = rolled(given);
  if (list == nullptr) return nullptr;
  std::optional<int64_t> dim = dim_argument(arguments);
  if (!dim) return nullptr;
  const graph::Shape& shape = list->form.type.shape;
  const bool has_rows = stacks || (!shape.empty() && shape.front() == graph::Dim(1));
  const bool is_unnamed = has_rows && *dim == 0 && list->form.kind == ElementForm::Kind::tensor &&
                          interpreter.recursion().is_recursive(*interpreter.frame().code);
  if (is_unnamed && stacks)
    return lazy_stacks.stacked(interpreter, as<Sequence>(given)->elements.rolled());
  if (is_unnamed) return lazy_stacks.joined(interpreter, as<Sequence>(given)->elements.rolled());
  return stacks ? stacked(interpreter, *list, *dim) : concatenated(interpreter, *list, *dim);
}

}  // namespace janus::frontend
