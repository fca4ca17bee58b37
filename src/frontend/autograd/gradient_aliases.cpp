#include "frontend/autograd/gradient_aliases.h"

#include <algorithm>
#include <optional>
#include <span>

#include "frontend/tensors/tensor.h"
#include "graph/owner.h"
#include "ops/list.h"
#include "passes/reach/reachability.h"

namespace janus::frontend {

namespace {

using graph::owner_of;
using passes::GradientMemory;

/// What a Function gave as a gradient.
struct Given {
  const graph::Value* identity;  ///< of its memory
  bool is_new;                   ///< nobody else has it, as far as is known
  bool is_known = true;          ///< the identity is: it isn't that of other memory
  bool is_view = false;          ///< a tensor of its own in that memory
};

/// Whether a tensor of the program that is a seed has that memory.
bool is_seed_of_program(const Seeds& seeds, const graph::Value* identity) {
  for (size_t i = 0; i < seeds.given.size(); ++i)
    if (as<Tensor>(seeds.given[i]) != nullptr && owner_of(seeds.values[i]) == identity) return true;
  return false;
}

/// Most give what they computed; some the gradient that they were given, as it is: that may be what
/// another one gave, or a seed.
Given given_by_function(const Seeds& seeds, const graph::Value* value) {
  Given given{.identity = owner_of(value), .is_new = true, .is_view = owner_of(value) != value};
  while (true) {
    const graph::Node* const node = given.identity->definition;
    const bool is_found =
        node == nullptr || node->op == &op::state || node->op->role == graph::Role::constant;
    given.is_new &= !is_found;
    if (is_found || node->op != &op::gradient || is_seed_of_program(seeds, given.identity))
      return given;
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

/// What a gradient is that is the seed of that output: one that a Function gave, if it is none of
/// the program's.
std::optional<Given> from_function(const Seeds& seeds, std::optional<size_t> output) {
  if (!output || *output < seeds.given.size() || !seeds.values[*output]->type.is_tensor())
    return std::nullopt;
  return given_by_function(seeds, seeds.values[*output]);
}

/// The tensors of the program in whose memory the seed of that output lies.
std::vector<std::shared_ptr<Tensor>> tensors_of_seed(const Seeds& seeds, size_t output) {
  std::vector<std::shared_ptr<Tensor>> tensors;
  const auto add = [&](size_t i) {
    if (const auto seed = shared_as<Tensor>(seeds.given[i])) tensors.push_back(memory_of(seed));
  };
  if (output < seeds.given.size()) {
    add(output);
  } else if (const auto given = from_function(seeds, output)) {
    for (size_t i = 0; i < seeds.given.size(); ++i)
      if (!given->is_known || owner_of(seeds.values[i]) == given->identity) add(i);
  }
  return tensors;
}

void relate_to_seed(const Seeds& seeds, size_t output, const std::shared_ptr<Tensor>& gradient) {
  for (const auto& tensor : tensors_of_seed(seeds, output)) {
    relate_both_ways(gradient, tensor);
    // A view may be one element seen many times.
    gradient->uncertain_alias |=
        output < seeds.given.size() && tensor != shared_as<Tensor>(seeds.given[output]);
  }
  if (const auto given = from_function(seeds, output)) gradient->uncertain_alias |= !given->is_new;
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
  if (const auto given = from_function(seeds, memory.output)) return given->identity;
  if (!memory.output || !seeds.values[*memory.output]->type.is_tensor()) return memory.of;
  return owner_of(seeds.values[*memory.output]);
}

bool share(const GradientMemory& one, const GradientMemory& other, const Seeds& seeds) {
  return identity_of(one, seeds) == identity_of(other, seeds) && !are_apart(one, other);
}

bool is_known(const GradientMemory& memory, const Seeds& seeds) {
  const auto given = from_function(seeds, memory.output);
  return memory.is_known && (!given || given->is_known);
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

/// Whether it is a tensor of its own in memory that others have.
bool is_view(const GradientMemory& memory, const Seeds& seeds) {
  const auto given = from_function(seeds, memory.output);
  return memory.is_view || (given && given->is_view);
}

/// Whether a gradient may be handed on from the one value to the other, as far as is known: what a
/// Function does with it isn't.
bool may_lead_to(const graph::Value* from, const graph::Value* to, const Seeds& seeds) {
  if (from == to) return true;
  if (from->definition == nullptr) return false;
  graph::Value* const start = from->definition->outputs[from->index];
  const passes::Reached reached = passes::reached_from(std::span(&start, 1), passes::Paths::any);
  const bool has_functions = seeds.outputs.size() > seeds.given.size();
  return (has_functions && reached.size() > 1) ||
         std::ranges::any_of(reached, [&](const graph::Value* value) { return value == to; });
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

bool GradientAliases::may_be_of_unknown(size_t target) const {
  const GradientMemory& memory = memories_[target];
  return std::ranges::any_of(memories_, [&](const GradientMemory& other) {
    if (&other == &memory || other.is_known) return false;
    return memory.of != targets_[target] || may_lead_to(memory.of, other.of, seeds_);
  });
}

void GradientAliases::note(const std::vector<std::shared_ptr<Tensor>>& gradients) const {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const GradientMemory& memory = memories_[i];
    const bool may_be_another = memory.is_known ? may_be_of_unknown(i) : gradients.size() > 1;
    gradients[i]->uncertain_alias = memory.is_spread || may_be_another;
    if (!memory.is_known) gradients[i]->uncertain_alias |= make_seeds_uncertain(seeds_);
    if (memory.output) relate_to_seed(seeds_, *memory.output, gradients[i]);
    for (size_t other = 0; other < i; ++other)
      if (share(memory, memories_[other], seeds_)) relate_both_ways(gradients[i], gradients[other]);
  }
}

bool GradientAliases::is_copied_to_leaf(size_t target) const {
  const GradientMemory& memory = memories_[target];
  return memory.is_known && memory.is_spread && !memory.is_part_of_spread;
}

bool GradientAliases::may_share_as_leaves(size_t one, size_t other) const {
  const GradientMemory &first = memories_[one], &second = memories_[other];
  const bool knows_first = is_known(first, seeds_), knows_second = is_known(second, seeds_);
  if ((!knows_first && !may_be_view_of_unknown(first)) ||
      (!knows_second && !may_be_view_of_unknown(second)))
    return false;
  // One operator gives its operands gradients that are apart.
  if (!knows_first && !knows_second)
    return first.lost_in != second.lost_in || first.lost_in == nullptr;
  if (!knows_first) return may_lead_to(second.of, first.of, seeds_);
  if (!knows_second) return may_lead_to(first.of, second.of, seeds_);
  return (is_view(first, seeds_) || is_view(second, seeds_)) && share(first, second, seeds_);
}

void GradientAliases::note_of_leaves(const std::vector<std::shared_ptr<Tensor>>& gradients) const {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const GradientMemory& memory = memories_[i];
    if (gradients[i] == nullptr || is_copied_to_leaf(i)) continue;
    const bool knows = is_known(memory, seeds_);
    for (size_t output = 0; output < seeds_.outputs.size(); ++output)
      if (knows ? is_view(memory, seeds_) && memory.output == output
                : may_be_view_of_unknown(memory))
        for (const auto& seed : tensors_of_seed(seeds_, output))
          relate_both_ways(gradients[i], seed);
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
