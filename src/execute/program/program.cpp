// A program: code that all runs share, and a pool of instances, one for each set of sizes and for
// each run that goes on at the same time. Where what a program sees lies in one way in one run and
// in another way in the next, no instance has a plan any more.
#include "execute/program/program.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/fork_safe_mutex.h"
#include "base/policy.h"
#include "execute/code/code.h"
#include "execute/code/lowering.h"
#include "execute/code/symbols.h"
#include "execute/library/heap.h"
#include "execute/library/library.h"
#include "execute/program/exchange_times.h"
#include "execute/program/instance.h"
#include "execute/program/picture.h"

namespace janus::execute {

namespace {

/// Guards the instances of all programs, for a moment each time.
std::mutex& instances_mutex() { return fork_safe_mutex<Program>(); }

class CompiledProgram final : public Program {
 public:
  CompiledProgram(graph::Graph graph, Library& library, std::shared_ptr<const Heap> heap,
                  std::span<const ShownResult> shown)
      : graph_(std::move(graph)),
        library_(library),
        heap_(std::move(heap)),
        code_(make_code(graph_, shown)),
        communicates_(std::ranges::any_of(
            graph_.body().nodes,
            [](const auto* node) { return node->op->is(graph::Trait::communicates); })),
        may_plan_(code_.can_be_planned),
        most_idle_(std::clamp(policy::kMostIdleInstructions / (code_.body.instructions.size() + 1),
                              policy::kLeastIdleInstances, policy::kMostIdleInstances)),
        symbols_(graph_, code_.cells),
        kernels_only_(cells_of_kernels(code_)) {
    note_moving_parts(code_, symbols_.parts());
    for (const Write& write : code_.rebinds) rebound_cells_.push_back(write.cell);
    TORCHJANUS_CHECK(heap_ != nullptr || (code_.heap_reads.empty() && code_.objects.empty()),
                     "program: the graph reads objects, but there is no heap");
    const bool long_enough = code_.body.instructions.size() >= policy::kLeastUnlockedInstructions;
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
    Run run{inputs, cells, results, rebound, deepest_call, findings, take(inputs, cells)};
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

  ProgramPicture picture() const {
    ProgramPicture picture;
    add_kernels(code_.body, picture.kernels);
    for (const auto& [name, body] : code_.functions) add_kernels(*body, picture.kernels);
    const std::lock_guard lock(instances_mutex());
    const Plan* const plan = plan_made_last();
    if (plan == nullptr) return picture;
    picture.plan = plan->picture;
    picture.seconds = timed_nodes(*plan);
    picture.arena_bytes = plan->arena_bytes;
    return picture;
  }

  ExchangeTimes exchanged() const {
    if (!communicates_) return {};
    const std::lock_guard lock(instances_mutex());
    const Plan* const plan = plan_made_last();
    return plan == nullptr ? ExchangeTimes() : exchange_times(timed_nodes(*plan));
  }

 private:
  /// Of the instances that nobody uses now; null if none has a plan.
  const Plan* plan_made_last() const {
    const auto planned = std::ranges::find_if(idle_.rbegin(), idle_.rend(), [](const auto& each) {
      return each->plan_made() != nullptr;
    });
    return planned == idle_.rend() ? nullptr : (*planned)->plan_made();
  }

  static void add_kernels(const Sequence& sequence, std::vector<ProgramPicture::Kernel>& kernels) {
    for (const Instruction& each : sequence.instructions) {
      if (each.kernel != nullptr) kernels.push_back({each.node, each.kernel->llvm_text()});
      for (const Sequence& block : each.blocks) add_kernels(block, kernels);
    }
  }

  struct Run {
    std::span<const Slot> inputs, cells;
    std::span<Slot> results, rebound;
    int64_t deepest_call;
    Findings* findings;
    std::unique_ptr<Instance> instance;
    void go() { instance->run(inputs, cells, results, rebound, deepest_call, findings); }
  };

  /// An instance for these sizes that nobody else uses now.
  std::unique_ptr<Instance> take(std::span<const Slot> inputs, std::span<const Slot> cells) {
    bool may_plan = true, is_first = true;
    Instance::Spare spare;  // given up once the lock is free, as instances are
    {
      const std::lock_guard lock(instances_mutex());
      for (size_t i = idle_.size(); i-- > 0;) {
        if (!idle_[i]->accepts(inputs, cells) || !idle_[i]->try_hold_memory()) continue;
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
    timing_.started = std::max(timing_.started, instance->timing().started);
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
  Code code_;  ///< does not change once the program is made
  const bool communicates_;
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

ProgramPicture picture_of(const Program& program) {
  return static_cast<const CompiledProgram&>(program).picture();
}

ExchangeTimes exchange_times(const Program& program) {
  return static_cast<const CompiledProgram&>(program).exchanged();
}

}  // namespace janus::execute
