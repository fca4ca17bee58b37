// A program: code that all runs share, and a pool of instances, one for each set of sizes and for
// each run that goes on at the same time.
//
// The first run of an instance is ordinary and learns; from the second one on it follows a plan.
// Where what a program sees lies in one way in one run and in another way in the next, no instance
// has a plan any more.
#include "execute/program.h"

#include <algorithm>
#include <mutex>

#include "base/fork_safe_mutex.h"
#include "base/steady_time.h"
#include "execute/code.h"
#include "execute/frame.h"
#include "execute/learning.h"
#include "execute/library.h"
#include "execute/lifetimes.h"
#include "execute/list_call.h"
#include "execute/ordinary_run.h"
#include "execute/plan.h"
#include "execute/shared_arena.h"
#include "execute/symbols.h"
#include "graph/run_time_symbols.h"

namespace janus::execute {

void Operation::run_into(const Operands&) {
  TORCHJANUS_CHECK(false, "operation: it can't run into given tensors");
}

void Operation::look(const Operands&) {
  TORCHJANUS_CHECK(false, "operation: it can't tell whether it fails");
}

namespace {

/// Of a program, as many instances as have so many instructions together are kept, one for each
/// combination of sizes: to learn and plan anew takes longer than a run.
constexpr size_t most_idle_instructions = size_t{1} << 15;
constexpr size_t least_idle_instances = 16, most_idle_instances = 256;
/// To make fewer bytes of tensors anew takes a part of a short run that is worth more than they
/// are.
constexpr int64_t most_held_at_rest = 64 << 10;
/// Programs of fewer instructions keep Python's lock: giving it up costs more than they take.
constexpr size_t least_unlocked_instructions = 8;

/// Guards the instances of all programs, for a moment each time.
std::mutex& instances_mutex() { return fork_safe_mutex<Program>(); }

/// What an instance assumes of one operand. All numbers of all operands stand in one array: they
/// are compared at each run, when what they lie in has long left the caches.
struct Expected {
  enum class Kind : uint8_t { anything, tensor, number };
  Kind kind = Kind::anything;
  graph::DType dtype = graph::DType::f32;
  uint16_t rank = 0;
  uint32_t first = 0;  ///< where its sizes and then its strides stand, or the number
};

class Instance {
 public:
  const bool may_plan;

  Instance(const Code& code, const Symbols& symbols, Library& library, const Heap* heap,
           std::span<const Slot> inputs, std::span<const Slot> cells, bool may_plan, bool is_first)
      : may_plan(may_plan),
        code_(code),
        library_(library),
        heap_(heap),
        runs_to_clear_up_(is_first ? 2 : 0) {
    for (const Slot& slot : inputs) expect(slot);
    for (const size_t input : symbols.layout_inputs()) expect_number(input, inputs);
    for (const Slot& slot : cells) expect(slot);
    frame_.symbols = symbols.values(inputs, cells, library);
    moves_ = !symbols.parts().empty() && symbols.first_elements(frame_.symbols);
    for (const size_t input : symbols.moving_inputs())
      moves_ ? bound_numbers_.push_back(inputs[input].i64()) : expect_number(input, inputs);
    for (const graph::Node* node : code.operations) {
      // What depends on a size that only the run knows is bound anew at each call.
      const bool bound = !graph::is_parameterised_by(*node, code.run_time_symbols);
      frame_.operations.push_back(bound ? library.bind(*node, frame_.symbols.lookup()) : nullptr);
    }
    for (const graph::Node* node : code.heap_reads) {
      frame_.heap_reads.push_back(heap->bind(*node, frame_.symbols.lookup()));
    }
    if (code.random) random_ = library.random_state();
  }

  bool accepts(const Symbols& symbols, std::span<const Slot> inputs,
               std::span<const Slot> cells) const {
    const Expected* expected = expected_.data();
    const auto fits = [&](const Slot& slot) { return accepts(*expected++, slot); };
    return std::all_of(inputs.begin(), inputs.end(), fits) &&
           std::all_of(cells.begin(), cells.end(), fits) &&
           (!moves_ || has_bound_numbers(symbols, inputs) ||
            symbols.first_elements(symbols.values(inputs, cells, library_)));
  }

  void run(const Symbols& symbols, std::span<const Slot> inputs, std::span<const Slot> cells,
           std::span<Slot> results, std::span<Slot> rebound, int64_t deepest_call,
           Findings* findings) {
    frame_.failure.reset();
    frame_.is_certain = false;
    frame_.deepest_call = deepest_call;
    frame_.findings = findings;
    frame_.written.clear();
    timing_.seconds = 0;
    make_frame();
    if (symbols.varies()) frame_.symbols = symbols.values(inputs, cells, library_);
    if (moves_) move(symbols, inputs);
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

  /// What an instance can do without between its runs.
  struct Spare {
    std::vector<Slot> slots;
    std::vector<Repeated> repeated;
    Rows rows;
    std::vector<TensorPool> tensors;
  };

  /// Hands that over, as a run of other sizes follows: there may never be a second one of these.
  /// With a plan there was one, and what was found out meanwhile is kept, but no more than a few
  /// tensors: each of many instances would hold those of a whole run.
  Spare rest() {
    Spare spare;
    if (plan_ && bytes_held() <= most_held_at_rest) return spare;
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

  /// Before a run: its plan's memory may be another's now.
  bool try_hold_memory() { return arena_ == nullptr || arena_->try_hold(); }

  /// After a run, whatever became of it.
  std::optional<Failure> leave(std::optional<Failure> thrown) {
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
      plan_->clear(frame_);
    } else {
      make_frame_slots();
    }
    for (Repeated& repeated : frame_.repeated) repeated.forget_shared(library_);
    give_back_memory();
    return std::move(frame_.failure);
  }

  /// Whether a tensor lay otherwise than planned, and a program would have seen that.
  bool lies_otherwise() const { return frame_.lies_otherwise; }
  /// Of the last run.
  const Program::Timing& timing() const { return timing_; }

  std::string describe() const { return plan_ ? plan_->describe() : "not planned yet\n"; }

 private:
  void expect_number(size_t input, std::span<const Slot> inputs) {
    expected_[input].kind = Expected::Kind::number;
    expected_[input].first = static_cast<uint32_t>(numbers_.size());
    numbers_.push_back(inputs[input].i64());
  }

  bool has_bound_numbers(const Symbols& symbols, std::span<const Slot> inputs) const {
    const std::vector<size_t>& moving = symbols.moving_inputs();
    for (size_t i = 0; i < moving.size(); ++i)
      if (inputs[moving[i]].i64() != bound_numbers_[i]) return false;
    return true;
  }

  /// Parts begin where this run's numbers say. A plan moves views by itself.
  void move(const Symbols& symbols, std::span<const Slot> inputs) {
    frame_.first_elements = symbols.first_elements(frame_.symbols).value();
    if (has_bound_numbers(symbols, inputs)) return;
    for (const Instruction& instruction : code_.body.instructions) {
      if (instruction.moving_part == SIZE_MAX) continue;
      if (plan_ && gives_views(instruction, frame_.learned)) continue;
      frame_.operations[instruction.operation] =
          library_.bind(*instruction.node, frame_.symbols.lookup());
    }
    const std::vector<size_t>& moving = symbols.moving_inputs();
    for (size_t i = 0; i < moving.size(); ++i) bound_numbers_[i] = inputs[moving[i]].i64();
  }

  void expect(const Slot& slot) {
    Expected expected;
    if (slot.is_tensor()) {
      const Layout layout = library_.layout(slot);
      expected = {Expected::Kind::tensor, layout.dtype, static_cast<uint16_t>(layout.sizes.size()),
                  static_cast<uint32_t>(numbers_.size())};
      numbers_.insert(numbers_.end(), layout.sizes.begin(), layout.sizes.end());
      numbers_.insert(numbers_.end(), layout.strides.begin(), layout.strides.end());
    }
    expected_.push_back(expected);
  }

  bool accepts(const Expected& expected, const Slot& slot) const {
    const int64_t* numbers = numbers_.data() + expected.first;
    switch (expected.kind) {
      case Expected::Kind::tensor:
        return slot.is_tensor() &&
               library_.has_layout(slot, expected.dtype, {numbers, expected.rank},
                                   {numbers + expected.rank, expected.rank});
      case Expected::Kind::number:
        return slot.i64() == *numbers;
      default:
        return !slot.is_tensor();
    }
  }

  int64_t bytes_held() const {
    int64_t bytes = frame_.rows.bytes_held();
    for (const Repeated& repeated : frame_.repeated) bytes += repeated.bytes_held();
    return bytes;
  }

  /// As far as it isn't there.
  void make_frame() {
    if (frame_.repeated.empty()) frame_.repeated.resize(code_.repeated_count);
    if (frame_.slots.empty()) make_frame_slots();
  }

  void make_frame_slots() {
    frame_.slots.clear();
    frame_.slots.resize(code_.slot_count + code_.cells.size());
    for (const Constant& constant : code_.constants) frame_.slots[constant.slot] = constant.value;
    for (const auto& [slot, number] : code_.objects) frame_.slots[slot] = heap_->object(number);
  }

  void run_ordinarily(std::span<const Slot> cells, std::span<Slot> results,
                      std::span<Slot> rebound) {
    if (may_plan) {
      frame_.learned.clear();
      learn_operands(code_, frame_, library_);
    }
    OrdinaryRun run(code_, library_, frame_, may_plan);
    if (!run.run() || !run.settle_results()) return;
    finish(code_, library_, frame_, cells, results, rebound);
    learned_ = true;
  }

  /// What the program's first run and compiling before it left, then what the plan has replaced of
  /// that, and whatever was tried since. What the first runs of other sizes leave is used again:
  /// where sizes are often new ones, to get all pages anew took half of the time.
  void give_back_memory() {
    if (frame_.failure || (runs_to_clear_up_ == 0 && !library_.has_compared_ways())) return;
    library_.give_back_free_memory();
    runs_to_clear_up_ = std::max(0, runs_to_clear_up_ - 1);
  }

  void run_planned(std::span<Slot> results, std::span<Slot> rebound) {
    if (!plan_) make_plan();
    timing_.started = steady_seconds();
    const bool ran = plan_->run(library_, frame_, rebound);
    timing_.seconds = steady_seconds() - timing_.started;
    if (ran && OrdinaryRun(code_, library_, frame_, false).settle_results())
      plan_->give(frame_, results, rebound);
  }

  void make_plan() {
    learned_ = false;  // should that fail, the next run learns anew
    if (arena_ != nullptr) arena_->let_go();
    plan_ = std::make_unique<Plan>(code_, library_, frame_, [&](int64_t bytes) -> char* {
      if (bytes == 0) return nullptr;
      arena_ = SharedArena::hold_one(bytes);
      return arena_->data();
    });
    learned_ = true;
    // The first run's tensors in blocks are the plan's now; its sides were rehearsed.
    frame_.repeated = std::vector<Repeated>(code_.repeated_count);
    if (random_) random_->restore();
  }

  const Code& code_;
  Library& library_;
  const Heap* heap_;
  Frame frame_;
  std::vector<Expected> expected_;
  std::vector<int64_t> numbers_;
  bool moves_ = false;  ///< parts lie within their tensors, and may lie elsewhere in each run
  std::vector<int64_t> bound_numbers_;  ///< those that operators on parts are bound for
  std::unique_ptr<RandomState> random_;
  std::shared_ptr<SharedArena> arena_;  ///< of the plan
  std::unique_ptr<Plan> plan_;
  Program::Timing timing_;
  int runs_to_clear_up_;  ///< after which free memory is given back
  bool learned_ = false;
};

class CompiledProgram final : public Program {
 public:
  CompiledProgram(graph::Graph graph, Library& library, std::shared_ptr<const Heap> heap,
                  std::span<const ShownResult> shown)
      : graph_(std::move(graph)),
        library_(library),
        heap_(std::move(heap)),
        code_(make_code(graph_, shown)),
        may_plan_(code_.can_be_planned),
        most_idle_(std::clamp(most_idle_instructions / (code_.body.instructions.size() + 1),
                              least_idle_instances, most_idle_instances)),
        symbols_(graph_, code_.cells),
        kernels_only_(cells_of_kernels(code_)) {
    note_moving_parts(code_, symbols_.parts());
    for (const Write& write : code_.rebinds) rebound_cells_.push_back(write.cell);
    TORCHJANUS_CHECK(heap_ != nullptr || (code_.heap_reads.empty() && code_.objects.empty()),
                     "program: the graph reads objects, but there is no heap");
    const bool long_enough = code_.body.instructions.size() >= least_unlocked_instructions;
    if (code_.uses_objects) return;
    if (long_enough || code_.control) unlock_ = Unlock::if_others_want_it;
    if (code_.needs_unlock) unlock_ = Unlock::always;
  }

  std::span<const std::string> cells() const override { return code_.cells; }
  bool is_touched_by_kernels_only(size_t cell) const override { return kernels_only_[cell]; }
  std::span<const size_t> rebound_cells() const override { return rebound_cells_; }
  const graph::Graph& graph() const override { return graph_; }

  std::optional<Failure> run(std::span<const Slot> inputs, std::span<const Slot> cells,
                             std::span<Slot> results, std::span<Slot> rebound, int64_t deepest_call,
                             Findings* findings) override {
    Run run{*this, inputs, cells, results, rebound, deepest_call, findings, take(inputs, cells)};
    std::optional<Failure> thrown;
    try {
      thrown =
          library_.protect(unlock_, [](void* context) { static_cast<Run*>(context)->go(); }, &run);
    } catch (...) {
      run.instance->leave(Failure{});
      throw;  // the instance is dropped: its state is not known
    }
    std::optional<Failure> failure = run.instance->leave(std::move(thrown));
    if (failure) {
      std::fill(results.begin(), results.end(), Slot());
      std::fill(rebound.begin(), rebound.end(), Slot());
    }
    give_back(std::move(run.instance));
    return failure;
  }

  Timing timing() const override {
    const std::lock_guard lock(instances_mutex());
    return timing_;
  }

  std::string describe() const override {
    const std::lock_guard lock(instances_mutex());
    std::string text;
    for (const auto& instance : idle_) text += instance->describe();
    return text.empty() ? "not run yet\n" : text;
  }

 private:
  struct Run {
    CompiledProgram& program;
    std::span<const Slot> inputs, cells;
    std::span<Slot> results, rebound;
    int64_t deepest_call;
    Findings* findings;
    std::unique_ptr<Instance> instance;
    void go() {
      instance->run(program.symbols_, inputs, cells, results, rebound, deepest_call, findings);
    }
  };

  /// An instance for these sizes that nobody else uses now.
  std::unique_ptr<Instance> take(std::span<const Slot> inputs, std::span<const Slot> cells) {
    bool may_plan = true, is_first = true;
    Instance::Spare spare;  // given up once the lock is free, as instances are
    {
      const std::lock_guard lock(instances_mutex());
      for (size_t i = idle_.size(); i-- > 0;) {
        if (!idle_[i]->accepts(symbols_, inputs, cells) || !idle_[i]->try_hold_memory()) continue;
        if (i + 1 < idle_.size()) spare = idle_.back()->rest();
        std::unique_ptr<Instance> instance = std::move(idle_[i]);
        idle_.erase(idle_.begin() + static_cast<ptrdiff_t>(i));
        return instance;
      }
      if (!idle_.empty()) spare = idle_.back()->rest();
      may_plan = may_plan_;
      is_first = !std::exchange(has_instances_, true);
    }
    return std::make_unique<Instance>(code_, symbols_, library_, heap_.get(), inputs, cells,
                                      may_plan, is_first);
  }

  void give_back(std::unique_ptr<Instance> instance) {
    std::vector<std::unique_ptr<Instance>> dropped;  // once the lock is free: it may take others
    const std::lock_guard lock(instances_mutex());
    timing_.seconds += instance->timing().seconds;
    timing_.started = instance->timing().started;
    if (may_plan_ && instance->lies_otherwise()) {
      may_plan_ = false;
      dropped.swap(idle_);
    }
    if (instance->may_plan && !may_plan_) return dropped.push_back(std::move(instance));
    if (idle_.size() >= most_idle_) {
      dropped.push_back(std::move(idle_.front()));
      idle_.erase(idle_.begin());
    }
    idle_.push_back(std::move(instance));
  }

  const graph::Graph graph_;
  Library& library_;
  const std::shared_ptr<const Heap> heap_;
  Code code_;      ///< does not change once the program is made
  bool may_plan_;  ///< new instances; guarded as all instances are
  bool has_instances_ = false;
  const size_t most_idle_;
  const Symbols symbols_;
  std::vector<size_t> rebound_cells_;
  std::vector<bool> kernels_only_;  ///< by cell
  Unlock unlock_ = Unlock::never;
  Timing timing_;
  std::vector<std::unique_ptr<Instance>> idle_;  // the one used last is at the end
};

}  // namespace

std::unique_ptr<Program> Program::compile(graph::Graph graph, Library& library,
                                          std::shared_ptr<const Heap> heap,
                                          std::span<const ShownResult> shown) {
  return std::make_unique<CompiledProgram>(std::move(graph), library, std::move(heap), shown);
}

}  // namespace janus::execute
