// See pipeline.h. What each pass does stands at the top of its file.
#include "passes/pipeline/pipeline.h"

#include "ops/index_space.h"
#include "ops/list.h"
#include "ops/rows.h"
#include "passes/batching/batch.h"
#include "passes/cleanup/common_subexpressions.h"
#include "passes/cleanup/constant_folding.h"
#include "passes/cleanup/dead_code.h"
#include "passes/cleanup/leave_undefined.h"
#include "passes/cleanup/loop_invariant_code_motion.h"
#include "passes/cleanup/simplify.h"
#include "passes/cleanup/simplify_control.h"
#include "passes/fusion/can_fuse.h"
#include "passes/fusion/fuse.h"
#include "passes/fusion/small_norms.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"
#include "passes/lowering/late_relu.h"
#include "passes/lowering/map_indices.h"
#include "passes/lowering/map_reductions.h"
#include "passes/ordering/schedule.h"
#include "passes/products/hoist_rows.h"
#include "passes/products/stack_products.h"
#include "passes/products/stack_rounds.h"
#include "passes/products/sum_products.h"
#include "passes/products/weight_prepacking.h"
#include "passes/products/widen_products.h"
#include "passes/runner/runner.h"
#include "passes/structure/contains.h"

namespace janus::passes {

namespace {

/// But for what eager has an operator for that adds elements up.
CanFuse without_sums(CanFuse can_fuse) {
  return [can_fuse = std::move(can_fuse)](const graph::Node& node) {
    return !(ops::reduction_of(node) && !node.op->aten.empty()) && can_fuse(node);
  };
}

}  // namespace

graph::Graph optimise(graph::Graph graph, std::vector<PassTime>* times, const CanFuse& can_fuse,
                      Sums sums) {
  constexpr auto required = PassRunner::Need::required;
  const CanFuse& possible = can_fuse ? can_fuse : CanFuse(can_fuse_by_traits);
  const CanFuse fusible = sums == Sums::as_eager ? without_sums(possible) : possible;
  PassRunner run(times);

  // Gradient rules are written for primitive operators, and may use composite ones themselves.
  graph = run("decompose", decompose, std::move(graph), required);
  graph = run("late_relu", late_relu, std::move(graph));
  graph = run("map_indices", map_indices, std::move(graph));
  graph = run("hoist", move_loop_invariants, std::move(graph));
  graph = run("hoist_rows", hoist_rows, std::move(graph));
  graph = run("differentiate", differentiate, std::move(graph), required);
  graph = run("decompose_gradients", decompose, std::move(graph), required);
  graph = run("map_reductions", map_reductions, std::move(graph));

  // Less work: what undoes itself, what is known, what is computed twice, what nobody needs.
  graph = run("simplify", simplify, std::move(graph));
  graph = run("fold", fold_constants, std::move(graph));
  graph = run("simplify_control", simplify_control, std::move(graph));
  graph = run("merge_common", merge_common_subexpressions, std::move(graph));
  graph = run("leave_undefined", leave_undefined, std::move(graph));
  graph = run("remove_dead", remove_dead_code, std::move(graph));

  // Invocations of a recursion side by side; what many rows take is simplified once more.
  graph = run("batch", batch, std::move(graph));
  if (contains(graph, op::rows)) {
    graph = run("simplify", simplify, std::move(graph));
    graph = run("fold", fold_constants, std::move(graph));
    graph = run("merge_common", merge_common_subexpressions, std::move(graph));
    graph = run("remove_dead", remove_dead_code, std::move(graph));
  }

  // Fewer, larger matrix products.
  graph = run("stack_rounds", stack_rounds, std::move(graph));
  graph = run("sum_products", sum_products, std::move(graph));
  graph = run("stack_products", stack_products, std::move(graph));
  graph = run("widen_products", widen_products, std::move(graph));
  graph = run("turn_matrices", prepack_weights, std::move(graph));
  if (sums == Sums::in_any_order)
    graph = run(
        "small_norms", [&](const auto& g) { return small_norms(g, fusible); }, std::move(graph));
  graph = run("merge_common", merge_common_subexpressions, std::move(graph));
  graph = run("remove_dead", remove_dead_code, std::move(graph));

  // Less memory traffic: elementwise operators become loops, each tensor is freed early.
  graph = run("fuse", [&](const auto& g) { return fuse(g, fusible); }, std::move(graph));
  graph = run("wrap", [&](const auto& g) { return wrap(g, fusible); }, std::move(graph), required);
  graph = run("remove_dead", remove_dead_code, std::move(graph));
  return run("schedule", schedule, std::move(graph));
}

}  // namespace janus::passes
