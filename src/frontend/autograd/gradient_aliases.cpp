#include "frontend/autograd/gradient_aliases.h"

#include <algorithm>
#include <span>

#include "frontend/tensors/tensor.h"
#include "graph/owner.h"
#include "ops/list.h"

namespace janus::frontend {

namespace {

using graph::owner_of;
using passes::GradientMemory;

/// What a Function gave as a gradient.
struct Given {
  const graph::Value* identity;  ///< of its memory
  bool is_new;                   ///< nobody else has it, as far as is known
};

/// Most give what they computed; some the gradient that they were given, as it is.
Given given_by_function(const graph::Value* value) {
  value = owner_of(value);
  const graph::Node* const node = value->definition;
  const bool is_found =
      node == nullptr || node->op == &op::state || node->op->role == graph::Role::constant;
  if (is_found || node->op != &op::gradient) return {value, !is_found};
  const std::span<graph::Value* const> operands = node->inputs;
  const auto count = static_cast<size_t>(node->attributes.get<int64_t>("outputs"));
  graph::Value* const target = operands[2 * count + value->index];
  const GradientMemory memory =
      passes::memory_of_gradients(operands.first(count), std::span(&target, 1)).front();
  const graph::Value* const seed = memory.output ? operands[count + *memory.output] : nullptr;
  if (seed != nullptr && seed->type.is_tensor()) return {owner_of(seed), false};
  return {memory.of, memory.is_known && !memory.is_spread};
}

void relate_to_seed(const Seeds& seeds, size_t output, const std::shared_ptr<Tensor>& gradient) {
  if (output >= seeds.given.size()) {
    const graph::Value* const seed = seeds.values[output];
    gradient->uncertain_alias |= seed->type.is_tensor() && !given_by_function(seed).is_new;
    return;
  }
  const auto seed = shared_as<Tensor>(seeds.given[output]);
  if (seed == nullptr) return;
  const auto memory = memory_of(seed);
  relate_both_ways(gradient, memory);
  gradient->uncertain_alias |= memory != seed;  // a view may be one element seen many times
}

/// As a gradient may lie in the memory of any. False: there are none.
bool make_seeds_uncertain(const Seeds& seeds) {
  bool found = false;
  for (const Value& given : seeds.given)
    if (const auto seed = shared_as<Tensor>(given)) found = memory_of(seed)->uncertain_alias = true;
  return found;
}

/// The tensor and what else may be in its memory.
std::vector<std::shared_ptr<Tensor>> related(const std::shared_ptr<Tensor>& tensor) {
  std::vector<std::shared_ptr<Tensor>> all = {tensor};
  for (const PossibleAlias& alias : tensor->possible_aliases)
    if (auto other = alias.tensor.lock()) all.push_back(std::move(other));
  return all;
}

/// What tells the memory from another: the seed that it is, or whose gradient was made there.
const graph::Value* identity_of(const GradientMemory& memory, const Seeds& seeds) {
  if (!memory.output || !seeds.values[*memory.output]->type.is_tensor()) return memory.of;
  const graph::Value* const seed = seeds.values[*memory.output];
  return *memory.output < seeds.given.size() ? owner_of(seed) : given_by_function(seed).identity;
}

bool share(const GradientMemory& one, const GradientMemory& other, const Seeds& seeds) {
  return identity_of(one, seeds) == identity_of(other, seeds) && !are_apart(one, other);
}

}  // namespace

void relate_both_ways(const std::shared_ptr<Tensor>& one, const std::shared_ptr<Tensor>& other) {
  const auto all_of_one = related(one), all_of_other = related(other);
  for (const auto& a : all_of_one)
    for (const auto& b : all_of_other) {
      if (a == b) continue;
      a->possible_aliases.add({b, b->version});
      b->possible_aliases.add({a, a->version});
    }
}

GradientAliases::GradientAliases(const Seeds& seeds, const std::vector<graph::Value*>& targets)
    : seeds_(seeds),
      targets_(targets),
      memories_(passes::memory_of_gradients(seeds.outputs, targets)) {}

bool GradientAliases::is_new(size_t target) const {
  const GradientMemory& memory = memories_[target];
  return memory.is_known && !memory.is_spread && !memory.output && memory.of == targets_[target];
}

void GradientAliases::note(const std::vector<std::shared_ptr<Tensor>>& gradients) const {
  const auto unknown = std::ranges::count(memories_, false, &GradientMemory::is_known);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const GradientMemory& memory = memories_[i];
    const bool may_be_another =
        memory.is_known ? memory.of != targets_[i] && unknown > 0 : gradients.size() > 1;
    gradients[i]->uncertain_alias = memory.is_spread || may_be_another;
    if (!memory.is_known) gradients[i]->uncertain_alias |= make_seeds_uncertain(seeds_);
    if (memory.output) relate_to_seed(seeds_, *memory.output, gradients[i]);
    for (size_t other = 0; other < i; ++other)
      if (share(memory, memories_[other], seeds_)) relate_both_ways(gradients[i], gradients[other]);
  }
}

void GradientAliases::note_of_leaves(const std::vector<std::shared_ptr<Tensor>>& gradients) const {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const GradientMemory& memory = memories_[i];
    if (gradients[i] == nullptr || memory.is_spread) continue;
    if (memory.is_view && memory.output && *memory.output < seeds_.given.size())
      if (const auto seed = shared_as<Tensor>(seeds_.given[*memory.output]))
        relate_both_ways(gradients[i], memory_of(seed));
    for (size_t other = 0; other < i; ++other)
      if (gradients[other] != nullptr && !memories_[other].is_spread &&
          (memory.is_view || memories_[other].is_view) && share(memory, memories_[other], seeds_))
        relate_both_ways(gradients[i], gradients[other]);
  }
}

void note_handed_out(const Handed& handed, const std::shared_ptr<Tensor>& gradient) {
  for (const std::weak_ptr<Tensor>& each : handed)
    if (const auto tensor = each.lock()) relate_both_ways(gradient, tensor);
}

}  // namespace janus::frontend
