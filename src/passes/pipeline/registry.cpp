// See registry.h.
#include "passes/pipeline/registry.h"

#include <algorithm>
#include <array>

#include "passes/batching/batch.h"
#include "passes/cleanup/common_subexpressions.h"
#include "passes/cleanup/constant_folding.h"
#include "passes/cleanup/dead_code.h"
#include "passes/cleanup/leave_undefined.h"
#include "passes/cleanup/loop_invariant_code_motion.h"
#include "passes/cleanup/simplify.h"
#include "passes/cleanup/simplify_control.h"
#include "passes/fusion/fuse.h"
#include "passes/fusion/small_norms.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"
#include "passes/lowering/late_relu.h"
#include "passes/lowering/map_indices.h"
#include "passes/lowering/map_reductions.h"
#include "passes/ordering/schedule.h"
#include "passes/pipeline/pipeline.h"
#include "passes/products/hoist_rows.h"
#include "passes/products/stack_products.h"
#include "passes/products/stack_rounds.h"
#include "passes/products/sum_products.h"
#include "passes/products/weight_prepacking.h"
#include "passes/products/widen_products.h"
#include "passes/structure/copied.h"

namespace janus::passes {

namespace {

/// A pass that leaves the graph that it is given as it is.
template <graph::Graph (*pass)(const graph::Graph&)>
graph::Graph kept(graph::Graph graph) {
  return pass(graph);
}

}  // namespace

std::span<const NamedPass> all_passes() {
  static constexpr std::array passes = {
      NamedPass{"decompose", kept<decompose>},
      NamedPass{"late_relu", kept<late_relu>},
      NamedPass{"map_indices", kept<map_indices>},
      NamedPass{"hoist", move_loop_invariants},
      NamedPass{"hoist_rows", hoist_rows},
      NamedPass{"differentiate", kept<differentiate>},
      NamedPass{"map_reductions", kept<map_reductions>},
      NamedPass{"fold", kept<fold_constants>},
      NamedPass{"simplify", kept<simplify>},
      NamedPass{"simplify_control", simplify_control},
      NamedPass{"leave_undefined", kept<leave_undefined>},
      NamedPass{"merge_common", kept<merge_common_subexpressions>},
      NamedPass{"remove_dead", remove_dead_code},
      NamedPass{"batch", batch},
      NamedPass{"stack_rounds", stack_rounds},
      NamedPass{"sum_products", kept<sum_products>},
      NamedPass{"stack_products", stack_products},
      NamedPass{"widen_products", widen_products},
      NamedPass{"turn_matrices", kept<prepack_weights>},
      NamedPass{"small_norms",
                [](graph::Graph graph) { return small_norms(graph, can_fuse_by_traits); }},
      NamedPass{"fuse", [](graph::Graph graph) { return fuse(graph, can_fuse_by_traits); }},
      NamedPass{"wrap", [](graph::Graph graph) { return wrap(graph, can_fuse_by_traits); }},
      NamedPass{"schedule", schedule},
      NamedPass{"optimise", [](graph::Graph graph) { return optimise(std::move(graph)); }},
  };
  return passes;
}

const NamedPass* find_pass(std::string_view name) {
  const auto passes = all_passes();
  const auto found = std::ranges::find(passes, name, &NamedPass::name);
  return found == passes.end() ? nullptr : &*found;
}

}  // namespace janus::passes
