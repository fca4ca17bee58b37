// See fused_layouts.h.
#include "execute/code/fused_layouts.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "graph/op.h"
#include "ops/index_space.h"
#include "ops/list.h"
#include "ops/read.h"

namespace janus::execute {

using graph::Node;
using graph::Value;

namespace {

/// Sizes of a result of an operator that reduces `operand`: the same, or one for each row.
std::vector<int64_t> sizes_of_result(const Value& output, const ops::Reduction& reduction,
                                     const Layout& operand) {
  const graph::Shape& shape = output.type.shape;
  if (shape == reduction.space) return operand.sizes;
  const bool keeps = shape.size() == reduction.space.size();
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < operand.sizes.size(); ++d) {
    const bool reduced =
        std::ranges::find(reduction.dims, static_cast<int64_t>(d)) != reduction.dims.end();
    if (!reduced)
      sizes.push_back(operand.sizes[d]);
    else if (keeps)
      sizes.push_back(1);
  }
  return sizes;
}

bool lies_channels_last(const Layout& image) {
  return (image.sizes.size() == 4 || image.sizes.size() == 5) &&
         image.has_strides(channels_last_strides(image.sizes));
}

/// Whether eager's batch norm gives a result with its channels innermost. Where only strides of
/// dimensions of one element say that the image is no such one, it is taken for one, but by a
/// gradient `given` that lies in that way itself.
bool gives_channels_last(const Layout& image, const Layout* given) {
  if (suggests_channels_last(image)) return true;
  return lies_channels_last(image) && !image.is_contiguous() &&
         (given == nullptr || !lies_channels_last(*given));
}

/// Strides of a result of that node: as eager's operator gives them.
std::vector<int64_t> strides_of_result(const Node& node, const std::vector<int64_t>& sizes,
                                       const std::vector<const Layout*>& operands) {
  const bool normalises = node.op->layout == graph::Layout::normalised_image;
  const bool goes_back = node.op->layout == graph::Layout::gradient_image;
  if (normalises || goes_back) {
    const Layout& image = *operands[goes_back ? 1 : 0];
    if (image.sizes == sizes && gives_channels_last(image, goes_back ? operands[0] : nullptr))
      return channels_last_strides(sizes);
  }
  return contiguous_strides(sizes);
}

/// What a node's tensors were found to be; null for numbers and what is missing.
using Operands = std::vector<const Layout*>;

/// Sizes of a result whose elements are those of other places: known ones, and the operands'.
std::vector<int64_t> reindexed_sizes(const Node& node, const Operands& operands) {
  std::vector<int64_t> sizes;
  for (const graph::Dim& size : node.output()->type.shape) {
    int64_t found = size.is_constant() ? size.value() : -1;
    for (size_t i = 0; i < node.inputs.size() && found < 0; ++i) {
      if (operands[i] == nullptr) continue;
      const graph::Shape& from = node.inputs[i]->type.shape;
      const auto same = static_cast<size_t>(std::ranges::find(from, size) - from.begin());
      if (same < from.size()) found = operands[i]->sizes[same];
    }
    sizes.push_back(found);
  }
  return sizes;
}

/// A tensor of the result's sizes that lies along its dimensions as ATen's `index` walks them.
Layout walked(const Layout& operand, const std::vector<int64_t>& sizes,
              const std::vector<int64_t>& strides) {
  return {.dtype = operand.dtype, .sizes = sizes, .strides = strides};
}

/// The strides of what tensors of indices take out: the order in memory of what is left counts.
std::vector<int64_t> indexed_strides(const Node& node, const std::vector<int64_t>& sizes,
                                     const Operands& operands) {
  const ops::Read read = ops::read_of(node).value();
  std::vector<Layout> layouts;
  std::vector<int64_t> own(sizes.size());
  for (size_t k = 0; k < read.map.mapped_rank(); ++k)
    for (size_t j = 0; j < sizes.size(); ++j)
      if (read.map.factor(k, j) != 0) own[j] = operands[0]->strides[k];
  layouts.push_back(walked(*operands[0], sizes, own));
  for (const ops::LookUp& each : read.look_ups) {
    const Layout& index = *operands[each.dim + 1];
    std::vector<int64_t> along(sizes.size());
    for (size_t d = 0; d < index.sizes.size(); ++d)
      if (index.sizes[d] != 1) along[each.end - index.sizes.size() + d] = index.strides[d];
    layouts.push_back(walked(index, sizes, along));
  }
  std::vector<const Layout*> all;
  for (const Layout& layout : layouts) all.push_back(&layout);
  return elementwise_strides(sizes, all);
}

/// Joined, padded and pooled images keep their channels last, a gradient those of the image that it
/// goes back to; what is only turned keeps its order.
std::vector<int64_t> reindexed_strides(const Node& node, const std::vector<int64_t>& sizes,
                                       Operands operands) {
  if (node.op->layout == graph::Layout::gradient_image) operands = {operands[1]};
  if (node.op->access == graph::Access::reversed) return elementwise_strides(sizes, operands);
  if (node.op->access == graph::Access::subscripted) return indexed_strides(node, sizes, operands);
  const bool keeps =
      !ops::is_read(node) && std::ranges::all_of(operands, [](const Layout* operand) {
        return operand == nullptr || suggests_channels_last(*operand);
      });
  return keeps ? channels_last_strides(sizes) : contiguous_strides(sizes);
}

}  // namespace

std::vector<Layout> fused_layouts(const Node& fused, const std::vector<const Layout*>& inputs) {
  const graph::Block& block = *fused.blocks.front();
  std::unordered_map<const Value*, Layout> known;
  for (size_t i = 0; i < block.parameters.size(); ++i) {
    if (inputs[i] != nullptr) known[block.parameters[i]] = *inputs[i];
  }
  for (const Node* node : block.nodes) {
    std::vector<const Layout*> operands, all;
    for (const Value* input : node->inputs) {
      const auto found = known.find(input);
      all.push_back(found != known.end() ? &found->second : nullptr);
      if (found != known.end()) operands.push_back(&found->second);
    }
    for (const Value* output : node->outputs) {
      if (!output->type.is_tensor()) continue;
      Layout layout;
      layout.dtype = output->type.dtype;
      if (const auto reduction = ops::reduction_of(*node)) {
        layout.sizes = sizes_of_result(*output, *reduction, *operands.front());
        layout.strides = strides_of_result(*node, layout.sizes, operands);
      } else if (ops::is_reindexing(*node)) {
        layout.sizes = reindexed_sizes(*node, all);
        layout.strides = reindexed_strides(*node, layout.sizes, all);
      } else {
        layout.sizes = broadcast_sizes(operands);
        layout.strides = elementwise_strides(layout.sizes, operands);
      }
      known[output] = std::move(layout);
    }
  }
  std::vector<Layout> results;
  for (const Value* result : block.results) results.push_back(known.at(result));
  return results;
}

}  // namespace janus::execute
