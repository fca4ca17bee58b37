#include "ops/list.h"

#include "ops/collectives.h"
#include "ops/rows.h"

namespace janus::ops {

std::span<const graph::OpDef* const> all() {
#define X(name) &op::name,
  static constexpr const graph::OpDef* ops[] = {TORCHJANUS_OPS(X) TORCHJANUS_COLLECTIVES(X)
                                                    X(rows)};
#undef X
  return ops;
}

const graph::OpTable& table() {
  static const graph::OpTable instance(all());
  return instance;
}

}  // namespace janus::ops
