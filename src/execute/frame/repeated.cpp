// See repeated.h.
#include "execute/frame/repeated.h"

#include <algorithm>
#include <iterator>
#include "base/policy.h"

namespace janus::execute {

bool Repeated::fits(const Instruction& instruction, const Slot* slots,
                    const Library& library) const {
  if (known_ == nullptr) return false;
  auto known = known_->inputs.begin();
  for (uint32_t slot : instruction.inputs) {
    if (!slots[slot].is_tensor()) continue;
    if (known == known_->inputs.end() || !library.has_layout(slots[slot], *known)) return false;
    ++known;
  }
  return known == known_->inputs.end();
}

void Repeated::note(const Instruction& instruction, const Slot* slots, const Library& library,
                    std::vector<Layout> outputs) {
  known_ = std::make_unique<Known>();
  for (uint32_t slot : instruction.inputs) {
    if (slots[slot].is_tensor()) known_->inputs.push_back(library.layout(slots[slot]));
  }
  known_->inputs.shrink_to_fit();
  known_->outputs = std::move(outputs);
}

void Repeated::make_outputs(const Instruction& instruction, Slot* slots, Library& library,
                            bool repeats) {
  for (uint32_t slot : instruction.outputs) slots[slot].clear();
  const std::vector<Layout>& outputs = known_->outputs;
  if (!repeats) {
    for (size_t i = 0; i < outputs.size(); ++i)
      slots[instruction.outputs[i]] = library.allocate(outputs[i]);
    return;
  }
  known_->pools.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    slots[instruction.outputs[i]] = known_->pools[i].take(outputs[i], library);
}

void Repeated::forget_shared(const Library& library) {
  if (known_ == nullptr) return;
  for (TensorPool& pool : known_->pools) pool.forget_shared(library);
}

void Repeated::forget(const Slot& tensor) {
  if (known_ == nullptr) return;
  for (TensorPool& pool : known_->pools) pool.forget(tensor);
}

void Repeated::forget_large_tensors(int64_t largest) {
  if (known_ == nullptr) return;
  for (size_t i = 0; i < known_->pools.size(); ++i)
    if (known_->outputs[i].span_bytes() > largest) known_->pools[i] = TensorPool();
}

int64_t Repeated::bytes_held() const {
  if (known_ == nullptr) return 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < known_->pools.size(); ++i)
    bytes += static_cast<int64_t>(known_->pools[i].size()) *
             (known_->outputs[i].span_bytes() + policy::kBytesOfTensor);
  return bytes;
}

void Repeated::take_tensors(std::vector<TensorPool>& to) {
  if (known_ == nullptr) return;
  std::ranges::move(known_->pools, std::back_inserter(to));
  known_->pools.clear();
}

}  // namespace janus::execute
