// See instance.h.
#include "execute/program/instance.h"

#include <algorithm>
#include <utility>

#include "base/policy.h"
#include "base/steady_time.h"
#include "execute/plan/plan_text.h"
#include "execute/plan/planned_run.h"
#include "execute/plan/planner.h"
#include "execute/run/boundary.h"
#include "execute/run/learning.h"
#include "execute/run/ordinary_run.h"
#include "graph/run_time_symbols.h"

namespace janus::execute {

Instance::Instance(const Code& code, const Symbols& symbols, Library& library, const Heap* heap,
                   std::span<const Slot> inputs, std::span<const Slot> cells, bool may_plan,
                   bool is_first)
    : may_plan(may_plan),
      code_(code),
      symbols_(symbols),
      library_(library),
      heap_(heap),
      runs_to_clear_up_(is_first ? 2 : 0) {
  for (const Slot& slot : inputs) expected_.expect(slot, library);
  for (const size_t input : symbols.layout_inputs())
    expected_.expect_number(input, inputs[input].i64());
  for (const Slot& slot : cells) expected_.expect(slot, library);
  frame_.symbols = symbols.values(inputs, cells, library);
  moves_ = !symbols.parts().empty() && symbols.first_elements(frame_.symbols);
  for (const size_t input : symbols.moving_inputs())
    moves_ ? bound_numbers_.push_back(inputs[input].i64())
           : expected_.expect_number(input, inputs[input].i64());
  bind_operations();
  if (code.random) random_ = library.random_state();
}

void Instance::bind_operations() {
  for (const graph::Node* node : code_.operations) {
    // What depends on a size that only the run knows is bound anew at each call.
    const bool bound = !graph::is_parameterised_by(*node, code_.run_time_symbols);
    frame_.operations.push_back(bound ? library_.bind(*node, frame_.symbols.lookup()) : nullptr);
  }
  for (const graph::Node* node : code_.heap_reads)
    frame_.heap_reads.push_back(heap_->bind(*node, frame_.symbols.lookup()));
}

bool Instance::accepts(std::span<const Slot> inputs, std::span<const Slot> cells) const {
  return expected_.accept(inputs, cells, library_) &&
         (!moves_ || has_bound_numbers(inputs) ||
          symbols_.first_elements(symbols_.values(inputs, cells, library_)));
}

void Instance::run(std::span<const Slot> inputs, std::span<const Slot> cells,
                   std::span<Slot> results, std::span<Slot> rebound, int64_t deepest_call,
                   Findings* findings) {
  frame_.failure.reset();
  frame_.is_certain = false;
  frame_.deepest_call = deepest_call;
  frame_.findings = findings;
  frame_.written.clear();
  timing_.seconds = 0;
  make_frame();
  if (symbols_.varies()) frame_.symbols = symbols_.values(inputs, cells, library_);
  if (moves_) move(inputs);
  if (random_) random_->save();
  enter(code_, frame_, inputs, cells);
  if (!may_plan || !learned_) {
    run_ordinarily(cells, results, rebound);
  } else {
    run_planned(results, rebound);
  }
  if (frame_.failure) return;
  set_apart(library_, results);
  if (findings != nullptr && !findings->is_closed()) {
    if (random_) findings->random = random_->copy();
    findings->close();
  }
}

Instance::Spare Instance::rest() {
  Spare spare;
  if (plan_ && bytes_held() <= policy::kMostHeldAtRest) return spare;
  if (plan_) {
    for (Repeated& repeated : frame_.repeated) repeated.take_tensors(spare.tensors);
    spare.rows = frame_.rows.rest(spare.tensors);
    return spare;
  }
  spare.slots.swap(frame_.slots);
  spare.repeated.swap(frame_.repeated);
  spare.rows = std::exchange(frame_.rows, Rows());
  return spare;
}

std::optional<Failure> Instance::leave(std::optional<Failure> thrown) {
  if (arena_ != nullptr) arena_->let_go();
  if (!frame_.failure) frame_.failure = std::move(thrown);
  if (frame_.failure && !frame_.failure->span.known() && frame_.running != nullptr)
    frame_.failure->span = frame_.running->span;
  frame_.running = nullptr;
  if (frame_.failure && frame_.is_certain) frame_.failure->kind = Failure::Kind::broken;
  if (frame_.failure && random_) random_->restore();
  frame_.activations.clear();
  frame_.rows.clear();
  if (plan_) {
    clear_transient(*plan_, frame_);
  } else {
    make_frame_slots();
  }
  for (Repeated& repeated : frame_.repeated) repeated.forget_shared(library_);
  give_back_memory();
  return std::move(frame_.failure);
}

std::string Instance::describe() const {
  return plan_ ? execute::describe(*plan_) : "not planned yet\n";
}

bool Instance::has_bound_numbers(std::span<const Slot> inputs) const {
  const std::vector<size_t>& moving = symbols_.moving_inputs();
  for (size_t i = 0; i < moving.size(); ++i)
    if (inputs[moving[i]].i64() != bound_numbers_[i]) return false;
  return true;
}

/// Parts begin where this run's numbers say. A plan moves views by itself.
void Instance::move(std::span<const Slot> inputs) {
  frame_.first_elements = symbols_.first_elements(frame_.symbols).value();
  if (has_bound_numbers(inputs)) return;
  for (const Instruction& instruction : code_.body.instructions) {
    if (instruction.moving_part == SIZE_MAX) continue;
    if (plan_ && gives_views(instruction, frame_.learned)) continue;
    frame_.operations[instruction.operation] =
        library_.bind(*instruction.node, frame_.symbols.lookup());
  }
  const std::vector<size_t>& moving = symbols_.moving_inputs();
  for (size_t i = 0; i < moving.size(); ++i) bound_numbers_[i] = inputs[moving[i]].i64();
}

int64_t Instance::bytes_held() const {
  int64_t bytes = frame_.rows.bytes_held();
  for (const Repeated& repeated : frame_.repeated) bytes += repeated.bytes_held();
  return bytes;
}

/// As far as it isn't there.
void Instance::make_frame() {
  if (frame_.repeated.empty()) frame_.repeated.resize(code_.repeated_count);
  if (frame_.slots.empty()) make_frame_slots();
}

void Instance::make_frame_slots() {
  frame_.slots.clear();
  frame_.slots.resize(code_.slot_count + code_.cells.size());
  for (const Constant& constant : code_.constants) frame_.slots[constant.slot] = constant.value;
  for (const auto& [slot, number] : code_.objects) frame_.slots[slot] = heap_->object(number);
}

bool Instance::timed(auto& run, auto&... arguments) {
  timing_.started = steady_seconds();
  const bool ran = run.run(arguments...);
  timing_.seconds = steady_seconds() - timing_.started;
  return ran;
}

void Instance::run_ordinarily(std::span<const Slot> cells, std::span<Slot> results,
                              std::span<Slot> rebound) {
  if (may_plan) {
    frame_.learned.clear();
    learn_operands(code_, frame_, library_);
  }
  OrdinaryRun run(code_, library_, frame_, may_plan);
  const bool ran = may_plan ? run.run() : timed(run);  // a plan's first run prepares much
  if (!ran || !run.materialise_results()) return;
  finish(code_, library_, frame_, cells, results, rebound);
  learned_ = true;
}

/// What the program's first run and compiling before it left, then what the plan has replaced of
/// that, and whatever was tried since. What the first runs of other sizes leave is used again:
/// where sizes are often new ones, to get all pages anew took half of the time.
void Instance::give_back_memory() {
  if (frame_.failure || (runs_to_clear_up_ == 0 && !library_.has_compared_ways())) return;
  library_.give_back_free_memory();
  runs_to_clear_up_ = std::max(0, runs_to_clear_up_ - 1);
}

void Instance::run_planned(std::span<Slot> results, std::span<Slot> rebound) {
  if (!plan_) plan();
  PlannedRun run(code_, *plan_, library_, frame_);
  if (timed(run, rebound) && OrdinaryRun(code_, library_, frame_, false).materialise_results())
    run.give(results, rebound);
}

void Instance::plan() {
  learned_ = false;  // should that fail, the next run learns anew
  if (arena_ != nullptr) arena_->let_go();
  const auto find_arena = [&](int64_t bytes) -> char* {
    if (bytes == 0) return nullptr;
    arena_ = SharedArena::hold_one(bytes);
    return arena_->data();
  };
  plan_ = std::make_unique<Plan>(make_plan(code_, library_, frame_, find_arena));
  learned_ = true;
  // The first run's tensors in blocks are the plan's now; its sides were rehearsed.
  frame_.repeated = std::vector<Repeated>(code_.repeated_count);
  if (random_) random_->restore();
}

}  // namespace janus::execute
