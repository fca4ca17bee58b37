// See registry.h.
#include "passes/pipeline/registry.h"

#include <algorithm>
#include <array>

#include "passes/passes.h"
#include "passes/pipeline/pipeline.h"
#include "passes/products/stack_rounds.h"
#include "passes/structure/copied.h"

namespace janus::passes {

std::span<const NamedPass> all_passes() {
  static constexpr std::array passes = {
      NamedPass{"decompose", decompose},
      NamedPass{"pool_first", pool_first},
      NamedPass{"map_indices", map_indices},
      NamedPass{"hoist", hoist},
      NamedPass{"hoist_rows", hoist_rows},
      NamedPass{"differentiate", differentiate},
      NamedPass{"map_reductions", map_reductions},
      NamedPass{"fold", fold},
      NamedPass{"simplify", simplify},
      NamedPass{"simplify_control", simplify_control},
      NamedPass{"leave_undefined", leave_undefined},
      NamedPass{"merge_common", merge_common},
      NamedPass{"remove_dead", remove_dead},
      NamedPass{"batch", batch},
      NamedPass{"stack_rounds", stack_rounds},
      NamedPass{"sum_products", sum_products},
      NamedPass{"stack_products", stack_products},
      NamedPass{"widen_products", widen_products},
      NamedPass{"turn_matrices", turn_matrices},
      NamedPass{"small_norms",
                [](const graph::Graph& graph) { return small_norms(graph, can_fuse_by_traits); }},
      NamedPass{"fuse", [](const graph::Graph& graph) { return fuse(graph, can_fuse_by_traits); }},
      NamedPass{"wrap", [](const graph::Graph& graph) { return wrap(graph, can_fuse_by_traits); }},
      NamedPass{"schedule", schedule},
      NamedPass{"optimise", [](const graph::Graph& graph) { return optimise(copied(graph)); }},
  };
  return passes;
}

const NamedPass* find_pass(std::string_view name) {
  const auto passes = all_passes();
  const auto found = std::ranges::find(passes, name, &NamedPass::name);
  return found == passes.end() ? nullptr : &*found;
}

}  // namespace janus::passes
