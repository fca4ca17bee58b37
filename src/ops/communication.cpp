// What a graph exchanges with other processes: the collectives that DistributedDataParallel makes
// in a training step, as its reducer makes them, and those that the program calls.
//
// A process may run the step as a graph while others run it eagerly. So each node stands for
// exactly one collective of eager execution, with the same elements in the same order. Nodes of
// this file but `collective_wait` keep their order, and none is dropped, merged or run twice. A run
// that has begun one can't be given up any more.
//
// A collective is begun by one node and waited for by another one. What the first gives is memory
// that holds nothing of meaning before the second.
#include "ops/collectives.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

constexpr Trait exchange = Trait::no_gradient | Trait::communicates;

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

void check_wait(const Infer& infer) { tensor_type(infer, 0); }

int64_t size_of_group(const Infer& infer) {
  const auto size = infer.attributes.get<int64_t>("size");
  if (size < 1) infer.fail(cat("a group of ", size, " processes"));
  return size;
}

std::vector<Type> infer_same(const Infer& infer) {
  require_operands(infer);
  std::vector<Type> types;
  for (size_t i = 0; i < infer.inputs.size(); ++i) types.push_back(tensor_type(infer, i));
  return types;
}

/// `size` times as many elements, or a part of them.
std::vector<Type> infer_gathered(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  return {Type::tensor(type.dtype, {element_count(type.shape) * size_of_group(infer)})};
}

std::vector<Type> infer_scattered(const Infer& infer) {
  require_operands(infer);
  const Type& type = tensor_type(infer, 0);
  Dim elements = 0;
  for (size_t i = 0; i < infer.inputs.size(); ++i)
    elements = elements + element_count(tensor_type(infer, i).shape);
  const int64_t size = size_of_group(infer);
  if (!elements.is_constant() || elements.value() % size != 0)
    infer.fail(cat(elements, " elements for ", size, " processes"));
  return {Type::tensor(type.dtype, {elements.value() / size})};
}

}  // namespace

constinit const OpDef op::all_reduce_bucket{
    .name = "all_reduce_bucket",
    .doc =
        "One after the other, the elements of all operands divided by the number of processes. "
        "From here on they are added up with those of the other processes of the group; "
        "`collective_wait` gives the sums.",
    .schema = "(Tensor[] gradients, *, str group, int bucket) -> Tensor",
    .traits = exchange,
    .computed_by = ComputedBy::loops,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .infer = infer_start,
};

constinit const OpDef op::collective_wait{
    .name = "collective_wait",
    .doc =
        "What a collective has made of the memory that it was begun with: as many tensors, of the "
        "given types, one after the other.",
    .schema = "(Tensor started) -> Tensor[]",
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
    .infer = infer_same,
};

constinit const OpDef op::all_reduce{
    .name = "all_reduce",
    .doc =
        "From here on the tensor is combined with those of the other processes, element by "
        "element, by the operation that `reduce` names.",
    .schema = "(Tensor x, *, str group, str reduce) -> Tensor",
    .traits = exchange,
    .computed_by = ComputedBy::loops,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .infer = infer_same,
};

constinit const OpDef op::broadcast{
    .name = "broadcast",
    .doc = "From here on the processes get the tensor of the one that has the rank `root`.",
    .schema = "(Tensor x, *, str group, int root) -> Tensor",
    .traits = exchange,
    .computed_by = ComputedBy::loops,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .infer = infer_same,
};

constinit const OpDef op::all_gather{
    .name = "all_gather",
    .doc =
        "From here on the tensors of all processes are put one after the other. `listed`: each is "
        "a tensor of its own for the process group.",
    .schema = "(Tensor x, *, str group, int size, bool listed) -> Tensor",
    .traits = exchange,
    .computed_by = ComputedBy::loops,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .infer = infer_gathered,
};

constinit const OpDef op::reduce_scatter{
    .name = "reduce_scatter",
    .doc =
        "From here on the operands, one after the other, are combined with those of the other "
        "processes by the operation that `reduce` names, and each process gets the part of its "
        "rank. `listed`: each part is a tensor of its own for the process group.",
    .schema = "(Tensor[] parts, *, str group, int size, str reduce, bool listed) -> Tensor",
    .traits = exchange,
    .computed_by = ComputedBy::loops,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .infer = infer_scattered,
};

}  // namespace janus
