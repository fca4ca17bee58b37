// See map_indices.h.
#include "passes/lowering/map_indices.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "graph/constant.h"
#include "graph/rewriter.h"
#include "ops/expression.h"
#include "ops/index_space.h"
#include "ops/promotion.h"
#include "ops/reindex.h"
#include "ops/shape_rules.h"
#include "passes/analysis/unobservable_layouts.h"

namespace janus::passes {
namespace {

using graph::Dim;
using graph::Node;
using graph::Shape;
using graph::Value;
using ops::Expression;

/// A `reindex` node, with its operand in the new graph.
struct Reindexed {
  const Node& node;
  ops::IndexMap map;

  explicit Reindexed(const Node& node)
      : node(node), map(ops::index_map(node.attributes, node.output()->type.shape.size())) {}

  const Shape& from() const { return node.inputs[0]->type.shape; }
  const Shape& size() const { return node.output()->type.shape; }
  double fill() const { return *graph::constant_number(node.inputs[1]); }

  /// The indices of the result that index k of the operand follows.
  std::vector<size_t> followed_by(size_t k) const {
    std::vector<size_t> result;
    for (size_t j = 0; j < map.space_rank; ++j)
      if (map.factor(k, j) != 0) result.push_back(j);
    return result;
  }
  /// The indices of the operand that follow index j of the result.
  std::vector<size_t> following(size_t j) const {
    std::vector<size_t> result;
    for (size_t k = 0; k < map.mapped_rank(); ++k)
      if (map.factor(k, j) != 0) result.push_back(k);
    return result;
  }
  /// Whether index k of the operand is index j of the result, all over.
  bool is_same(size_t k, size_t j) const {
    return map.factor(k, j) == 1 && map.offset[k] == 0 && followed_by(k).size() == 1 &&
           from()[k] == size()[j];
  }
};

// ---- Views --------------------------------------------------------------------------------------

/// `low` elements more in front of dimensions `dim`, `dim` + 1, ..., `high` more behind.
Expression padded(const Expression& x, size_t dim, const std::vector<int64_t>& low,
                  const std::vector<int64_t>& high, double fill) {
  const auto is_zero = [](int64_t count) { return count == 0; };
  if (std::ranges::all_of(low, is_zero) && std::ranges::all_of(high, is_zero)) return x;
  Shape pad(2 * (x.shape().size() - dim), Dim(0));  // of the last dimension first
  for (size_t i = 0; i < low.size(); ++i) {
    pad[pad.size() - 2 * i - 2] = low[i];
    pad[pad.size() - 2 * i - 1] = high[i];
  }
  return apply(op::constant_pad_nd, {{"pad", pad}}, x, fill);
}

/// Elements offset, offset + factor, ... of a dimension, `fill` outside of it.
Expression stepped(const Expression& x, size_t dim, int64_t offset, int64_t factor, int64_t count,
                   double fill) {
  const int64_t last = offset + factor * (count - 1), size = x.shape()[dim].value();
  const int64_t lowest = std::min(offset, last), highest = std::max(offset, last);
  const int64_t low = std::max<int64_t>(0, -lowest),
                high = std::max<int64_t>(0, highest - size + 1);
  const auto wide = padded(x, dim, {low}, {high}, fill);
  const auto along = static_cast<int64_t>(dim);
  const auto part = apply(op::slice,
                          {{"dim", along},
                           {"start", lowest + low},
                           {"end", highest + low + 1},
                           {"step", factor < 0 ? -factor : factor}},
                          wide);
  return factor < 0 ? apply(op::flip, {{"dims", Shape{along}}}, part) : part;
}

/// In this order of its dimensions, row after row.
Expression reordered(const Expression& x, const std::vector<int64_t>& order) {
  if (std::ranges::is_sorted(order)) return x;
  return apply(op::contiguous, ops::permuted(x, order));
}

/// Null unless each index of the operand follows one of the result and no two the same.
Value* as_view(graph::Builder& builder, const Reindexed& reindexed, Value* operand) {
  Expression y(builder, operand);
  std::vector<int64_t> order;  // of the operand's dimensions, as the result has them
  std::vector<size_t> added;
  for (size_t j = 0; j < reindexed.map.space_rank; ++j) {
    const auto following = reindexed.following(j);
    if (following.size() > 1) return nullptr;
    if (following.empty())
      added.push_back(j);
    else
      order.push_back(static_cast<int64_t>(following.front()));
  }
  for (size_t k = 0; k < reindexed.map.mapped_rank(); ++k) {
    const auto followed = reindexed.followed_by(k);
    if (followed.size() != 1) return nullptr;
    const size_t j = followed.front();
    if (reindexed.is_same(k, j)) continue;
    const Dim& count = reindexed.size()[j];
    if (!count.is_constant() || count.value() < 1 || !reindexed.from()[k].is_constant())
      return nullptr;
    y = stepped(y, k, reindexed.map.offset[k], reindexed.map.factor(k, j), count.value(),
                reindexed.fill());
  }
  y = reordered(y, order);
  for (const size_t j : added) y = ops::unsqueezed(y, static_cast<int64_t>(j));
  return added.empty() ? y : ops::expanded(y, reindexed.size());
}

// ---- Convolutions -------------------------------------------------------------------------------

/// What a product of a reindexed image and a reindexed weight, summed up, convolves.
struct Convolution {
  Reindexed image, weight;
  std::vector<int64_t> image_order, weight_order;  ///< of their dimensions: channels second
  std::vector<int64_t> result_order;  ///< of batch, channels, place as the result has them
  std::vector<int64_t> turned;        ///< dimensions of the weight, in its new order
  Shape stride, dilation;
  std::vector<int64_t> low, high;  ///< rows of the border on either side; below 0: cut away
};

/// An index of the space: where the image, the weight have it, and whether it is summed over.
struct Role {
  std::vector<size_t> in_image, in_weight;
  bool summed = false;
};

class ConvolutionFinder {
 public:
  ConvolutionFinder(const Node& sum, const Node& image, const Node& weight)
      : found_{.image = Reindexed(image), .weight = Reindexed(weight)} {
    const size_t rank = found_.image.size().size();
    const auto summed = ops::reduced_dims(sum.attributes, "dim", static_cast<int64_t>(rank));
    for (size_t j = 0; j < rank; ++j)
      roles_.push_back({found_.image.following(j), found_.weight.following(j),
                        std::ranges::find(summed, static_cast<int64_t>(j)) != summed.end()});
  }

  std::optional<Convolution> find() {
    for (const Role& role : roles_)
      if (role.in_image.size() > 1 || role.in_weight.size() > 1) return std::nullopt;
    if (!find_single_indices() || !find_windows() || found_.low.empty() || found_.low.size() > 3)
      return std::nullopt;
    return std::move(found_);
  }

 private:
  /// Batch, channels of the result, channels of the image.
  bool find_single_indices() {
    std::optional<size_t> batch, output, channels;
    for (size_t j = 0; j < roles_.size(); ++j) {
      const Role& role = roles_[j];
      const bool image = !role.in_image.empty(), weight = !role.in_weight.empty();
      const bool alone = !image || found_.image.is_same(role.in_image.front(), j);
      if (!alone) continue;  // part of a window
      if (weight && !found_.weight.is_same(role.in_weight.front(), j)) return false;
      std::optional<size_t>* place = nullptr;
      if (image && !weight && !role.summed) place = &batch;
      if (!image && weight && !role.summed) place = &output;
      if (image && weight && role.summed) place = &channels;
      if (place == nullptr || *place) return false;
      *place = j;
    }
    if (!batch || !output || !channels) return false;
    const auto at = [](const std::vector<size_t>& one) {
      return static_cast<int64_t>(one.front());
    };
    found_.image_order = {at(roles_[*batch].in_image), at(roles_[*channels].in_image)};
    found_.weight_order = {at(roles_[*output].in_weight), at(roles_[*channels].in_weight)};
    results_ = {*batch, *output};
    singles_ = 3;
    return true;
  }

  /// Each other index of the image goes over places and, at each, over a window.
  bool find_windows() {
    size_t used = singles_;
    for (size_t k = 0; k < found_.image.map.mapped_rank(); ++k) {
      if (std::ranges::find(found_.image_order, static_cast<int64_t>(k)) !=
          found_.image_order.end())
        continue;
      const auto followed = found_.image.followed_by(k);
      if (followed.size() != 2) return false;
      const bool first_summed = roles_[followed[0]].summed;
      if (!add_window(k, followed[first_summed ? 1 : 0], followed[first_summed ? 0 : 1]))
        return false;
      used += 2;
    }
    if (used != roles_.size()) return false;
    std::vector<size_t> sorted = results_;
    std::ranges::sort(sorted);
    for (const size_t j : sorted)
      found_.result_order.push_back(std::ranges::find(results_, j) - results_.begin());
    // Whatever the windows said of the image, they must have all of it.
    return found_.image_order.size() == found_.image.map.mapped_rank() &&
           found_.weight_order.size() == found_.weight.map.mapped_rank();
  }

  bool add_window(size_t k, size_t place, size_t inside) {
    const Role &places = roles_[place], &window = roles_[inside];
    if (places.summed || !window.summed || !places.in_weight.empty() || window.in_weight.empty())
      return false;
    const size_t side = window.in_weight.front();
    if (!found_.weight.is_same(side, inside)) return false;
    const Dim &count = found_.image.size()[place], &width = found_.image.size()[inside],
              &size = found_.image.from()[k];
    const int64_t stride = found_.image.map.factor(k, place);
    int64_t dilation = found_.image.map.factor(k, inside), first = found_.image.map.offset[k];
    if (stride < 1 || !count.is_constant() || !width.is_constant() || !size.is_constant() ||
        count.value() < 1 || width.value() < 1)
      return false;
    if (dilation < 0) {
      first += dilation * (width.value() - 1);
      dilation = -dilation;
      found_.turned.push_back(static_cast<int64_t>(found_.weight_order.size()));
    }
    const int64_t last = first + stride * (count.value() - 1) + dilation * (width.value() - 1);
    found_.low.push_back(-first);
    found_.high.push_back(last - size.value() + 1);
    found_.stride.push_back(stride);
    found_.dilation.push_back(dilation);
    found_.image_order.push_back(static_cast<int64_t>(k));
    found_.weight_order.push_back(static_cast<int64_t>(side));
    results_.push_back(place);
    return true;
  }

  Convolution found_;
  std::vector<Role> roles_;
  std::vector<size_t> results_;  ///< indices of the space that batch, channels and places are
  size_t singles_ = 0;
};

Value* convolved(graph::Builder& builder, const Convolution& found, Value* image, Value* weight) {
  auto x = reordered(Expression(builder, image), found.image_order);
  auto w = reordered(Expression(builder, weight), found.weight_order);
  if (!found.turned.empty())
    w = apply(op::flip, {{"dims", Shape(found.turned.begin(), found.turned.end())}}, w);
  // The library skips a border that it adds itself, but zeros times infinite weights are no zeros.
  x = padded(x, 2, found.low, found.high, 0);
  const Shape none(found.low.size(), Dim(0));
  const auto y = apply(op::convolution,
                       {{"stride", found.stride},
                        {"padding", none},
                        {"dilation", found.dilation},
                        {"transposed", false},
                        {"output_padding", none},
                        {"groups", 1}},
                       x, w, Expression(builder, builder.none()));
  return reordered(y, found.result_order);
}

bool is_reindex(const Value* value) {
  return value->definition != nullptr && value->definition->op == &op::reindex;
}

/// The sum of a product of two reindexed tensors of one type that a convolution computes as well.
std::optional<Convolution> find_convolution(const Node& sum) {
  if (sum.op != &op::sum || sum.output()->type.rank() == sum.inputs[0]->type.rank())
    return std::nullopt;
  const Node* product = sum.inputs[0]->definition;
  if (product == nullptr || product->op != &op::mul) return std::nullopt;
  const Value *a = product->inputs[0], *b = product->inputs[1];
  if (!is_reindex(a) || !is_reindex(b) || !(a->type == b->type)) return std::nullopt;
  const bool computed = a->type.dtype == graph::DType::f32 || a->type.dtype == graph::DType::f64;
  if (!computed || sum.output()->type.dtype != a->type.dtype) return std::nullopt;
  for (const auto& [image, weight] : {std::pair{a, b}, std::pair{b, a}}) {
    if (*graph::constant_number(image->definition->inputs[1]) != 0) continue;
    if (auto found = ConvolutionFinder(sum, *image->definition, *weight->definition).find())
      return found;
  }
  return std::nullopt;
}

}  // namespace

graph::Graph map_indices(const graph::Graph& graph) {
  const std::vector<bool> unobservable = find_unobservable(graph);
  graph::Rewriter rewriter(graph);
  rewriter.run([&](const Node& node) {
    graph::Builder& builder = rewriter.builder();
    if (const auto found = find_convolution(node)) {
      Value* result = convolved(builder, *found, rewriter[found->image.node.inputs[0]],
                                rewriter[found->weight.node.inputs[0]]);
      if (!(result->type == node.output()->type)) return false;
      rewriter.replace(node, {result});
      return true;
    }
    if (node.op != &op::reindex || !unobservable[node.output()->id]) return false;
    Value* view = as_view(builder, Reindexed(node), rewriter[node.inputs[0]]);
    if (view == nullptr) return false;
    rewriter.replace(node, {view});
    return true;
  });
  return rewriter.finish();
}

}  // namespace janus::passes
