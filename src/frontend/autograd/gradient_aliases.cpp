#include "frontend/autograd/gradient_aliases.h"

#include <algorithm>
#include <span>

#include "frontend/tensors/tensor.h"
#include "graph/owner.h"
#include "ops/list.h"
#include "passes/reach/reachability.h"

namespace janus::frontend {

namespace {

using graph::owner_of;
using passes::GradientMemory;

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

/// Whether the gradient is a view of another one where it can't be followed, as far as the shapes
/// say: all of it, or a part along one dimension.
bool may_be_view_of_unknown(const GradientMemory& memory) {
  if (memory.lost_in == nullptr) return true;
  const graph::Shape& shape = memory.of->type.shape;
  return std::ranges::any_of(memory.lost_in->outputs, [&](const graph::Value* result) {
    if (!graph::carries_gradient(result->type)) return false;
    const graph::Shape& whole = result->type.shape;
    if (graph::element_count(whole) == graph::element_count(shape)) return true;
    size_t different = 0;
    for (size_t i = 0; i < std::min(whole.size(), shape.size()); ++i)
      different += whole[i] == shape[i] ? 0 : 1;
    return whole.size() == shape.size() && different == 1;
  });
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

bool GradientAliases::is_seed_of_program(const graph::Value* identity) const {
  for (size_t i = 0; i < seeds_.given.size(); ++i)
    if (as<Tensor>(seeds_.given[i]) != nullptr && owner_of(seeds_.values[i]) == identity)
      return true;
  return false;
}

GradientAliases::Given GradientAliases::given_by_function(const graph::Value* value) const {
  Given given{.identity = owner_of(value), .is_new = true, .is_view = owner_of(value) != value};
  while (true) {
    const graph::Node* const node = given.identity->definition;
    const bool is_found =
        node == nullptr || node->op == &op::state || node->op->role == graph::Role::constant;
    given.is_new &= !is_found;
    if (is_found || node->op != &op::gradient || is_seed_of_program(given.identity)) return given;
    const std::span<graph::Value* const> operands = node->inputs;
    const auto count = static_cast<size_t>(node->attributes.get<int64_t>("outputs"));
    graph::Value* const target = operands[2 * count + given.identity->index];
    const GradientMemory memory =
        passes::memory_of_gradients(operands.first(count), std::span(&target, 1)).front();
    given.is_known = memory.is_known;
    given.is_view |= memory.is_view;
    const graph::Value* const seed = memory.output ? operands[count + *memory.output] : nullptr;
    given.is_new &= seed == nullptr && memory.is_known && !memory.is_spread;
    given.identity = memory.of;
    if (seed == nullptr || !seed->type.is_tensor()) return given;
    given.identity = owner_of(seed);
    given.is_view |= given.identity != seed;
  }
}

const GradientAliases::Given* GradientAliases::from_function(std::optional<size_t> output) const {
  if (!output || *output < seeds_.given.size() || !seeds_.values[*output]->type.is_tensor())
    return nullptr;
  auto known = given_.find(*output);
  if (known == given_.end())
    known = given_.emplace(*output, given_by_function(seeds_.values[*output])).first;
  return &known->second;
}

std::vector<std::shared_ptr<Tensor>> GradientAliases::tensors_of_seed(size_t output) const {
  std::vector<std::shared_ptr<Tensor>> tensors;
  const auto add = [&](size_t i) {
    if (const auto seed = shared_as<Tensor>(seeds_.given[i])) tensors.push_back(memory_of(seed));
  };
  if (output < seeds_.given.size()) {
    add(output);
  } else if (const Given* given = from_function(output)) {
    for (size_t i = 0; i < seeds_.given.size(); ++i)
      if (!given->is_known || owner_of(seeds_.values[i]) == given->identity) add(i);
  }
  return tensors;
}

void GradientAliases::relate_to_seed(size_t output, const std::shared_ptr<Tensor>& gradient) const {
  for (const auto& tensor : tensors_of_seed(output)) {
    relate_both_ways(gradient, tensor);
    // A view may be one element seen many times.
    gradient->uncertain_alias |=
        output < seeds_.given.size() && tensor != shared_as<Tensor>(seeds_.given[output]);
  }
  if (const Given* given = from_function(output)) gradient->uncertain_alias |= !given->is_new;
}

const graph::Value* GradientAliases::identity_of(const GradientMemory& memory) const {
  if (const Given* given = from_function(memory.output)) return given->identity;
  if (!memory.output || !seeds_.values[*memory.output]->type.is_tensor()) return memory.of;
  return owner_of(seeds_.values[*memory.output]);
}

bool GradientAliases::share(const GradientMemory& one, const GradientMemory& other) const {
  return identity_of(one) == identity_of(other) && !are_apart(one, other);
}

bool GradientAliases::is_known(const GradientMemory& memory) const {
  const Given* given = from_function(memory.output);
  return memory.is_known && (given == nullptr || given->is_known);
}

bool GradientAliases::is_view(const GradientMemory& memory) const {
  const Given* given = from_function(memory.output);
  return memory.is_view || (given != nullptr && given->is_view);
}

bool GradientAliases::may_lead_to(const graph::Value* from, const graph::Value* to) const {
  if (from == to) return true;
  if (from->definition == nullptr) return false;
  const auto [found, is_new] = reached_.try_emplace(from);
  passes::Reached& reached = found->second;
  graph::Value* const start = from->definition->outputs[from->index];
  if (is_new) reached = passes::reached_from(std::span(&start, 1), passes::Paths::any);
  const bool has_functions = seeds_.outputs.size() > seeds_.given.size();
  return (has_functions && reached.size() > 1) || std::ranges::find(reached, to) != reached.end();
}

bool GradientAliases::is_new(size_t target) const {
  const GradientMemory& memory = memories_[target];
  return memory.is_known && !memory.is_spread && !memory.output && memory.of == targets_[target];
}

bool GradientAliases::may_be_of_unknown(size_t target) const {
  const GradientMemory& memory = memories_[target];
  return std::ranges::any_of(memories_, [&](const GradientMemory& other) {
    if (&other == &memory || other.is_known) return false;
    return memory.of != targets_[target] || may_lead_to(memory.of, other.of);
  });
}

void GradientAliases::note(const std::vector<std::shared_ptr<Tensor>>& gradients) const {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const GradientMemory& memory = memories_[i];
    const bool may_be_another = memory.is_known ? may_be_of_unknown(i) : gradients.size() > 1;
    gradients[i]->uncertain_alias = memory.is_spread || may_be_another;
    if (!memory.is_known) gradients[i]->uncertain_alias |= make_seeds_uncertain(seeds_);
    if (memory.output) relate_to_seed(*memory.output, gradients[i]);
    for (size_t other = 0; other < i; ++other)
      if (share(memory, memories_[other])) relate_both_ways(gradients[i], gradients[other]);
  }
}

bool GradientAliases::is_copied_to_leaf(size_t target) const {
  const GradientMemory& memory = memories_[target];
  return memory.is_known && memory.is_spread && !memory.is_part_of_spread;
}

bool GradientAliases::may_share_as_leaves(size_t one, size_t other) const {
  const GradientMemory &first = memories_[one], &second = memories_[other];
  const bool knows_first = is_known(first), knows_second = is_known(second);
  if ((!knows_first && !may_be_view_of_unknown(first)) ||
      (!knows_second && !may_be_view_of_unknown(second)))
    return false;
  // One operator gives its operands gradients that are apart.
  if (!knows_first && !knows_second)
    return first.lost_in != second.lost_in || first.lost_in == nullptr;
  if (!knows_first) return may_lead_to(second.of, first.of);
  if (!knows_second) return may_lead_to(first.of, second.of);
  return (is_view(first) || is_view(second)) && share(first, second);
}

void GradientAliases::note_of_leaves(const std::vector<std::shared_ptr<Tensor>>& gradients) const {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const GradientMemory& memory = memories_[i];
    if (gradients[i] == nullptr || is_copied_to_leaf(i)) continue;
    const bool knows = is_known(memory);
    for (size_t output = 0; output < seeds_.outputs.size(); ++output)
      if (knows ? is_view(memory) && memory.output == output : may_be_view_of_unknown(memory))
        for (const auto& seed : tensors_of_seed(output)) relate_both_ways(gradients[i], seed);
    for (size_t other = 0; other < i; ++other)
      if (gradients[other] != nullptr && !is_copied_to_leaf(other) && may_share_as_leaves(i, other))
        relate_both_ways(gradients[i], gradients[other]);
  }
}

void note_handed_out(const Handed& handed, const std::shared_ptr<Tensor>& gradient) {
  for (const std::weak_ptr<Tensor>& each : handed)
    if (const auto tensor = each.lock()) relate_both_ways(gradient, tensor);
}

}  // namespace janus::frontend
