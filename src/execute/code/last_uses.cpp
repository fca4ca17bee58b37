// See last_uses.h.
#include "execute/code/last_uses.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "graph/functions.h"

namespace janus::execute {

using graph::Node;

namespace {

/// Which operands nothing needs after the instruction.
void mark_moved(Instruction& instruction) {
  instruction.moved_inputs.clear();
  for (auto slot = instruction.inputs.begin(); slot != instruction.inputs.end(); ++slot) {
    const auto& dead = instruction.dead;
    const bool again =
        std::find(slot + 1, instruction.inputs.end(), *slot) != instruction.inputs.end();
    instruction.moved_inputs.push_back(!again &&
                                       std::find(dead.begin(), dead.end(), *slot) != dead.end());
  }
}

using Slots = std::set<uint32_t>;

void collect_own(const Sequence& sequence, Slots& own) {
  own.insert(sequence.parameters.begin(), sequence.parameters.end());
  for (const Instruction& instruction : sequence.instructions) {
    own.insert(instruction.outputs.begin(), instruction.outputs.end());
    for (const Sequence& block : instruction.blocks) collect_own(block, own);
  }
}

/// Which results of a block are handed over, as nobody needs them behind it.
void mark_given(Sequence& block, const Slots& own, const Slots& behind) {
  for (size_t i = 0; i < block.results.size(); ++i) {
    const auto slot = block.results.begin() + static_cast<ptrdiff_t>(i);
    const bool again = std::find(slot + 1, block.results.end(), *slot) != block.results.end();
    block.own_results[i] = !again && own.contains(*slot) && !behind.contains(*slot);
  }
}

bool runs(const Node& call, const Node& function) {
  const auto functions = graph::functions_run_by(call);
  return std::find(functions.begin(), functions.end(), &function) != functions.end();
}

/// `live`: what is needed behind the sequence.
void mark_lives(const Node& function, Sequence& sequence, const Slots& own, Slots live) {
  for (size_t n = sequence.instructions.size(); n-- > 0;) {
    Instruction& instruction = sequence.instructions[n];
    Slots touched(instruction.used.begin(), instruction.used.end());
    touched.insert(instruction.outputs.begin(), instruction.outputs.end());
    instruction.dead.clear();
    for (const uint32_t slot : touched)
      if (own.contains(slot) && !live.contains(slot)) instruction.dead.push_back(slot);
    mark_moved(instruction);
    for (const uint32_t slot : instruction.outputs) live.erase(slot);
    if (instruction.action == Action::call && runs(*instruction.node, function))
      std::set_intersection(live.begin(), live.end(), own.begin(), own.end(),
                            std::back_inserter(instruction.saved));
    for (Sequence& block : instruction.blocks) {
      Slots behind = live;
      if (instruction.action == Action::loop)
        behind.insert(instruction.used.begin(), instruction.used.end());
      mark_given(block, own, behind);
      behind.insert(block.results.begin(), block.results.end());
      mark_lives(function, block, own, std::move(behind));
    }
    live.insert(instruction.used.begin(), instruction.used.end());
  }
}

}  // namespace

void mark_uses(Sequence& sequence) {
  std::unordered_set<uint32_t> used(sequence.results.begin(), sequence.results.end());
  std::unordered_set<uint32_t> made(sequence.parameters.begin(), sequence.parameters.end());
  for (const Instruction& instruction : sequence.instructions) {
    used.insert(instruction.used.begin(), instruction.used.end());
    made.insert(instruction.outputs.begin(), instruction.outputs.end());
  }
  for (uint32_t slot : sequence.parameters) sequence.used_parameters.push_back(used.contains(slot));
  for (auto slot = sequence.results.begin(); slot != sequence.results.end(); ++slot) {
    const bool again = std::find(slot + 1, sequence.results.end(), *slot) != sequence.results.end();
    sequence.own_results.push_back(!again && made.contains(*slot));
  }
}

void mark_dead(Sequence& sequence, const std::unordered_set<uint32_t>& kept) {
  std::unordered_set<uint32_t> own;
  if (!sequence.used_parameters.empty())
    own.insert(sequence.parameters.begin(), sequence.parameters.end());
  for (const Instruction& instruction : sequence.instructions) {
    own.insert(instruction.outputs.begin(), instruction.outputs.end());
  }
  std::unordered_set<uint32_t> seen;
  for (size_t n = sequence.instructions.size(); n-- > 0;) {
    Instruction& instruction = sequence.instructions[n];
    const auto visit = [&](uint32_t slot) {
      if (!own.contains(slot) || kept.contains(slot) || !seen.insert(slot).second) return;
      instruction.dead.push_back(slot);
    };
    std::for_each(instruction.used.begin(), instruction.used.end(), visit);
    std::for_each(instruction.outputs.begin(), instruction.outputs.end(), visit);
    mark_moved(instruction);
  }
}

void mark_lives(const Node& function, Sequence& sequence) {
  Slots own;
  collect_own(sequence, own);
  mark_lives(function, sequence, own, {sequence.results.begin(), sequence.results.end()});
}

}  // namespace janus::execute
