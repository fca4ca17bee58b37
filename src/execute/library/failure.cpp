// See failure.h.
#include "execute/library/failure.h"

#include "base/check.h"
#include "execute/values/numbers.h"
#include "graph/op.h"

namespace janus::execute {

Failure guard_failure(const graph::Node& guard) {
  Failure failure;
  failure.kind = Failure::Kind::guard;
  failure.guard = guard.attributes.get_or<int64_t>("id", -1);
  failure.span = guard.span;
  return failure;
}

Failure failure_of(Failure::Kind kind, const graph::Node& node, std::string_view what) {
  Failure failure;
  failure.kind = kind;
  failure.message = cat(node.op->name, ": ", what);
  failure.span = node.span;
  return failure;
}

Failure overflow(const graph::Node& node) {
  return failure_of(Failure::Kind::overflow, node, "there is no result, or none that fits");
}

Failure failure_of_number(const graph::Node& node, const Operands& operands) {
  if (divides_by_zero(node, operands))
    return failure_of(Failure::Kind::operation, node, "division by zero");
  return overflow(node);
}

Failure too_deep(const graph::Node& call) {
  return failure_of(Failure::Kind::depth, call, "the calls nest too deeply");
}

}  // namespace janus::execute
