// See equal_sizes.h.
#include "frontend/tensors/equal_sizes.h"

#include <algorithm>
#include <string>

#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "speculate/test_number.h"

namespace janus::frontend {

using graph::Dim;
using Operands = std::vector<graph::Value*>;

namespace {

bool fits(const graph::OpDef& op, const Operands& operands, const graph::Attributes& attributes) {
  try {
    graph::infer_results(op, operands, attributes);
    return true;
  } catch (const graph::TypeError&) {
    return false;
  }
}

/// The sizes of tensors among the operands, each once.
std::vector<Dim> sizes_of(const Operands& operands) {
  std::vector<Dim> sizes;
  for (const graph::Value* operand : operands) {
    if (!operand->type.is_tensor()) continue;
    for (const Dim& size : operand->type.shape)
      if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
  }
  return sizes;
}

graph::Type with_size(graph::Type type, const Dim& size, const Dim& other) {
  if (type.is_tensor()) std::ranges::replace(type.shape, size, other);
  return type;
}

/// Whether the operator takes the operands once the size is called by the other's name. Nothing is
/// added to the graph.
bool would_fit(const graph::OpDef& op, const Operands& operands,
               const graph::Attributes& attributes, const Dim& size, const Dim& other) {
  std::vector<graph::Value> named;
  named.reserve(operands.size());
  Operands pointers;
  for (const graph::Value* operand : operands) {
    graph::Value& copy = named.emplace_back(*operand);
    copy.type = with_size(copy.type, size, other);
    pointers.push_back(&copy);
  }
  return fits(op, pointers, attributes);
}

/// The whole operand, with another name for a size.
graph::Value* renamed(GraphWriter& writer, graph::Value* operand, const Dim& size,
                      const Dim& other) {
  const size_t rank = operand->type.is_tensor() ? operand->type.shape.size() : 0;
  for (size_t i = 0; i < rank; ++i)
    if (operand->type.shape[i] == size)
      operand = op::narrow(writer.builder(), {operand},
                           {{"dim", static_cast<int64_t>(i)},
                            {"start", graph::AttributeValue(Dim(0))},
                            {"length", graph::AttributeValue(other)}});
  return operand;
}

/// Whether the run finds the sizes equal, as a guard in the graph says.
bool are_equal_in_run(Interpreter& interpreter, const Dim& size, const Dim& other) {
  graph::Value* const is_equal =
      op::scalar_eq(interpreter.builder(),
                    {interpreter.dimension_value(size), interpreter.dimension_value(other)});
  return interpreter.follow(is_equal, {}, speculate::kIsEqual);
}

/// Whether only the run knows the size.
bool is_of_run(const Interpreter& interpreter, const Dim& size) {
  const std::string symbol = graph::symbol_shown_by(size);
  return !symbol.empty() && interpreter.block_of(symbol) != nullptr;
}

/// Whether the size is computed from others, as that of `x[:n]`.
bool is_computed(const Dim& size) {
  return !size.is_constant() && graph::symbol_shown_by(size).empty();
}

/// Whether the entry finds the sizes equal, as they are in this call.
bool are_equal_at_entry(Interpreter& interpreter, const Dim& size, const Dim& other) {
  const auto one = interpreter.evaluate(size), two = interpreter.evaluate(other);
  if (!one || one != two) return false;
  interpreter.assume_equal(size, other);
  return true;
}

}  // namespace

void assume_equal_sizes(Interpreter& interpreter, const graph::OpDef& op, Operands& operands,
                        const graph::Attributes& attributes) {
  if (op.is(graph::Trait::view)) return;
  const std::vector<Dim> sizes = sizes_of(operands);
  const auto may_equal_another = [&](const Dim& size) {
    return is_computed(size) || is_of_run(interpreter, size);
  };
  if (std::ranges::none_of(sizes, may_equal_another) || fits(op, operands, attributes)) return;
  for (const Dim& size : sizes) {
    if (!may_equal_another(size)) continue;
    for (const Dim& other : sizes) {
      if (other == size || other.is(1)) continue;
      if (!would_fit(op, operands, attributes, size, other)) continue;
      if (!(is_of_run(interpreter, size) ? are_equal_in_run(interpreter, size, other)
                                         : are_equal_at_entry(interpreter, size, other)))
        continue;
      for (graph::Value*& operand : operands) operand = renamed(interpreter, operand, size, other);
      return;
    }
  }
}

}  // namespace janus::frontend
