// See masks.h.
#include "frontend/tensors/masks.h"

#include <algorithm>

#include "frontend/core/known_callables.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/special_callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "ops/list.h"
#include "speculate/test_number.h"

namespace janus::frontend {

namespace {

using Arguments = CallArguments;

/// Whether both are computed in the same way from the same values, as far as a few steps tell:
/// masks that the program writes down twice.
bool are_same_computation(const graph::Value* a, const graph::Value* b, int steps = 4) {
  if (a == b) return true;
  const graph::Node *first = a->definition, *second = b->definition;
  if (steps == 0 || first == nullptr || second == nullptr || first->op != second->op ||
      !first->op->is(graph::Trait::pure) || !first->blocks.empty() || a->index != b->index ||
      first->attributes != second->attributes)
    return false;
  return std::ranges::equal(first->inputs, second->inputs, [&](const auto* x, const auto* y) {
    return are_same_computation(x, y, steps - 1);
  });
}

/// What the run counts, as a size. 0 and 1 are no ordinary sizes: a run that counts so few is
/// followed by graphs for these very sizes.
graph::Dim followed_size(Interpreter& interpreter, graph::Value* count) {
  const auto is_at_least = [&](int64_t least, int kind) {
    graph::Builder& builder = interpreter.builder();
    return interpreter.follow(op::scalar_ge(builder, {count, builder.constant(least)}), {}, kind);
  };
  if (!is_at_least(2, speculate::kUncounted))
    return graph::Dim(is_at_least(1, speculate::kIsAny) ? 1 : 0);
  const std::optional<graph::Dim> size = interpreter.run_time_dimension(count);
  if (!size)
    interpreter.refuse(
        ReasonCode::unsupported_tensor,
        "how many elements a mask chooses is decided in a branch, loop or recursion");
  return *size;
}

/// How many elements of the mask are true.
graph::Dim chosen_by(Interpreter& interpreter, const std::shared_ptr<Tensor>& mask) {
  graph::Value* of = read(interpreter, *mask);
  const auto is_same = [&](const graph::Value* other) { return are_same_computation(of, other); };
  if (const auto known = interpreter.run_time_size(is_same)) return *known;
  const auto sum = tensor_by(interpreter, "sum", {mask});
  graph::Value* count = op::item(interpreter.builder(), {read(interpreter, *sum)});
  const graph::Dim size = followed_size(interpreter, count);
  interpreter.note_run_time_size(of, size);
  return size;
}

// --- as torch's callables -----------------------------------------------------------------------

std::shared_ptr<Tensor> first_tensor(const Arguments& arguments, const char* name) {
  if (!arguments.positional.empty()) return shared_as<Tensor>(arguments.positional[0]);
  const Value* keyword = arguments.keyword(name);
  return keyword == nullptr ? nullptr : shared_as<Tensor>(*keyword);
}

/// The positions as eager's nonzero lays them out: dimension by dimension.
std::shared_ptr<Tensor> by_dimension(Interpreter& interpreter,
                                     const std::shared_ptr<Tensor>& positions) {
  graph::Builder& builder = interpreter.builder();
  const graph::Shape& shape = positions->value->type.shape;
  graph::Value* columns =
      shape[1].is(1)
          ? op::reshape(builder, {positions->value}, {{"shape", graph::Shape{1, shape[0]}}})
          : op::contiguous(builder, {op::t(builder, {positions->value})});
  auto result = make_tensor(interpreter, op::t(builder, {columns}), /*requires_grad=*/false);
  result->strides = graph::Shape{1, columns->type.shape[1]};
  return result;
}

/// One tensor of positions for each dimension.
Value as_tuple(Interpreter& interpreter, const std::shared_ptr<Tensor>& positions) {
  Arguments arguments;
  arguments.positional = {by_dimension(interpreter, positions), interpreter.integer(1)};
  return call_named(interpreter, "unbind", arguments);
}

/// nonzero(input, *, as_tuple=False)
Value call_nonzero(Interpreter& interpreter, const Arguments& arguments) {
  const auto tensor = first_tensor(arguments, "input");
  const Value* wanted = arguments.keyword("as_tuple");
  const PyObject* flag = wanted == nullptr ? Py_False : known_object(*wanted);
  const size_t given = arguments.positional.size() + arguments.keywords.size();
  if (tensor == nullptr || given != (wanted == nullptr ? 1U : 2U)) return nullptr;
  if (flag != Py_False && flag != Py_True) return nullptr;
  const auto positions = nonzero(interpreter, tensor);
  return flag == Py_True ? as_tuple(interpreter, positions) : by_dimension(interpreter, positions);
}

/// where(condition)
Value call_where(Interpreter& interpreter, const Arguments& arguments) {
  const auto condition = first_tensor(arguments, "condition");
  if (condition == nullptr || arguments.positional.size() + arguments.keywords.size() != 1)
    return nullptr;
  return as_tuple(interpreter, nonzero(interpreter, condition));
}

/// masked_select(input, mask)
Value call_masked_select(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2 || !arguments.keywords.empty()) return nullptr;
  auto tensor = shared_as<Tensor>(arguments.positional[0]);
  auto mask = shared_as<Tensor>(arguments.positional[1]);
  if (tensor == nullptr || mask == nullptr || mask->value->type.dtype != graph::DType::b1)
    return nullptr;
  if (tensor->value->type.shape != mask->value->type.shape) {
    static const Handler broadcast = handler_named("torch.broadcast_tensors");
    const Value both = broadcast(interpreter, arguments);
    const auto* sequence = as<Sequence>(both);
    if (sequence == nullptr) return nullptr;
    tensor = shared_as<Tensor>(sequence->elements[0]);
    mask = shared_as<Tensor>(sequence->elements[1]);
  }
  Value chosen = index_tensor(interpreter, tensor, mask);
  as<Tensor>(chosen)->producer = Producer::named("masked_select");
  return chosen;
}

/// All elements of the vector but the first (`start` 1) or the last (0).
Value all_but_one(Interpreter& interpreter, const std::shared_ptr<Tensor>& vector, int64_t start) {
  const graph::Dim rest = read(interpreter, *vector)->type.shape[0] - 1;
  return tensor_by(
      interpreter, "narrow",
      {vector, interpreter.integer(0), interpreter.integer(start), interpreter.dimension(rest)});
}

/// Neighbours, by one of torch's operators on two tensors.
Value with_the_one_before(Interpreter& interpreter, const char* name,
                          const std::shared_ptr<Tensor>& vector) {
  return tensor_by(interpreter, name,
                   {all_but_one(interpreter, vector, 1), all_but_one(interpreter, vector, 0)});
}

/// What torch._unique2 gives: the elements, of which kind each element is, and how many a kind has.
struct Unique {
  Value elements, inverse, counts;
};

/// Of the sorted elements those that differ from the one before.
Unique unique(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
              const graph::Dim& size) {
  Arguments flat;
  flat.positional = {tensor_by(interpreter, "flatten", {tensor})};
  const Value pair = call_named(interpreter, "sort", flat);
  const auto sorted = shared_as<Tensor>(as<Sequence>(pair)->elements[0]);
  const Value order = as<Sequence>(pair)->elements[1];
  const Value zero = interpreter.integer(0), one = interpreter.integer(1);
  const auto starts = tensor_by(interpreter, "cat",
                                {make_tuple({full(interpreter, {one}, one, graph::DType::b1),
                                             with_the_one_before(interpreter, "ne", sorted)})});
  const Value kind =
      tensor_by(interpreter, "sub", {tensor_by(interpreter, "cumsum", {starts, zero}), one});
  const auto places = tensor_by(interpreter, "flatten", {nonzero(interpreter, starts)});
  const auto bounds =
      tensor_by(interpreter, "cat",
                {make_tuple({places, tensor_by(interpreter, "mul",
                                               {full(interpreter, {one}, one, graph::DType::i64),
                                                interpreter.dimension(size)})})});
  return {index_tensor(interpreter, sorted, starts),
          tensor_by(interpreter, "Tensor.view_as",
                    {tensor_by(interpreter, "scatter", {order, zero, order, kind}), tensor}),
          with_the_one_before(interpreter, "sub", bounds)};
}

/// _unique2(input, sorted, return_inverse, return_counts), which torch.unique calls.
Value call_unique(Interpreter& interpreter, const Arguments& arguments) {
  const auto tensor = first_tensor(arguments, "input");
  if (tensor == nullptr || arguments.positional.size() > 1 || tensor->requires_grad) return nullptr;
  const bool is_refused = std::ranges::any_of(arguments.keywords, [](const auto& keyword) {
    PyObject* const flag = known_object(keyword.second);
    return keyword.first != "input" && (flag == nullptr || PyBool_Check(flag) == 0);
  });
  const graph::Dim size = graph::element_count(tensor->value->type.shape);
  if (is_refused || size.lower_bound().value_or(0) < 2) return nullptr;
  const auto is_wanted = [&](const char* name) {
    const Value* flag = arguments.keyword(name);
    return flag != nullptr && known_object(*flag) == Py_True;
  };
  const Unique found = unique(interpreter, tensor, size);
  const Value zero = interpreter.integer(0);
  const Value nothing = full(interpreter, {zero}, zero, graph::DType::i64);
  return make_tuple({found.elements, is_wanted("return_inverse") ? found.inverse : nothing,
                     is_wanted("return_counts") ? found.counts : nothing});
}

/// bincount(input, minlength=n): as long as all elements are numbers of bins, which the run tests.
Value call_bincount(Interpreter& interpreter, const Arguments& arguments) {
  const auto input = first_tensor(arguments, "input");
  const Value* bins = arguments.keyword("minlength");
  if (input == nullptr || bins == nullptr || !is_number(*bins) ||
      arguments.positional.size() + arguments.keywords.size() != 2)
    return nullptr;
  const graph::Type& type = input->value->type;
  if (type.rank() != 1 || type.dtype != graph::DType::i64 ||
      type.shape[0].lower_bound().value_or(0) < 1)
    return nullptr;
  graph::Builder& builder = interpreter.builder();
  const auto assume_at_least = [&](graph::Value* number, graph::Value* least) {
    interpreter.follow(op::scalar_ge(builder, {number, least}), python::boolean(true),
                       speculate::kUncounted);
  };
  const auto extreme = [&](const char* name) {
    return op::item(builder, {read(interpreter, *tensor_by(interpreter, name, {input}))});
  };
  assume_at_least(extreme("amin"), builder.constant(int64_t{0}));
  graph::Value* last =
      op::scalar_sub(builder, {interpreter.graph_value(*bins), builder.constant(int64_t{1})});
  assume_at_least(last, extreme("amax"));
  const Value zero = interpreter.integer(0);
  return tensor_by(interpreter, "scatter_add",
                   {full(interpreter, {*bins}, zero, graph::DType::i64), zero, input,
                    tensor_by(interpreter, "ones_like", {input})});
}

}  // namespace

std::shared_ptr<Tensor> nonzero(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor) {
  const graph::Type& type = tensor->value->type;
  if (type.rank() == 0)
    interpreter.refuse(ReasonCode::unsupported_tensor, "nonzero of a tensor without dimensions");
  const bool is_mask = type.dtype == graph::DType::b1;
  const auto mask =
      is_mask ? tensor : tensor_by(interpreter, "ne", {tensor, interpreter.integer(0)});
  const graph::Dim size = chosen_by(interpreter, mask);
  graph::Value* positions = op::nonzero_static(interpreter.builder(), {read(interpreter, *mask)},
                                               {{"size", graph::AttributeValue(size)}});
  return make_tensor(interpreter, positions, /*requires_grad=*/false);
}

std::span<const SpecialCallable> mask_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.nonzero", call_nonzero},
      {"torch.Tensor.nonzero", call_nonzero},
      {"torch.argwhere", call_nonzero},
      {"torch.Tensor.argwhere", call_nonzero},
      {"torch.where", call_where},
      {"torch.masked_select", call_masked_select},
      {"torch._unique2", call_unique},
      {"torch.bincount", call_bincount},
      {"torch.Tensor.masked_select", call_masked_select},
  };
  return table;
}

}  // namespace janus::frontend
