// The meta-operators: `reindex` gathers elements by an affine index map, `reindex_reduce` scatters
// them by it. For sums, each is the gradient of the other.
#include "ops/reindex.h"

#include <algorithm>
#include <limits>

#include "ops/expression.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

void require_map(const Infer& infer, size_t space_rank, size_t mapped_rank) {
  const IndexMap map = index_map(infer.attributes, space_rank);
  if (map.mapped_rank() != mapped_rank || map.factors.size() != mapped_rank * space_rank)
    infer.fail(cat(map.offset.size(), " indices with ", map.factors.size(), " factors"));
}

std::vector<Type> infer_reindex(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  if (is_complex(type.dtype)) infer.fail(cat("of ", type));
  const Shape size = list_attribute(infer.attributes, "size");
  if (!constant_number(infer.inputs[1])) infer.fail("the number outside must be known");
  require_map(infer, size.size(), type.shape.size());
  return {Type::tensor(type.dtype, size)};
}

std::vector<Type> infer_reindex_divided(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  const Shape size = list_attribute(infer.attributes, "size");
  const auto divisors = numbers_of(infer.attributes, "divisor"),
             offsets = numbers_of(infer.attributes, "offset");
  const size_t rank = type.shape.size();
  if (size.size() != rank || divisors.size() != rank || offsets.size() != rank)
    infer.fail(cat("of ", type, " to ", size.size(), " dimensions"));
  if (std::ranges::any_of(divisors, [](int64_t divisor) { return divisor < 1; }))
    infer.fail("a divisor below 1");
  return {Type::tensor(type.dtype, size)};
}

std::vector<Type> infer_reindex_reduce(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  const Shape size = list_attribute(infer.attributes, "size");
  require_map(infer, type.shape.size(), size.size());
  const std::string reduce = text_attribute(infer.attributes, "reduce");
  if (is_complex(type.dtype)) infer.fail(cat("of ", type));
  if (reduce == "any" || reduce == "all") return {Type::tensor(DType::b1, size)};
  if (reduce == "argmax" || reduce == "argmin") return {Type::tensor(DType::i64, size)};
  if (reduce != "sum" && reduce != "amax" && reduce != "amin") infer.fail(cat("by ", reduce));
  return {Type::tensor(type.dtype, size)};
}

Attributes with_size(const Node& node, const Shape& size) {
  return {{"size", size},
          {"matrix", *node.attributes.find("matrix")},
          {"offset", *node.attributes.find("offset")}};
}

/// The gradient of reindex_reduce. Elements that equal an extremum share its gradient, as in row
/// reductions; tests and positions have none.
void reindex_reduce_gradient(Vjp& g) {
  if (!is_floating(out(g).dtype())) return;
  const auto x = in(g, 0);
  const Attributes back = with_size(g.node(), x.shape());
  if (text_attribute(g.node().attributes, "reduce") == "sum")
    return g.add(0, apply(op::reindex, back, dout(g), 0.0));
  const double nowhere = std::numeric_limits<double>::quiet_NaN();
  const auto chosen = apply(op::eq, x, apply(op::reindex, back, out(g), nowhere));
  const auto count =
      apply(op::reindex_reduce, with_size(g.node(), out(g).shape()), cast(chosen, x.dtype()));
  const auto share = apply(op::reindex, back, dout(g) / count, 0.0);
  g.add(0, apply(op::where, chosen, share, 0.0));
}

}  // namespace

bool IndexMap::is_same(size_t mapped, size_t space) const {
  if (offset[mapped] != 0) return false;
  for (size_t j = 0; j < space_rank; ++j)
    if (factor(mapped, j) != (j == space ? 1 : 0)) return false;
  return true;
}

bool IndexMap::is_followed_alone(size_t space) const {
  for (size_t k = 0; k < mapped_rank(); ++k) {
    bool alone = factor(k, space) != 0;
    for (size_t j = 0; j < space_rank; ++j) alone = alone && (j == space || factor(k, j) == 0);
    if (alone) return true;
  }
  return false;
}

std::vector<int64_t> ops::numbers_of(const Attributes& attributes, std::string_view name) {
  std::vector<int64_t> numbers;
  for (const Dim& dim : list_attribute(attributes, name)) {
    if (!dim.is_constant()) throw TypeError(cat("reindex: ", name, " with ", dim));
    numbers.push_back(dim.value());
  }
  return numbers;
}

IndexMap ops::index_map(const Attributes& attributes, size_t space_rank) {
  return {.space_rank = space_rank,
          .factors = numbers_of(attributes, "matrix"),
          .offset = numbers_of(attributes, "offset")};
}

constinit const OpDef op::reindex{
    .name = "reindex",
    .doc =
        "Elements of a tensor at indices that depend on the place: `matrix` times the place plus "
        "`offset`. A number where that is outside.",
    .schema = "(Tensor self, int[] size, int[] matrix, int[] offset, Scalar fill=0.0) -> Tensor",
    .python = "ops.torchjanus_meta.reindex",
    .computed_by = ComputedBy::loops,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::unfollowed,
    .access = Access::mapped,
    .infer = infer_reindex,
    .vjp =
        [](Vjp& g) {
          if (g.needs(0))
            g.add(0, apply(op::reindex_reduce, with_size(g.node(), in(g, 0).shape()), dout(g)));
        },
};

constinit const OpDef op::reindex_divided{
    .name = "reindex_divided",
    .doc =
        "Elements at indices that are the place's plus `offset`, divided by `divisor` and rounded "
        "down. 0 where that is outside. Part of what kernels compute, never alone.",
    .schema = "(Tensor self, int[] size, int[] divisor, int[] offset) -> Tensor",
    .computed_by = ComputedBy::loops,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .access = Access::divided,
    .infer = infer_reindex_divided,
    .vjp = [](Vjp&) { throw TypeError("reindex_divided: part of what has a gradient of its own"); },
};

constinit const OpDef op::stop_fuse{
    .name = "stop_fuse",
    .doc = "The same tensor, which is in memory: no kernel computes both it and what uses it.",
    .schema = "(Tensor self) -> Tensor",
    .python = "ops.torchjanus_meta.stop_fuse",
    .traits = Trait::pure | Trait::view | Trait::linear,
    .computed_by = ComputedBy::executor,
    .sees = Sees::all,
    .infer = [](const Infer& infer) -> std::vector<Type> { return {tensor_type(infer, 0)}; },
    .vjp = [](Vjp& g) { g.add(0, g.dout()); },
    .scatter = [](const Scatter& s) { return s.replacement; },
};

constinit const OpDef op::reindex_reduce{
    .name = "reindex_reduce",
    .doc =
        "Combines the elements of a tensor that `matrix` times their place plus `offset` puts to "
        "the same place: sum, amax, amin, any, all, or argmax and argmin, which count along the "
        "dimensions that no index follows alone. What is put outside is left out.",
    .schema = "(Tensor self, int[] size, int[] matrix, int[] offset, str reduce=\"sum\") -> Tensor",
    .python = "ops.torchjanus_meta.reindex_reduce",
    .computed_by = ComputedBy::loops,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::unfollowed,
    .infer = infer_reindex_reduce,
    .vjp = reindex_reduce_gradient,
};

}  // namespace janus
