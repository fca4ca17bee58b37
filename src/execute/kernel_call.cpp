// Iteration spaces, strides and operands of native kernels.
#include "execute/kernel_call.h"

#include <algorithm>
#include <unordered_map>

#include "graph/op.h"

namespace janus::execute {

using graph::Node;
using graph::Value;

namespace {

/// Broadcasts `sizes` to hold `other` too.
void broadcast(std::vector<int64_t>& sizes, std::span<const int64_t> other) {
  if (other.size() > sizes.size()) sizes.insert(sizes.begin(), other.size() - sizes.size(), 1);
  const size_t missing = sizes.size() - other.size();
  for (size_t d = 0; d < other.size(); ++d) {
    int64_t& size = sizes[missing + d];
    TORCHJANUS_CHECK(size == other[d] || size == 1 || other[d] == 1, "fused: sizes ", size, " and ",
                     other[d], " do not broadcast");
    if (size == 1) size = other[d];
  }
}

std::vector<int64_t> broadcast_sizes(const std::vector<const Layout*>& operands) {
  std::vector<int64_t> sizes;
  for (const Layout* operand : operands) {
    if (operand != nullptr) broadcast(sizes, operand->sizes);
  }
  return sizes;
}

}  // namespace

std::vector<Layout> fused_layouts(const Node& fused, const std::vector<const Layout*>& inputs) {
  const graph::Block& block = *fused.blocks.front();
  std::unordered_map<const Value*, Layout> known;
  for (size_t i = 0; i < block.parameters.size(); ++i) {
    if (inputs[i] != nullptr) known[block.parameters[i]] = *inputs[i];
  }
  for (const Node* node : block.nodes) {
    std::vector<const Layout*> operands;
    for (const Value* input : node->inputs) {
      const auto found = known.find(input);
      if (found != known.end()) operands.push_back(&found->second);
    }
    for (const Value* output : node->outputs) {
      if (!output->type.is_tensor()) continue;
      Layout layout;
      layout.dtype = output->type.dtype;
      layout.sizes = broadcast_sizes(operands);
      layout.strides = elementwise_strides(layout.sizes, operands);
      known[output] = std::move(layout);
    }
  }
  std::vector<Layout> results;
  for (const Value* result : block.results) results.push_back(known.at(result));
  return results;
}

KernelCall::KernelCall(const Instruction& instruction, const std::vector<const Layout*>& inputs,
                       const std::vector<Layout>& outputs)
    : kernel_(instruction.kernel.get()), output_count_(outputs.size()) {
  sizes_ = broadcast_sizes(inputs);
  for (const Layout& output : outputs) broadcast(sizes_, output.sizes);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) {
      number_slots_.push_back(instruction.inputs[i]);
    } else {
      tensor_slots_.push_back(instruction.inputs[i]);
      strides_.push_back(broadcast_strides(*inputs[i], sizes_));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    TORCHJANUS_CHECK(outputs[i].sizes == sizes_, "fused: output ", outputs[i],
                     " does not fill the iteration space");
    tensor_slots_.push_back(instruction.outputs[i]);
    strides_.push_back(outputs[i].strides);
  }
  numbers_.resize(number_slots_.size());
  for (const std::vector<int64_t>& strides : strides_)
    tensors_.push_back({nullptr, strides.data()});
}

bool KernelCall::walks_as_outputs(size_t index) const {
  for (size_t d = 0; d < sizes_.size(); ++d) {
    for (size_t output = strides_.size() - output_count_; output < strides_.size(); ++output) {
      if (sizes_[d] != 1 && strides_[index][d] != strides_[output][d]) return false;
    }
  }
  return true;
}

void KernelCall::run(const Slot* slots) {
  for (size_t i = 0; i < number_slots_.size(); ++i) {
    const Slot& slot = slots[number_slots_[i]];
    switch (slot.kind()) {
      case Slot::Kind::boolean:
        numbers_[i].i64 = 0;
        numbers_[i].boolean = slot.boolean();
        break;
      case Slot::Kind::i64:
        numbers_[i].i64 = slot.i64();
        break;
      case Slot::Kind::f64:
        numbers_[i].f64 = slot.f64();
        break;
      default:
        TORCHJANUS_CHECK(false, "fused: a number operand is no number");
    }
  }
  kernel_->run({sizes_, tensors_, numbers_});
}

}  // namespace janus::execute
