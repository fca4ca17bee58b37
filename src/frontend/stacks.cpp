#include "frontend/stacks.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>

#include "frontend/callables.h"
#include "frontend/containers.h"
#include "frontend/operators.h"
#include "frontend/tensor.h"
#include "ops/list.h"

namespace janus::frontend {

namespace {

constexpr std::string_view kUnnamed = "unnamed_";

bool is_one_of(PyObject* callable, std::initializer_list<std::string_view> paths) {
  return std::ranges::any_of(paths,
                             [&](std::string_view path) { return callable == imported(path); });
}

/// sum(tensor, dim, keepdim) over the first dimension, and the like.
struct Reduction {
  /// `largest` and `least` share a gradient among equal elements, the others give it to the first.
  enum class Kind { sum, mean, largest, least, first_largest, first_least };
  Kind kind = Kind::sum;
  bool keeps = false;

  static std::optional<Kind> kind_of(PyObject* callable) {
    if (is_one_of(callable, {"torch.sum", "torch.Tensor.sum"})) return Kind::sum;
    if (is_one_of(callable, {"torch.mean", "torch.Tensor.mean"})) return Kind::mean;
    if (is_one_of(callable, {"torch.amax", "torch.Tensor.amax"})) return Kind::largest;
    if (is_one_of(callable, {"torch.amin", "torch.Tensor.amin"})) return Kind::least;
    if (is_one_of(callable, {"torch.max", "torch.Tensor.max"})) return Kind::first_largest;
    if (is_one_of(callable, {"torch.min", "torch.Tensor.min"})) return Kind::first_least;
    return std::nullopt;
  }

  /// Nothing for another call.
  static std::optional<Reduction> of(PyObject* callable, const CallArguments& arguments,
                                     int64_t rank) {
    const auto kind = kind_of(callable);
    if (!kind) return std::nullopt;
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
    return Reduction{*kind, keeps == Py_True};
  }
};

/// The elements of a list as a reduction over all of them sees them.
class Reducer {
 public:
  Reducer(Interpreter& interpreter, const Rolled& list)
      : interpreter_(interpreter), list_(list), type_(list.form.type) {}

  /// What amax() or amin() over all elements gives: equal ones share the gradient.
  Value extreme(bool is_least) {
    const Value best =
        from_first([&](const Value& first) -> Value { return by("detach", {first}); },
                   [&](const Value& so_far, const Value& element) -> Value {
                     return by(is_least ? "minimum" : "maximum", {so_far, by("detach", {element})});
                   });
    if (!list_.form.tracked || !interpreter_.grad_enabled) return best;
    const Value none = filled(0.0), one = filled(1.0);
    const auto share = [&](const Value& element) {
      const Value is_best = by("eq", {element, best});
      return std::pair<Value, Value>(by("where", {is_best, element, none}),
                                     by("where", {is_best, one, none}));
    };
    const Value total = from_first(
        [&](const Value& first) {
          const auto [part, count] = share(first);
          return make_tuple({part, count});
        },
        [&](const Value& so_far, const Value& element) {
          const auto [part, count] = share(element);
          return make_tuple(
              {by("add", {part_of(so_far, 0), part}), by("add", {part_of(so_far, 1), count})});
        });
    // Their mean, but for its rounding.
    const Value mean = by("div", {part_of(total, 0), part_of(total, 1)});
    const Value exact = by("add", {best, by("sub", {mean, by("detach", {mean})})});
    auto result = by("where", {by("isfinite", {best}), exact, mean});
    result->grad_fn_name = is_least ? "AminBackward0" : "AmaxBackward0";
    return result;
  }

  /// What max(dim) or min(dim) gives: the first one, where there are several, and its position.
  std::pair<Value, Value> first_extreme(bool is_least) {
    using graph::DType;
    const auto position = [&](const Value& number) {
      return full(interpreter_, sizes(), number, DType::i64);
    };
    const Value found = from_first(
        [&](const Value& first) {
          return make_tuple({first, position(interpreter_.integer(0)), interpreter_.integer(1)});
        },
        [&](const Value& so_far, const Value& element) {
          const Value& best = part_of(so_far, 0);
          const Value is_first_nan =
              by("logical_and", {by("isnan", {element}), by("logical_not", {by("isnan", {best})})});
          const Value is_better =
              by("logical_or", {by(is_least ? "lt" : "gt", {element, best}), is_first_nan});
          const Value& at = part_of(so_far, 2);
          return make_tuple(
              {by("where", {is_better, element, best}),
               by("where", {is_better, position(at), part_of(so_far, 1)}),
               binary(interpreter_, syntax::Operator::Add, at, interpreter_.integer(1))});
        });
    const auto best = shared_as<Tensor>(part_of(found, 0));
    if (best->requires_grad) best->grad_fn_name = is_least ? "MinBackward0" : "MaxBackward0";
    return {best, part_of(found, 1)};
  }

 private:
  std::shared_ptr<Tensor> by(std::string_view name, std::vector<Value> operands) {
    return tensor_by(interpreter_, name, std::move(operands));
  }
  std::vector<Value> sizes() {
    std::vector<Value> all;
    for (const graph::Dim& dim : type_.shape) all.push_back(interpreter_.dimension(dim));
    return all;
  }
  Value filled(double number) {
    return full(interpreter_, sizes(),
                interpreter_.constant(interpreter_.must(PyFloat_FromDouble(number))), type_.dtype);
  }
  static const Value& part_of(const Value& tuple, size_t index) {
    return as<Sequence>(tuple)->elements.known()[index];
  }
  Value from_first(const std::function<Value(const Value&)>& begin, const Step& step) {
    Value total = accumulated_from_first(interpreter_, list_, begin, step);
    if (total == nullptr)
      interpreter_.refuse(ReasonCode::would_raise, "RuntimeError: stack of no tensors");
    return total;
  }

  Interpreter& interpreter_;
  const Rolled& list_;
  const graph::Type type_;
};

/// Whether the node only says that the tensor stands for a list.
bool stands_for_list(const graph::Node& node) {
  return node.outputs.size() == 1 && node.output()->type.is_tensor() &&
         node.output()->type.rank() > 0 && Stacks::is_unnamed(node.output()->type.shape.front());
}

void collect_used(const graph::Block& block, std::set<const graph::Value*>& used) {
  used.insert(block.results.begin(), block.results.end());
  for (const graph::Node* node : block.nodes) {
    used.insert(node->inputs.begin(), node->inputs.end());
    for (const auto& inner : node->blocks) collect_used(*inner, used);
  }
}

/// Removes what only stands for lists and is not used; whether there was any.
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

bool Stacks::is_unnamed(const graph::Dim& dim) {
  if (dim.is_constant()) return false;
  return std::ranges::any_of(dim.symbols(),
                             [](const std::string& name) { return name.starts_with(kUnnamed); });
}

Value Stacks::standing_for(Interpreter& interpreter, Rows rows) {
  const graph::Dim size = graph::Dim::symbol(cat(kUnnamed, interpreter.new_place()));
  graph::Value* value = op::list_stack(interpreter.builder(), {rows.list->lists.front()},
                                       {{"dim", int64_t{0}}, {"size", size}});
  if (rows.has_one_row_each) {
    graph::Shape shape = value->type.shape;
    shape.erase(shape.begin() + 1);
    value = operator_named("reshape")(interpreter.builder(), {value}, {{"shape", shape}});
  }
  auto tensor =
      make_tensor(interpreter, value, rows.list->form.tracked && interpreter.grad_enabled);
  lists_.emplace(value, std::move(rows));
  return tensor;
}

Value Stacks::stacked(Interpreter& interpreter, std::shared_ptr<const Rolled> list) {
  return standing_for(interpreter, {.list = std::move(list)});
}

Value Stacks::joined(Interpreter& interpreter, std::shared_ptr<const Rolled> list) {
  return standing_for(interpreter, {.list = std::move(list), .has_one_row_each = true});
}

Value Stacks::call(Interpreter& interpreter, PyObject* callable,
                   const CallArguments& arguments) const {
  const auto* tensor = lists_.empty() || arguments.positional.empty()
                           ? nullptr
                           : as<Tensor>(arguments.positional[0]);
  const auto rows = tensor == nullptr ? lists_.end() : lists_.find(tensor->value);
  if (rows == lists_.end()) return nullptr;
  const Rolled& list = *rows->second.list;
  const auto reduction = Reduction::of(callable, arguments, tensor->value->type.rank());
  if (!reduction || tensor->requires_grad != list.form.tracked) return nullptr;
  const bool is_kept = reduction->keeps == rows->second.has_one_row_each;
  const auto shaped = [&](const Value& value) -> Value {
    if (is_kept) return value;
    return tensor_by(interpreter, reduction->keeps ? "unsqueeze" : "squeeze",
                     {value, interpreter.integer(0)});
  };
  using Kind = Reduction::Kind;
  const bool is_least = reduction->kind == Kind::least || reduction->kind == Kind::first_least;
  if (reduction->kind == Kind::sum) return shaped(total_of(interpreter, list));
  if (reduction->kind == Kind::mean)
    return shaped(binary(interpreter, syntax::Operator::Div, total_of(interpreter, list),
                         length_of(interpreter, list)));
  if (!graph::is_floating(list.form.type.dtype)) return nullptr;
  Reducer reducer(interpreter, list);
  if (reduction->kind == Kind::largest || reduction->kind == Kind::least)
    return shaped(reducer.extreme(is_least));
  const auto [values, positions] = reducer.first_extreme(is_least);
  Value both = make_tuple({shaped(values), shaped(positions)});
  as<Sequence>(both)->type = python::Object::borrow(
      imported(is_least ? "torch.return_types.min" : "torch.return_types.max"));
  return both;
}

void Stacks::finish(Interpreter& interpreter) const {
  if (lists_.empty()) return;
  // The last ones first: what only they used is used no more.
  while (remove_unused(interpreter.output().graph.body())) {
  }
  for_each_node(interpreter.output().graph.body(), [&](const graph::Node& node) {
    if (stands_for_list(node))
      interpreter.refuse(ReasonCode::dynamic_value,
                         "a tensor of a list whose length only an activation knows");
  });
}

}  // namespace janus::frontend
