// See index_space.h.
#include "ops/index_space.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/policy.h"
#include "graph/builder.h"
#include "graph/constant.h"
#include "graph/cost.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "ops/promotion.h"
#include "ops/read.h"
#include "ops/shape_rules.h"

namespace janus::ops {

using graph::Access;
using graph::Combines;
using graph::Dim;
using graph::Node;
using graph::Reduces;
using graph::Rounds;
using graph::Sees;
using graph::Shape;
using graph::Trait;
using graph::Value;

namespace {

struct NoSpace {};

std::vector<int64_t> all_dims(int64_t rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

std::vector<int64_t> all_dims_but(int64_t dim, int64_t rank) {
  std::vector<int64_t> dims = all_dims(rank);
  std::erase(dims, dim);
  return dims;
}

/// The dimension that attribute `dim` names; a tensor of rank 0 has none.
std::vector<int64_t> named_dim(const Node& node, int64_t rank) {
  if (rank == 0) return {};
  return {wrap_dim(integer_attribute(node.attributes, "dim"), rank)};
}

/// The reduction of operators that give positions; nullopt for tensors of rank 0, and for booleans,
/// whose `argmax` raises.
std::optional<Reduction> reduction_to_positions(const Node& node) {
  const graph::Type& type = node.inputs[0]->type;
  if (type.rank() == 0 || type.dtype == graph::DType::b1) return std::nullopt;
  return Reduction{type.shape, reduced_dims(node.attributes, "dim", type.rank())};
}

/// The last dimensions, which are normalised together.
std::vector<int64_t> normalised_dims(const Node& node, int64_t rank) {
  const auto inner =
      static_cast<int64_t>(list_attribute(node.attributes, "normalized_shape").size());
  std::vector<int64_t> dims;
  for (int64_t dim = rank - inner; dim < rank; ++dim) dims.push_back(dim);
  return dims;
}

bool is_view_of_ones(const Node& node) {
  switch (node.op->sees) {
    case Sees::reshaped:
    case Sees::viewed:
    case Sees::squeezed:
    case Sees::unsqueezed:
    case Sees::expanded:
      return !node.op->is(Trait::composite);
    default:
      return false;
  }
}

bool is_elementwise(const Node& node) {
  return node.op->is(Trait::elementwise) && has_scalar_program(node);
}

bool is_batch_norm(const Node& node) { return node.op->reduces == Reduces::all_but_channels; }

/// Whether the node computes with tensors of half precision.
bool is_half(const Node& node) {
  return std::ranges::any_of(node.inputs, [](const Value* input) {
    return input->type.is_tensor() && graph::is_half(input->type.dtype);
  });
}

/// Whether eager's operator rounds half precision in between, in a way that kernels can't: after
/// each factor, or differently for the elements behind the last whole vector.
bool rounds_within(const Node& node) {
  if (node.op->rounds != Rounds::within_but_along_last) return node.op->rounds == Rounds::within;
  const auto rank = static_cast<int64_t>(node.output()->type.shape.size());
  return named_dim(node, rank) != std::vector<int64_t>{rank - 1};
}

/// The dimensions whose size is not 1.
std::vector<size_t> extended(const Shape& shape) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < shape.size(); ++d)
    if (!shape[d].is(1)) dims.push_back(d);
  return dims;
}

}  // namespace

bool is_plain_reduction(const Node& node) { return node.op->combines != Combines::nothing; }

bool is_pooling(const Node& node) { return node.op->access == Access::window; }

bool is_reindexing(const Node& node) {
  return is_read(node) || is_pooling(node) || node.op->access == Access::joined;
}

bool is_read_elsewhere(const Node& node, size_t input) {
  return is_reindexing(node) && (input == 0 || !looks_up(node));
}

std::optional<Reduction> reduction_of(const Node& node) {
  if (node.inputs.empty() || !node.inputs[0]->type.is_tensor()) return std::nullopt;
  const Shape& shape = node.inputs[0]->type.shape;
  const auto rank = static_cast<int64_t>(shape.size());
  switch (node.op->reduces) {
    case Reduces::nothing:
      return std::nullopt;
    case Reduces::named:
      return Reduction{shape, reduced_dims(node.attributes, "dim", rank)};
    case Reduces::all:
      return Reduction{shape, all_dims(rank)};
    case Reduces::one:
      return Reduction{shape, named_dim(node, rank)};
    case Reduces::to_position:
      return reduction_to_positions(node);
    case Reduces::normalised:
      return Reduction{shape, normalised_dims(node, rank)};
    case Reduces::all_but_channels:
      return Reduction{shape, all_dims_but(1, rank)};
  }
  return std::nullopt;
}

bool has_rows_enough(const Reduction& reduction) {
  int64_t rows = 1, points = 1;
  for (size_t d = 0; d < reduction.space.size(); ++d) {
    const int64_t size = graph::typical_size(reduction.space[d]);
    points *= size;
    if (std::ranges::find(reduction.dims, static_cast<int64_t>(d)) == reduction.dims.end())
      rows *= size;
  }
  return rows >= policy::kFewReducedRows || points < policy::kLargeReducedSpace;
}

// ---- Finding the space --------------------------------------------------------------------------

class IndexSpace::Finder {
 public:
  IndexSpace find(std::span<const Node* const> nodes) {
    for (const Node* node : nodes) take_apart(*node);
    find_shape();
    for (const Node* node : space_.nodes_) place(*node);
    require_spanned();
    return std::move(space_);
  }

 private:
  // --- decomposition

  void take_apart(const Node& node) {
    const bool plain = node.op == &op::constant || node.op == &op::size || is_elementwise(node) ||
                       is_view_of_ones(node) || is_read(node) ||
                       (is_plain_reduction(node) && !is_half(node));
    if (plain) {
      space_.nodes_.push_back(&node);
      return;
    }
    auto& part = *space_.parts_.emplace_back(std::make_unique<graph::Graph>("part"));
    graph::Builder builder(part);
    std::vector<Value*> results = parts_of(builder, node);
    if (results.size() != node.outputs.size()) throw NoSpace{};
    for (size_t i = 0; i < results.size(); ++i) {
      if (is_half(node) && results[i]->type.is_tensor())
        results[i] = cast({builder, results[i]}, node.outputs[i]->type.dtype);
      if (!(results[i]->type == node.outputs[i]->type)) throw NoSpace{};
      space_.same_[node.outputs[i]] = results[i];
    }
    for (const Node* one : part.body().nodes) take_apart(*one);
  }

  /// The decomposition of a node. Half precision is widened to float32 and rounded at the end, as
  /// in eager; if eager rounds in between, so does the decomposition. Reads at other places are not
  /// widened. Batch norms widen channels themselves, when they know their dimension.
  static std::vector<Value*> parts_of(graph::Builder& builder, const Node& node) {
    std::vector<Value*> inputs = node.inputs;
    if (is_half(node) && !is_reindexing(node) && !is_batch_norm(node)) {
      if (rounds_within(node)) throw NoSpace{};
      for (Value*& input : inputs)
        if (input->type.is_tensor()) input = widened({builder, input});
    }
    if (is_plain_reduction(node)) return builder.append(*node.op, inputs, node.attributes)->outputs;
    if (node.op->decompose == nullptr) throw NoSpace{};
    return node.op->decompose({builder, node, inputs});
  }

  // --- the space

  void find_shape() {
    const Node* full = nullptr;
    for (const Node* node : space_.nodes_) {
      if (is_plain_reduction(*node)) {
        add_reduction(*reduction_of(*node));
      } else if ((is_elementwise(*node) || is_read(*node)) && full == nullptr) {
        full = node;
      }
    }
    if (reduction_) return;
    if (full == nullptr) throw NoSpace{};
    space_.shape_ = full->output()->type.shape;
  }

  void add_reduction(const Reduction& reduction) {
    if (reduction_ && !(*reduction_ == reduction)) throw NoSpace{};
    if (reduction.space.size() > 31) throw NoSpace{};
    reduction_ = reduction;
    space_.shape_ = reduction.space;
    for (const int64_t dim : reduction.dims) space_.reduced_ |= uint32_t{1} << dim;
  }

  /// The axes of a tensor that is broadcast to the whole space.
  Axes trailing_axes(const Shape& shape) const {
    if (shape.size() > space_.rank()) throw NoSpace{};
    const size_t missing = space_.rank() - shape.size();
    Axes axes;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].is(1))
        axes.push_back(-1);
      else if (shape[d] == space_.shape_[missing + d])
        axes.push_back(static_cast<int>(missing + d));
      else
        throw NoSpace{};
    }
    return axes;
  }

  // --- the values in it

  const Axes* known(const Value* value) const { return space_.axes(value); }

  void require(const Value* value, const Axes& axes) {
    value = space_.resolved(value);
    if (space_.maps_.contains(value)) throw NoSpace{};
    const auto [found, added] = space_.axes_.try_emplace(value, axes);
    if (!added && found->second != axes) throw NoSpace{};
  }

  void place(const Node& node) {
    if (node.op == &op::constant || node.op == &op::size) return;
    if (is_plain_reduction(node))
      place_reduction(node);
    else if (is_view_of_ones(node))
      place_view(node);
    else if (is_read(node))
      place_read(node);
    else
      place_elementwise(node);
  }

  void place_elementwise(const Node& node) {
    const Shape& shape = node.output()->type.shape;
    const Axes axes = elementwise_axes(node, shape);
    space_.axes_[node.output()] = axes;
    for (const Value* input : node.inputs) {
      if (!input->type.is_tensor()) continue;
      const Shape& operand = input->type.shape;
      const size_t missing = shape.size() - operand.size();
      Axes aligned;
      for (size_t d = 0; d < operand.size(); ++d)
        aligned.push_back(operand[d].is(1) ? -1 : axes[missing + d]);
      require(input, aligned);
    }
  }

  Axes elementwise_axes(const Node& node, const Shape& shape) const {
    for (const Value* input : node.inputs) {
      if (!input->type.is_tensor() || input->type.shape != shape) continue;
      if (const Axes* axes = known(space_.resolved(input))) return *axes;
    }
    return trailing_axes(shape);
  }

  void place_reduction(const Node& node) {
    const Shape& shape = node.inputs[0]->type.shape;
    const Axes whole = trailing_axes(shape);
    require(node.inputs[0], whole);
    const size_t rank = node.output()->type.shape.size();
    const bool keeps = rank == shape.size();
    Axes axes;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool reduced = (space_.reduced_ >> d & 1) != 0;
      if (!reduced || keeps) axes.push_back(reduced ? -1 : whole[d]);
    }
    if (axes.size() != rank) throw NoSpace{};
    space_.axes_[node.output()] = axes;
    if (node.op == &op::pick) require(node.inputs[1], axes);
  }

  /// Places an operand from outside that only reads access, possibly with several index tensors or
  /// at several places around the point.
  void place_read(const Node& node) {
    const Value* operand = space_.resolved(node.inputs[0]);
    const Shape &from = operand->type.shape, &to = node.output()->type.shape;
    const auto read = read_of(node);
    if (!read || space_.rank() == 0 || !tells_sizes(node) || !fill_fits(node)) throw NoSpace{};
    const Axes axes = trailing_axes(to);
    IndexMap map = read->map;
    map.space_rank = space_.rank();
    map.factors.assign(from.size() * space_.rank(), 0);
    Axes operand_axes(from.size(), -1);
    for (size_t k = 0; k < from.size(); ++k) {
      for (size_t j = 0; j < to.size(); ++j) {
        if (axes[j] < 0) continue;
        map.factors[k * space_.rank() + static_cast<size_t>(axes[j])] = read->map.factor(k, j);
        const bool covers =
            read->map.is_same(k, j) || (read->turns(k) && read->map.factor(k, j) != 0);
        if (covers && from[k] == to[j]) operand_axes[k] = axes[j];
      }
      const bool is_known = from[k].is_constant() || read->look_up(k) != nullptr;
      if (read->division(k) != nullptr && !to[k].is_constant()) throw NoSpace{};
      if (operand_axes[k] < 0 && !is_known) throw NoSpace{};
    }
    const bool is_read_else = space_.axes_.contains(operand) && !space_.maps_.contains(operand);
    const auto [found, added] = space_.maps_.try_emplace(operand, map);
    if (is_read_else || found->second.factors != map.factors) throw NoSpace{};
    const bool goes_by_map = read->look_ups.empty() && read->turned.empty();
    if (found->second.offset != map.offset && !goes_by_map) throw NoSpace{};
    Axes& own = space_.axes_[operand];
    own.resize(from.size(), -1);
    for (size_t k = 0; k < from.size(); ++k) own[k] = std::max(own[k], operand_axes[k]);
    for (const LookUp& each : read->look_ups) place_index(each, axes);
    space_.axes_[node.output()] = axes;
  }

  /// Places an index tensor along the result's dimensions that it stands for.
  void place_index(const LookUp& look_up, const Axes& axes) {
    const Shape& shape = look_up.index->type.shape;
    Axes own;
    for (size_t d = 0; d < shape.size(); ++d)
      own.push_back(shape[d].is(1) ? -1 : axes[look_up.end - shape.size() + d]);
    require(look_up.index, own);
  }

  /// The fill value of a `reindex` must be representable in its dtype.
  static bool fill_fits(const Node& node) {
    return node.op != &op::reindex ||
           can_hold(node.inputs[0]->type.dtype, *graph::constant_number(node.inputs[1]));
  }

  /// Whether each size of the result is known and not 0, or is that of an operand.
  static bool tells_sizes(const Node& node) {
    return std::ranges::all_of(node.output()->type.shape, [&](const Dim& size) {
      if (size.is_constant()) return size.value() > 0 || !looks_up(node);
      return std::ranges::any_of(node.inputs, [&](const Value* operand) {
        return operand->type.is_tensor() &&
               std::ranges::find(operand->type.shape, size) != operand->type.shape.end();
      });
    });
  }

  /// Places a view that adds or removes dimensions of size 1, or broadcasts.
  void place_view(const Node& node) {
    const Value* operand = space_.resolved(node.inputs[0]);
    const Shape& from = operand->type.shape;
    const Shape& to = node.output()->type.shape;
    if (node.op->sees == Sees::expanded) {
      const Axes axes = trailing_axes(to);
      Axes aligned;
      for (size_t d = 0; d < from.size(); ++d)
        aligned.push_back(from[d].is(1) ? -1 : axes[to.size() - from.size() + d]);
      require(operand, aligned);
      space_.axes_[node.output()] = axes;
      return;
    }
    const auto dims_from = extended(from), dims_to = extended(to);
    if (dims_from.size() != dims_to.size()) throw NoSpace{};
    for (size_t i = 0; i < dims_from.size(); ++i)
      if (!(from[dims_from[i]] == to[dims_to[i]])) throw NoSpace{};
    const Axes* axes = known(operand);
    if (axes == nullptr) {
      const Axes seen = trailing_axes(to);
      Axes aligned(from.size(), -1);
      for (size_t i = 0; i < dims_from.size(); ++i) aligned[dims_from[i]] = seen[dims_to[i]];
      require(operand, aligned);
      axes = known(operand);
    }
    Axes result(to.size(), -1);
    for (size_t i = 0; i < dims_from.size(); ++i) result[dims_to[i]] = (*axes)[dims_from[i]];
    space_.axes_[node.output()] = result;
  }

  /// Requires that each dimension of the space gets its size from an operand from outside, or has a
  /// known size where operands are read in parts.
  void require_spanned() {
    std::vector<bool> spanned(space_.rank());
    std::unordered_map<const Value*, bool> made;
    for (const Node* node : space_.nodes_)
      for (const Value* output : node->outputs) made[output] = true;
    for (const auto& [value, axes] : space_.axes_) {
      if (made.contains(value)) continue;
      for (const int axis : axes)
        if (axis >= 0) spanned[static_cast<size_t>(axis)] = true;
    }
    space_.fixed_sizes_.assign(space_.rank(), -1);
    for (size_t d = 0; d < spanned.size(); ++d) {
      const Dim& size = space_.shape_[d];
      if (spanned[d] || size.is(1)) continue;
      if (space_.maps_.empty() || !size.is_constant()) throw NoSpace{};
      space_.fixed_sizes_[d] = size.value();
    }
  }

  IndexSpace space_;
  std::optional<Reduction> reduction_;
};

std::optional<IndexSpace> IndexSpace::of(std::span<const Node* const> nodes) {
  try {
    return Finder().find(nodes);
  } catch (const NoSpace&) {
    return std::nullopt;
  } catch (const graph::TypeError&) {  // a decomposition refuses the operands
    return std::nullopt;
  }
}

const Value* IndexSpace::resolved(const Value* value) const {
  for (auto found = same_.find(value); found != same_.end(); found = same_.find(value))
    value = found->second;
  return value;
}

const Axes* IndexSpace::axes(const Value* value) const {
  const auto found = axes_.find(resolved(value));
  return found == axes_.end() ? nullptr : &found->second;
}

const IndexMap* IndexSpace::map(const Value* value) const {
  const auto found = maps_.find(resolved(value));
  return found == maps_.end() ? nullptr : &found->second;
}

bool IndexSpace::is_storable(const Value* value) const {
  const Axes* found = axes(value);
  if (found == nullptr) return false;
  uint32_t seen = 0, rows = 0, points = 0;
  for (const int axis : *found)
    if (axis >= 0) seen |= uint32_t{1} << axis;
  for (size_t d = 0; d < rank(); ++d) {
    if (shape_[d].is(1)) continue;
    points |= uint32_t{1} << d;
    if ((reduced_ >> d & 1) == 0) rows |= uint32_t{1} << d;
  }
  return seen == rows || seen == points;
}

}  // namespace janus::ops
