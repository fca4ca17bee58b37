// See may_raise.h. Which contents an operator raises for is a fact of its block (OpDef::raises).
#include "passes/analysis/may_raise.h"

#include <algorithm>

#include "graph/constant.h"
#include "graph/op.h"
#include "ops/list.h"
#include "passes/structure/counted_loop.h"

namespace janus::passes {

using graph::Node;
using graph::Raises;
using graph::Value;

namespace {

/// Whether the part that it takes out lies at a place that differs from run to run.
bool is_at_number(const Node& node) {
  for (const char* name : {"index", "start"})
    if (const auto* place = node.attributes.find(name)) {
      const auto* dim = std::get_if<graph::Dim>(place);
      return dim != nullptr && !dim->is_constant();
    }
  return false;
}

/// Frames are in lists of our own, whose lengths fit.
bool gives_frame(const Node& node) {
  return std::ranges::any_of(node.outputs, [](const Value* output) {
    return output->type.kind == graph::Type::Kind::frame;
  });
}

bool may_be_zero(const Value* value) {
  const auto number = graph::constant_number(value);
  return !number || *number == 0;
}

}  // namespace

bool may_raise(const Node& node) {
  switch (graph::raises_of(*node.op)) {
    case Raises::unstated:
    case Raises::never:
    case Raises::never_for_floats:
    case Raises::not_for_contents:
    case Raises::own_indices:
    case Raises::outside_part:
      return false;
    case Raises::outside_range:
      return node.op != &op::row || !is_of_iteration(node);
    case Raises::outside_place:
      return is_at_number(node);
    case Raises::integer_zero:
      return graph::is_integral(node.output()->type.dtype) && may_be_zero(node.inputs[1]);
    case Raises::zero:
      return may_be_zero(node.inputs[1]);
    case Raises::outside_domain:
      return true;
    case Raises::outside_domain_real:
      return node.output()->type.kind == graph::Type::Kind::f64;
    case Raises::missing_element:
      return !gives_frame(node);
  }
  return false;
}

}  // namespace janus::passes
