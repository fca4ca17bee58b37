// What a graph exchanges with other processes: the collectives that DistributedDataParallel makes
// in a training step, as its reducer makes them.
//
// A process may run the step as a graph while others run it eagerly. So each node stands for
// exactly one collective of the reducer's, with the same elements in the same order. Nodes of this
// file keep their order, and are neither dropped, merged nor run twice. A run that has begun one
// can't be given up any more.
#include "ops/collectives.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

constexpr Trait exchange = Trait::no_gradient;

void require_operands(const Infer& infer) {
  if (infer.inputs.empty()) infer.fail("there is no tensor");
}

std::vector<Type> infer_start(const Infer& infer) {
  require_operands(infer);
  const DType dtype = floating_tensor(infer, 0).dtype;
  Dim elements = 0;
  for (size_t i = 0; i < infer.inputs.size(); ++i) {
    const Type& type = tensor_type(infer, i);
    if (type.dtype != dtype) infer.fail(cat("dtypes differ: ", infer.type(0), ", ", type));
    elements = elements + element_count(type.shape);
  }
  return {Type::tensor(dtype, {elements})};
}

void check_wait(const Infer& infer) { floating_tensor(infer, 0); }

std::vector<Type> infer_broadcast(const Infer& infer) {
  require_operands(infer);
  std::vector<Type> types;
  for (size_t i = 0; i < infer.inputs.size(); ++i) types.push_back(tensor_type(infer, i));
  return types;
}

}  // namespace

bool ops::communicates(const Node& node) {
  return node.op == &op::all_reduce_start || node.op == &op::all_reduce_wait ||
         node.op == &op::broadcast_buffers;
}

constinit const OpDef op::all_reduce_start{
    .name = "all_reduce_start",
    .doc =
        "One after the other, the elements of all operands divided by the number of processes. "
        "From here on they are added up with those of the other processes of the group; "
        "`all_reduce_wait` gives the sums.",
    .schema = "(Tensor[] gradients, *, str group, int bucket) -> Tensor",
    .traits = exchange,
    .computed_by = ComputedBy::loops,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .infer = infer_start,
};

constinit const OpDef op::all_reduce_wait{
    .name = "all_reduce_wait",
    .doc =
        "The sums of all processes, of what `all_reduce_start` gave: as many tensors, of the given "
        "types, one after the other.",
    .schema = "(Tensor started, *, int bucket) -> Tensor[]",
    .traits = exchange,
    .computed_by = ComputedBy::loops,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .check = check_wait,
};

constinit const OpDef op::broadcast_buffers{
    .name = "broadcast_buffers",
    .doc = "The tensors as the first process of the group has them, sent in parts of `bytes`.",
    .schema = "(Tensor[] buffers, *, str group, int bytes) -> Tensor[]",
    .traits = exchange,
    .computed_by = ComputedBy::loops,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .infer = infer_broadcast,
};

}  // namespace janus
