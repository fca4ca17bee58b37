// The only list of operators: a name here and one block in one of the files of this folder.
// A name without a block is a link error; a block without a name is an unused variable.
#pragma once

#include <span>

#include "graph/op.h"

// clang-format off
#define TORCHJANUS_OPS(X)                                                          \
  /* structure.cpp */                                                              \
  X(constant) X(state) X(commit) X(rebind) X(guard) X(gradient) X(detach)          \
  X(opaque) X(opaque_backward) X(fused) X(if_) X(while_) X(call) X(size)

// clang-format on

namespace janus::op {
#define X(name) extern const graph::OpDef name;
TORCHJANUS_OPS(X)
#undef X
}  // namespace janus::op

namespace janus::ops {

/// Every operator.
std::span<const graph::OpDef* const> all();

/// The table of all operators, for parsing.
const graph::OpTable& table();

}  // namespace janus::ops
