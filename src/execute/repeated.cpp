// See repeated.h.
#include "execute/repeated.h"

#include <algorithm>

namespace janus::execute {

namespace {

/// A carried value is read while the next one is written, and a third may still be on its way.
constexpr size_t kept_tensors = 3;

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
  forget_tensors();
}

void Repeated::make_outputs(const Instruction& instruction, Slot* slots, Library& library,
                            bool in_loop) {
  for (uint32_t slot : instruction.outputs) slots[slot].clear();
  if (in_loop) tensors_.resize(outputs_.size() * kept_tensors);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Slot& output = slots[instruction.outputs[i]];
    if (in_loop) {
      const auto first = tensors_.begin() + static_cast<ptrdiff_t>(i * kept_tensors);
      const auto last = first + kept_tensors;
      const auto unused = std::find_if(first, last, [&](const Slot& tensor) {
        return tensor.is_tensor() && library.has_no_other_owner(tensor);
      });
      if (unused != last) {
        output = *unused;
        continue;
      }
    }
    output = library.allocate(outputs_[i]);
    if (in_loop) tensors_[i * kept_tensors + next_] = output;
  }
  next_ = (next_ + 1) % kept_tensors;
}

void Repeated::forget_tensors() { tensors_.clear(); }

}  // namespace janus::execute
