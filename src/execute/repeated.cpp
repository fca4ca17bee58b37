// See repeated.h.
#include "execute/repeated.h"

#include <algorithm>

namespace janus::execute {

namespace {

/// How many tensors are looked at before another one is made. A carried value is read while the
/// next one is written, and a third may still be on its way; what invocations keep for a backward
/// run is given up in the order in which it was made.
constexpr size_t tried_tensors = 3;

}  // namespace

bool Repeated::fits(const Instruction& instruction, const Slot* slots,
                    const Library& library) const {
  if (!is_noted_) return false;
  auto known = inputs_.begin();
  for (uint32_t slot : instruction.inputs) {
    if (!slots[slot].is_tensor()) continue;
    if (known == inputs_.end() || !library.has_layout(slots[slot], *known)) return false;
    ++known;
  }
  return known == inputs_.end();
}

void Repeated::note(const Instruction& instruction, const Slot* slots, const Library& library,
                    std::vector<Layout> outputs) {
  is_noted_ = true;
  inputs_.clear();
  for (uint32_t slot : instruction.inputs) {
    if (slots[slot].is_tensor()) inputs_.push_back(library.layout(slots[slot]));
  }
  outputs_ = std::move(outputs);
  kernel_call_.reset();
  view_.reset();
  forget_tensors();
}

void Repeated::make_outputs(const Instruction& instruction, Slot* slots, Library& library,
                            bool repeats) {
  for (uint32_t slot : instruction.outputs) slots[slot].clear();
  if (!repeats) {
    for (size_t i = 0; i < outputs_.size(); ++i)
      slots[instruction.outputs[i]] = library.allocate(outputs_[i]);
    return;
  }
  pools_.resize(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i)
    slots[instruction.outputs[i]] = pools_[i].take(outputs_[i], library);
}

/// The one taken last if it is free again, else one of those that were made before the others.
const Slot& TensorPool::take(const Layout& layout, Library& library) {
  if (last_ < tensors_.size() && library.has_no_other_owner(tensors_[last_]))
    return tensors_[last_];
  for (size_t i = 1; i <= std::min(tried_tensors, tensors_.size()); ++i) {
    const size_t next = (last_ + i) % tensors_.size();
    if (!library.has_no_other_owner(tensors_[next])) continue;
    last_ = next;
    return tensors_[next];
  }
  last_ = tensors_.size();
  tensors_.push_back(library.allocate(layout));
  return tensors_.back();
}

void TensorPool::forget_shared(const Library& library) {
  std::erase_if(tensors_, [&](const Slot& tensor) { return !library.has_no_other_owner(tensor); });
  last_ = tensors_.empty() ? 0 : tensors_.size() - 1;
}

void Repeated::forget_shared(const Library& library) {
  for (TensorPool& pool : pools_) pool.forget_shared(library);
}

void TensorPool::forget(const Slot& tensor) {
  std::erase_if(tensors_, [&](const Slot& kept) { return kept.tensor() == tensor.tensor(); });
}

void Repeated::forget(const Slot& tensor) {
  for (TensorPool& pool : pools_) pool.forget(tensor);
}

void Repeated::forget_large_tensors(int64_t largest) {
  for (size_t i = 0; i < pools_.size(); ++i)
    if (outputs_[i].span_bytes() > largest) pools_[i] = TensorPool();
}

void Repeated::forget_tensors() { pools_.clear(); }

}  // namespace janus::execute
