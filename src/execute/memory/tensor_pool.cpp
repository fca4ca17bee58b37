// See tensor_pool.h.
#include "execute/memory/tensor_pool.h"

#include <algorithm>

#include "base/policy.h"

namespace janus::execute {

/// The one taken last if it is free again, else one of those that were made before the others.
const Slot& TensorPool::take(const Layout& layout, Library& library) {
  if (last_ < tensors_.size() && library.has_no_other_owner(tensors_[last_]))
    return tensors_[last_];
  for (size_t i = 1; i <= std::min(policy::kTriedTensors, tensors_.size()); ++i) {
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

void TensorPool::forget(const Slot& tensor) {
  std::erase_if(tensors_, [&](const Slot& kept) { return kept.tensor() == tensor.tensor(); });
}

}  // namespace janus::execute
