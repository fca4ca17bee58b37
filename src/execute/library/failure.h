// Why a run was given up, and the failures that the executor itself finds: a guard that does not
// hold, a number that does not fit, calls that nest too deeply.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "execute/values/operands.h"
#include "graph/graph.h"

namespace janus::execute {

/// Why a run was given up. Not an error, unless it is `broken`: the caller runs the same call
/// imperatively.
struct Failure {
  enum class Kind {
    guard,        ///< a `guard` node did not hold; `guard` is its "id" attribute
    overflow,     ///< an i64 operation or a dimension did not fit
    operation,    ///< an operator threw (wrong shape, out of memory, ...)
    depth,        ///< calls nested more deeply than the caller allows
    interrupted,  ///< the user pressed Ctrl-C
    broken  ///< memory ran out where nothing else can fail: cells may be written, some not in full
  };
  Kind kind = Kind::guard;
  int64_t guard = -1;
  std::string message;
  graph::SourceSpan span;
};

Failure failure_of(Failure::Kind kind, const graph::Node& node, std::string_view what);
Failure guard_failure(const graph::Node& guard);
/// A number or a dimension that does not fit 64 bits, or has no value.
Failure overflow(const graph::Node& node);
/// Why run_number() gave nothing.
Failure failure_of_number(const graph::Node& node, const Operands& operands);
/// Calls nest more deeply than the run may.
Failure too_deep(const graph::Node& call);

}  // namespace janus::execute
