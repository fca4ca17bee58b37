// Lazy execution: a thread's operators are noted, and run when somebody looks at a value that
// depends on them.
//
// Sizes and strides of results are known from the first call of each kind, which runs at once, so
// an error is raised at its line. What runs at a look is what the value needs; what nobody can look
// at any more never runs. What is left may run ahead, on a thread of its own while Python goes on:
// then it is still pending for whoever looks, who waits for it.
#pragma once

#include <ATen/core/stack.h>
#include <c10/util/FunctionRef.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/ahead_choice.h"
#include "base/options.h"
#include "lazy/made_storages.h"
#include "lazy/observer.h"
#include "lazy/pending_calls.h"
#include "lazy/segment_family.h"

namespace janus::lazy {

class RunAhead;
class SegmentCache;

inline constexpr Switch kCrossIterationSwitch{
    "cross_iteration",
    "what a look does not need stays pending, beyond the end of an iteration; off: all of it runs"};

/// Why noted operators had to run.
enum class Look : uint8_t {
  value,     ///< an operator that runs at once reads a pending tensor
  pointer,   ///< somebody asks for the address of a tensor's memory
  function,  ///< a graph of a converted function is made, or begins to run
  limit,     ///< too much is pending
  end,       ///< of the session, or synchronize()
};

/// What a session has done so far.
struct SessionCounts {
  uint64_t noted = 0;        ///< calls
  uint64_t at_once = 0;      ///< calls that ran when they were made
  uint64_t never_run = 0;    ///< calls whose results nobody looked at
  uint64_t looks = 0;        ///< times that something had to run
  uint64_t run_eagerly = 0;  ///< noted calls that ran one by one
  uint64_t run_in_graphs = 0;
  uint64_t structures = 0;      ///< of what ran together
  uint64_t graphs = 0;          ///< compiled
  uint64_t given_up = 0;        ///< of these structures: by measurement, or they have no graph
  uint64_t moved_to_files = 0;  ///< storages, by the memory limit
  uint64_t kinds = 0;           ///< of calls, that are known now
  uint64_t ahead = 0;           ///< segments that ran on the runner's thread
  double seconds_ahead = 0;     ///< that these took
  double seconds_waited = 0;    ///< that this thread has waited for them
  FamilyCounts families;        ///< of segments that differ in paths or sizes
  std::map<std::string, uint64_t> looked_at_by;  ///< what made something run: operators, and others
};

class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The thread's session from its first use on. Tensors may outlive their thread, so a session
  /// does too, and a later thread gets it with the graphs that it knows.
  static Session& of_this_thread();

  /// Handles a call whose arguments lie on the stack: notes it, or runs it by `run`. The results
  /// lie on the stack afterwards.
  void take(const OperatorRule& rule, at::Stack& stack, c10::function_ref<void()> run);
  /// Runs it by `run`, behind what its operands need.
  void run_at_once(const OperatorRule& rule, at::Stack& stack, c10::function_ref<void()> run);
  /// Runs what pending operands of the call on the stack need, whoever's they are.
  static void serve(const c10::OperatorHandle& overload, const at::Stack& stack);
  /// Another thread is about to use the operands: they stay in memory, whatever the limit.
  static void share(const c10::OperatorHandle& overload, const at::Stack& stack);
  /// The same as serve() for a storage of which somebody asks for a pointer.
  static void serve_pointer(const c10::StorageImpl& storage);
  /// The same for somebody who only reads it.
  static void settle(const c10::StorageImpl& storage);
  /// Whether the contents are not there yet. Does not wait, but takes what the runner has done.
  static bool is_pending(const c10::StorageImpl& storage);
  /// Runs all that is noted and that somebody can look at.
  void run_all(Look look);
  /// The same for all threads' sessions.
  static void run_all_sessions(Look look);

  SessionCounts counts() const;
  /// A part of the counts that is cheap to read, and what is noted now.
  struct Progress {
    uint64_t noted = 0, in_graphs = 0, one_by_one = 0, never_run = 0, looks = 0;
    uint64_t structures = 0, graphs = 0;
    uint64_t waited = 0;  ///< segments that ran one by one as their kernels were being compiled
    uint64_t ahead = 0;
    double seconds_ahead = 0, seconds_waited = 0;
    size_t pending = 0, pending_bytes = 0;
    uint64_t trace_graphs = 0, in_trace_graphs = 0;  ///< of families: made, calls that ran in them
    uint64_t missed = 0;                             ///< segments that their graph did not have
    FamilyGraph::Form trace_graph;                   ///< of the one that was made last
  };
  Progress progress() const;
  /// The operators that graphs of families did not have, since it was called last; some of them.
  std::vector<std::string> take_missing();
  /// How many calls are noted now.
  size_t pending() const;
  /// Who decides from now on whether work runs ahead. Null: it does not.
  void choose_by(AheadChoice* choice);
  /// Of code that asks for lazy execution.
  AheadChoice& own_choice() { return own_choice_; }

  /// This thread's observer from now on; null: nobody. Returns the one before.
  static Observer* observe(Observer* observer);

 private:
  static void forget_locked_sessions();
  class Tenancy;
  static Session& vacant();
  bool move_in();
  void move_out();
  /// Notes the call, or runs it to learn its kind; false if it has to run at once.
  bool note(const OperatorRule& rule, at::Stack& stack, c10::function_ref<void()> run);
  CallKind* known_kind();
  void remember(std::unique_ptr<CallKind> kind);
  bool is_used_by_other_sessions() const;
  bool claim_operands();
  bool is_ready_scalar_work() const;
  bool may_wait(const CallKind& kind, const at::Stack& stack);
  bool overlaps_itself(const CallKind& kind) const;
  bool indices_are_own() const;
  void note_indices(const c10::Storage& storage);
  bool indices_fit(const OperatorRule& rule, std::span<const c10::IValue> arguments);
  void append(const CallKind& kind, at::Stack& stack, at::Stack& arguments);
  bool can_copy_exposed(const CallKind& kind) const;
  Event::Operand operand_of(const at::Tensor& tensor);
  StorageNode::Pointer node_of(const at::Tensor& tensor);
  /// Null if nothing that is noted uses the storage.
  StorageNode::Pointer known_node(const c10::StorageImpl& storage) const;
  static void serve_storage(const c10::StorageImpl& storage, bool is_written);
  /// Whether anything had to run.
  bool serve(std::span<const Wanted> wanted, Look look);
  void count(Look look);
  void tell(const OperatorRule& rule, bool is_noted);
  void run(std::span<PendingCall* const> calls);
  void run_by(std::span<PendingCall* const> calls,
              c10::function_ref<bool(size_t& done)> run_segment);
  Segment segment_of(std::span<PendingCall* const> calls);
  void leave_work();
  bool may_run_ahead() const;
  void end_cycle_before(const CallKind& kind);
  bool begins_cycle(const CallKind& kind) const;
  void begin_ahead();
  void finish_ahead();
  void run_pending();
  AheadChoice::Reading reading() const;
  void finish(std::span<PendingCall* const> calls, size_t done);
  void keep_memory_limit(std::span<PendingCall* const> done);

  mutable std::recursive_mutex mutex_;
  PendingCalls pending_;
  MadeStorages made_;
  std::unordered_map<uint64_t, std::vector<std::unique_ptr<CallKind>>> kinds_;
  size_t kinds_that_came_once_ = 0;
  CallParts parts_;
  std::unique_ptr<SegmentCache> segments_;
  /// What the runner works on.
  struct Ahead {
    std::vector<PendingCall*> calls;
    Segment segment;
    std::unique_ptr<RunAhead> run;
  };
  std::optional<Ahead> ahead_;
  AheadChoice own_choice_;
  AheadChoice* choice_ = nullptr;
  std::thread::id thread_ = std::this_thread::get_id();  ///< of none: a later thread may have it
  double seconds_in_segments_ = 0;

  /// The first call with a parameter since work was left. When it comes again, a cycle has ended,
  /// such as an iteration of a training loop.
  struct CycleStart {
    const CallKind* kind = nullptr;
    const c10::StorageImpl* parameter = nullptr;
  };
  CycleStart cycle_;
  bool records_ = false;  ///< whether the last call that was noted could be recorded for gradients
  double looked_inside_ = 0;  ///< since when a call looked that was being noted; 0: it did not
  SessionCounts counts_;
  std::atomic<uint64_t> at_once_ = 0;
  std::unordered_map<const OperatorRule*, uint64_t> looks_of_operators_;
  /// Storages of indices that pools have made; weak references keep the addresses theirs.
  std::unordered_map<const c10::StorageImpl*, c10::weak_intrusive_ptr<c10::StorageImpl>>
      made_indices_;
};

}  // namespace janus::lazy
