#include "lazy/session.h"

#include <ATen/ATen.h>
#include <pthread.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/fork_safe_mutex.h"
#include "base/options.h"
#include "base/policy.h"
#include "base/steady_time.h"
#include "lazy/inner_tensors.h"
#include "lazy/new_kind.h"
#include "lazy/noted_dispatch.h"
#include "lazy/segment_cache.h"
#include "python/lock.h"
#include "torch/exposed.h"
#include "torch/file_backed.h"
#include "torch/index_bounds.h"
#include "torch/interception_keys.h"
#include "torch/materializer.h"

namespace janus::lazy {

namespace {

/// All sessions, for storages that another thread's session watches. Guarded by sessions_mutex().
struct Sessions {
  std::vector<std::unique_ptr<Session>> all;
};

std::mutex& sessions_mutex() { return fork_safe_mutex<Sessions>(); }

Sessions& sessions() {
  static auto* const made = new Sessions;
  return *made;
}

std::vector<Session*> all_sessions() {
  const std::lock_guard lock(sessions_mutex());
  std::vector<Session*> all;
  for (const auto& each : sessions().all) all.push_back(each.get());
  return all;
}

using SessionLock = std::unique_lock<std::recursive_mutex>;

/// Whoever waits for a session gives up Python's lock meanwhile: what runs in it may ask for that.
SessionLock lock_session(std::recursive_mutex& mutex) {
  SessionLock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    const python::WithoutLock unlocked(PyGILState_Check() != 0);
    lock.lock();
  }
  return lock;
}

thread_local Observer* observer = nullptr;

/// When something began that may be a look; 0: nobody wants to know.
double start_of_look() {
  return observer == nullptr || !torch::is_intercepted() ? 0 : steady_seconds();
}

void tell_look(std::string_view by, double start) {
  if (observer != nullptr && start != 0) observer->looked(by, steady_seconds() - start);
}

const char* name_of(Look look) {
  static constexpr const char* kNames[] = {"", "an address", "a converted function",
                                           "too much pending", "the end"};
  return kNames[static_cast<size_t>(look)];
}

std::string name_of(const OperatorRule& rule) {
  return c10::toString(rule.overload.operator_name());
}

thread_local bool is_running = false;

/// While it lives, this thread runs noted calls.
class Running {
 public:
  Running() = default;
  ~Running() { is_running = was_running_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  bool was_running_ = std::exchange(is_running, true);
};

/// Counts warnings on their way.
struct CountedWarnings final : c10::WarningHandler {
  void process(const c10::Warning& warning) override {
    ++count;
    before->process(warning);
  }
  c10::WarningHandler* before = c10::WarningUtils::get_warning_handler();
  int count = 0;
};

std::span<const c10::IValue> arguments_of(const OperatorRule& rule, const at::Stack& stack) {
  return std::span(stack).last(rule.writes.size());
}

/// Whether others may change what the storage holds: a call that is noted gets a copy.
bool is_copied(const c10::StorageImpl& storage) {
  return StorageNode::of_pending(storage) == nullptr && torch::is_exposed(storage);
}

template <class Visit>
void visit_storages(const at::Tensor& tensor, size_t argument, const Visit& visit) {
  c10::StorageImpl* const storage = storage_of(tensor);
  if (storage != nullptr) visit(*storage, argument);
  if (!may_have_inner_tensors(tensor)) return;
  for (const at::Tensor& inner : inner_tensors(tensor)) visit_storages(inner, argument, visit);
}

template <class Visit>
void visit_storages(const c10::IValue& value, size_t argument, const Visit& visit) {
  if (value.isTensor()) {
    visit_storages(value.toTensor(), argument, visit);
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) visit_storages(each, argument, visit);
  } else if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements())
      visit_storages(each, argument, visit);
  } else if (value.isGenericDict()) {
    for (const auto& each : value.toGenericDict()) visit_storages(each.value(), argument, visit);
  }
}

/// Calls `visit(storage, argument)` for each tensor among the arguments, also within containers.
template <class Visit>
void for_each_storage(std::span<const c10::IValue> arguments, const Visit& visit) {
  for (size_t i = 0; i < arguments.size(); ++i) visit_storages(arguments[i], i, visit);
}

/// The same for those whose storage is watched.
template <class Visit>
void for_each_watched(std::span<const c10::IValue> arguments, const Visit& visit) {
  for_each_storage(arguments, [&](const c10::StorageImpl& storage, size_t argument) {
    if (is_watched(storage)) visit(storage, argument);
  });
}

}  // namespace

Session::Session() : segments_(std::make_unique<SegmentCache>()) {}
Session::~Session() = default;

/// In the child of a fork there are no other threads. A session that one of them had locked is in
/// no known state, and nobody will ever unlock it.
void Session::forget_locked_sessions() {
  std::erase_if(sessions().all, [](std::unique_ptr<Session>& each) {
    if (each->mutex_.try_lock()) {
      each->mutex_.unlock();
      return false;
    }
    static_cast<void>(each.release());  // not destroyed
    return true;
  });
}

/// A thread's use of a session.
class Session::Tenancy {
 public:
  Tenancy() : session(vacant()) {}
  ~Tenancy() { session.move_out(); }
  Tenancy(const Tenancy&) = delete;
  Tenancy& operator=(const Tenancy&) = delete;

  Session& session;
};

Session& Session::of_this_thread() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, forget_locked_sessions); });
  thread_local const Tenancy mine;
  return mine.session;
}

/// One that an ended thread has left, or a new one.
Session& Session::vacant() {
  const std::lock_guard lock(sessions_mutex());
  for (const auto& each : sessions().all)
    if (each->move_in()) return *each;
  return *sessions().all.emplace_back(std::make_unique<Session>());
}

bool Session::move_in() {
  const SessionLock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || thread_ != std::thread::id()) return false;
  thread_ = std::this_thread::get_id();
  return true;
}

/// What is pending stays so until somebody looks at it. At the end of the process whoever looks may
/// never end: then nobody gets the session.
void Session::move_out() {
  const SessionLock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  thread_ = {};
  choice_ = nullptr;
  own_choice_ = {};
  cycle_ = {};
  records_ = false;
  looked_inside_ = 0;
  counts_ = {};
  at_once_ = 0;
  looks_of_operators_.clear();
}

// ---- Calls ------------------------------------------------------------------------------------

void Session::take(const OperatorRule& rule, at::Stack& stack, c10::function_ref<void()> run) {
  if (rule.treatment == Treatment::view) return run();
  const bool is_noted = rule.treatment == Treatment::note && note(rule, stack, run);
  if (observer != nullptr) tell(rule, is_noted);
  if (!is_noted) run_at_once(rule, stack, run);
}

void Session::tell(const OperatorRule& rule, bool is_noted) {
  if (const double start = std::exchange(looked_inside_, 0); start != 0)
    tell_look(name_of(rule), start);
  if (is_noted && observer->wants_calls) observer->noted();
}

Observer* Session::observe(Observer* next) { return std::exchange(observer, next); }

bool Session::note(const OperatorRule& rule, at::Stack& stack, c10::function_ref<void()> run) {
  at::Stack arguments;  // freed without the lock: a tensor's end may need Python's
  SessionLock lock = lock_session(mutex_);
  parts_.read(rule, stack);
  if (!parts_.is_known || is_ready_scalar_work()) return false;
  CallKind* const kind = known_kind();
  if (kind == nullptr) {
    NewKind made(rule, parts_, stack);
    CountedWarnings warnings;
    lock.unlock();
    {
      const c10::WarningUtils::WarningHandlerGuard counting(&warnings);
      run_at_once(rule, stack, run);
    }
    lock = lock_session(mutex_);
    auto finished = std::move(made).with_results(stack);
    if (warnings.count > 0) finished->can_wait = false;  // the program gets them at its line
    remember(std::move(finished));
    return true;
  }
  if (!std::exchange(kind->came_again, true)) --kinds_that_came_once_;
  if (!may_wait(*kind, stack)) return false;
  end_cycle_before(*kind);
  if (!claim_operands()) return false;
  append(*kind, stack, arguments);
  counts_.never_run += pending_.remove_dead_if_heavy();
  if (pending_.is_full()) {
    looked_inside_ = start_of_look();
    run_all(Look::limit);
  }
  return true;
}

void Session::run_at_once(const OperatorRule& rule, at::Stack& stack,
                          c10::function_ref<void()> run) {
  at_once_.fetch_add(1, std::memory_order_relaxed);
  const auto arguments = arguments_of(rule, stack);
  bool is_any_watched = false;
  for_each_watched(arguments, [&](const c10::StorageImpl&, size_t) { is_any_watched = true; });
  if (!is_any_watched || rule.reads_nothing) return run();

  std::vector<StorageNode::Pointer> watched;
  {
    const SessionLock lock = lock_session(mutex_);
    for_each_watched(arguments, [&](const c10::StorageImpl& storage, size_t) {
      if (StorageNode::Pointer node = known_node(storage)) watched.push_back(std::move(node));
    });
  }
  serve(rule.overload, stack);
  run();
  const SessionLock lock = lock_session(mutex_);
  // An operator that asks for a pointer only to read has ended that.
  for (const StorageNode::Pointer& node : watched)
    if (node->pending_uses > 0) node->watch();
}

CallKind* Session::known_kind() {
  const auto found = kinds_.find(hash_of(parts_.words));
  if (found == kinds_.end()) return nullptr;
  for (const auto& each : found->second)
    if (each->key == parts_.words) return each.get();
  return nullptr;
}

/// Kinds that came once are forgotten when they are many: a program may have other sizes in each
/// iteration.
void Session::remember(std::unique_ptr<CallKind> kind) {
  constexpr size_t kMostKindsThatCameOnce = 8192;  // chosen, not measured: about 24 MiB
  if (++kinds_that_came_once_ > kMostKindsThatCameOnce) {
    kinds_that_came_once_ = 1;
    for (auto& [hash, same_hash] : kinds_)
      std::erase_if(same_hash, [](const auto& each) { return !each->came_again; });
    std::erase_if(kinds_, [](const auto& each) { return each.second.empty(); });
  }
  kinds_[hash_of(kind->key)].push_back(std::move(kind));
}

/// Whether pending calls of another thread's session use an operand. It is used by one session at a
/// time: the call runs at once, when those have run.
bool Session::is_used_by_other_sessions() const {
  return std::ranges::any_of(parts_.tensors, [&](const at::Tensor* tensor) {
    const c10::StorageImpl& storage = *storage_of(*tensor);
    return is_watched(storage) && !torch::is_in_file(storage) && !known_node(storage);
  });
}

/// Whether this session may note a call with the operands. From then on the others see that they
/// are used: of two threads that ask at the same time one is refused.
bool Session::claim_operands() {
  const std::lock_guard lock(fork_safe_mutex<Session>());
  if (is_used_by_other_sessions()) return false;
  for (const at::Tensor* tensor : parts_.tensors) {
    c10::StorageImpl& storage = *storage_of(*tensor);
    if (!is_watched(storage) && !is_copied(storage))
      torch::set_materializer(storage, materializer());
  }
  return true;
}

/// Whether the operands are single numbers that are there. To note what is computed of them costs
/// as much as to run it, and Python often looks at it soon: steps of optimizers, sums of losses.
bool Session::is_ready_scalar_work() const {
  return !parts_.tensors.empty() && std::ranges::all_of(parts_.tensors, [](const auto* tensor) {
    return tensor->numel() == 1 && !is_watched(*storage_of(*tensor));
  });
}

bool Session::may_wait(const CallKind& kind, const at::Stack& stack) {
  if (!kind.can_wait || !can_copy_exposed(kind)) return false;
  const OperatorRule& rule = *kind.rule;
  if (rule.is_in_place() && overlaps_itself(kind)) return false;
  if (rule.needs_own_indices && !indices_are_own()) return false;
  return !rule.indices || indices_fit(rule, arguments_of(rule, stack));
}

/// Whether a written operand lies in the memory of another one, but not in the same place: where
/// they overlap, eager raises.
bool Session::overlaps_itself(const CallKind& kind) const {
  for (size_t k = 0; k < parts_.tensors.size(); ++k) {
    if (!kind.writes(k)) continue;
    for (size_t other = 0; other < parts_.tensors.size(); ++other) {
      const at::Tensor& one = *parts_.tensors[k];
      const at::Tensor& two = *parts_.tensors[other];
      if (other == k || storage_of(one) != storage_of(two)) continue;
      if (one.storage_offset() != two.storage_offset() || kind.operands[k] != kind.operands[other])
        return true;
    }
  }
  return false;
}

/// Whether tensors of integers come from a pool, which makes no others than its backward pass
/// takes.
bool Session::indices_are_own() const {
  return std::ranges::all_of(parts_.tensors, [&](const at::Tensor* tensor) {
    return !at::isIntegralType(tensor->scalar_type(), true) ||
           made_indices_.contains(storage_of(*tensor));
  });
}

void Session::note_indices(const c10::Storage& storage) {
  if (made_indices_.size() >= policy::kMostPendingCalls)
    std::erase_if(made_indices_, [](const auto& each) { return each.second.expired(); });
  c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
  made_indices_.emplace(impl, c10::weak_intrusive_ptr<c10::StorageImpl>(
                                  c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(impl)));
}

bool Session::indices_fit(const OperatorRule& operator_rule,
                          std::span<const c10::IValue> arguments) {
  const IndexRule& rule = *operator_rule.indices;
  const at::Tensor& indices = arguments[rule.indices].toTensor();
  if (StorageNode::Pointer node = known_node(*storage_of(indices))) {
    const Wanted wanted{std::move(node), false};
    const double start = start_of_look();
    if (serve({&wanted, 1}, Look::value)) {
      ++looks_of_operators_[&operator_rule];
      looked_inside_ = start;
    }
  }
  const c10::IValue& bounding = arguments[rule.bounded_by];
  const int64_t end =
      bounding.isInt() ? bounding.toInt() : bounding.toTensor().size(rule.dimension);
  const std::optional<int64_t> ignored =
      rule.ignored ? std::optional(arguments[*rule.ignored].toInt()) : std::nullopt;
  const NotedDispatch scope;
  return torch::all_between(indices, 0, end, ignored);
}

void Session::append(const CallKind& kind, at::Stack& stack, at::Stack& arguments) {
  auto call = std::make_unique<PendingCall>();
  Event& event = call->event;
  event.kind = &kind;
  for (const at::Tensor* tensor : parts_.tensors) event.operands.push_back(operand_of(*tensor));
  event.numbers.assign(parts_.numbers.begin(), parts_.numbers.end());

  const size_t count = kind.arguments.size();
  arguments.assign(std::make_move_iterator(stack.end() - static_cast<ptrdiff_t>(count)),
                   std::make_move_iterator(stack.end()));
  stack.resize(stack.size() - count);
  for (size_t i = 0; i < kind.results.size(); ++i) {
    const ResultShape& shape = kind.results[i];
    if (const auto& written = kind.rule->result_is[i]) {
      stack.push_back(arguments[*written]);
    } else if (!shape.is_defined) {
      stack.emplace_back(at::Tensor());
    } else {
      c10::Storage storage;
      event.results.push_back(StorageNode::make_pending(*this, shape.bytes, storage));
      stack.emplace_back(
          tensor_in(storage, shape.geometry, 0, c10::DispatchKeySet(torch::kLazyTensor)));
      if (kind.rule->makes_indices && i == 1) note_indices(storage);
    }
  }
  pending_.add(std::move(call));
  ++counts_.noted;
}

StorageNode::Pointer Session::known_node(const c10::StorageImpl& storage) const {
  StorageNode* const pending = StorageNode::of_pending(storage);
  if (pending == nullptr) return pending_.ready_node(storage);
  return &pending->session() == this ? StorageNode::Pointer::reclaim_copy(pending)
                                     : StorageNode::Pointer();
}

/// Whether operands in memory that others may change can be copied: nothing may be noted that
/// writes there.
bool Session::can_copy_exposed(const CallKind& kind) const {
  for (size_t k = 0; k < parts_.tensors.size(); ++k) {
    const at::Tensor& tensor = *parts_.tensors[k];
    if (!is_copied(*storage_of(tensor))) continue;
    if (kind.writes(k) || tensor.nbytes() > policy::kLargestCopiedOperand ||
        !tensor.is_non_overlapping_and_dense())
      return false;
  }
  return true;
}

/// An operand of a call that is noted: a copy of what others may change.
Event::Operand Session::operand_of(const at::Tensor& tensor) {
  if (!is_copied(*storage_of(tensor))) return {node_of(tensor), tensor.storage_offset()};
  const NotedDispatch scope;
  at::Tensor copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options());
  copy.copy_(tensor);
  return {node_of(copy), 0};
}

StorageNode::Pointer Session::node_of(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  if (StorageNode::Pointer known = known_node(*storage.unsafeGetStorageImpl())) return known;
  return pending_.ready_node(*this, storage);
}

// ---- Looks ------------------------------------------------------------------------------------

void Session::serve(const c10::OperatorHandle& overload, const at::Stack& stack) {
  const OperatorRule& rule = rule_of(overload);
  const auto arguments = arguments_of(rule, stack);
  const double start = start_of_look();
  bool has_run = false;
  for (Session* session : all_sessions()) {
    const SessionLock lock = lock_session(session->mutex_);
    std::vector<Wanted> wanted;
    for_each_watched(arguments, [&](const c10::StorageImpl& storage, size_t argument) {
      if (StorageNode::Pointer node = session->known_node(storage))
        wanted.push_back({std::move(node), !rule.is_of_torch || rule.writes[argument]});
    });
    if (wanted.empty() || !session->serve(wanted, Look::value)) continue;
    ++session->looks_of_operators_[&rule];
    has_run = true;
  }
  if (has_run) tell_look(name_of(rule), start);
}

void Session::share(const c10::OperatorHandle& overload, const at::Stack& stack) {
  if (memory_limit == 0) return;
  std::vector<SessionLock> locks;  // nobody moves anything meanwhile
  for (Session* session : all_sessions()) locks.push_back(lock_session(session->mutex_));
  for_each_storage(arguments_of(rule_of(overload), stack), [](c10::StorageImpl& storage, size_t) {
    torch::note_exposed(storage);
    torch::move_to_memory(storage);
  });
}

void Session::serve_pointer(const c10::StorageImpl& storage) {
  if (torch::is_intercepted())
    torch::note_exposed(storage);  // else an operator that runs has asked
  serve_storage(storage, /*is_written=*/true);
}

bool Session::is_pending(const c10::StorageImpl& storage) {
  const StorageNode* node = StorageNode::of_pending(storage);
  if (node == nullptr) return false;
  Session& session = node->session();
  const SessionLock lock = lock_session(session.mutex_);
  if (session.ahead_ && session.ahead_->run->is_over()) session.finish_ahead();
  return StorageNode::of_pending(storage) != nullptr;
}

void Session::settle(const c10::StorageImpl& storage) {
  if (is_watched(storage)) serve_storage(storage, /*is_written=*/false);
}

void Session::serve_storage(const c10::StorageImpl& storage, bool is_written) {
  if (is_running) return;  // a call that this thread runs asks: all that it needs has run
  const double start = start_of_look();
  bool has_run = false;
  for (Session* session : all_sessions()) {
    const SessionLock lock = lock_session(session->mutex_);
    StorageNode::Pointer node = session->known_node(storage);
    if (!node) continue;
    const Wanted wanted{std::move(node), is_written};
    has_run |= session->serve({&wanted, 1}, Look::pointer);
  }
  if (has_run) tell_look(name_of(Look::pointer), start);
}

bool Session::serve(std::span<const Wanted> wanted, Look look) {
  const auto find = [&] {
    std::vector<PendingCall*> found = pending_.needed_for(wanted);
    if (!found.empty() && options().is_disabled(kCrossIterationSwitch.name))
      found = pending_.needed_for_all();
    return found;
  };
  std::vector<PendingCall*> needed = find();
  const bool has_to_run = !needed.empty();
  if (std::ranges::any_of(needed, &PendingCall::is_running)) {
    finish_ahead();
    needed = find();
  }
  if (has_to_run) count(look);
  if (!needed.empty()) run(needed);
  for (const Wanted& each : wanted)
    TORCH_CHECK(!each.node->is_pending(),
                "torchjanus: the operator that was to compute this tensor has failed");
  if (has_to_run) leave_work();
  return has_to_run;
}

void Session::count(Look look) {
  ++counts_.looks;
  if (look != Look::value) ++counts_.looked_at_by[name_of(look)];
}

void Session::run_all(Look look) {
  const double start = start_of_look();
  {
    const SessionLock lock = lock_session(mutex_);
    if (pending_.empty()) return;
    count(look);
    run_pending();
    counts_.never_run += pending_.clear();
  }
  if (look != Look::limit) tell_look(name_of(look), start);  // else its caller has the lock
}

void Session::choose_by(AheadChoice* choice) {
  const SessionLock lock = lock_session(mutex_);
  if (choice_ != nullptr) choice_->pause(reading());
  choice_ = choice;
  if (choice_ != nullptr) choice_->go_on(reading());
}

void Session::run_all_sessions(Look look) {
  for (Session* session : all_sessions()) session->run_all(look);
}

Segment Session::segment_of(std::span<PendingCall* const> calls) {
  std::vector<const Event*> events;
  for (const PendingCall* call : calls) events.push_back(&call->event);
  return Segment(std::move(events),
                 [&](const StorageNode& node) { return pending_.is_used_by_others(node); });
}

void Session::run(std::span<PendingCall* const> calls) {
  const Segment segment = segment_of(calls);
  run_by(calls, [&](size_t& done) { return segments_->run(segment, done); });
}

/// `run_segment(done)` runs them; whether by a graph. `done`: how many have run, if it throws.
void Session::run_by(std::span<PendingCall* const> calls,
                     c10::function_ref<bool(size_t& done)> run_segment) {
  size_t done = 0;
  const Running running;
  const double start = steady_seconds();
  try {
    const bool by_graph = run_segment(done);
    (by_graph ? counts_.run_in_graphs : counts_.run_eagerly) += calls.size();
  } catch (...) {  // memory ran out: what is left may run later, but not for ever
    if (done < calls.size() && std::exchange(calls[done]->event.has_failed, true)) ++done;
    finish(calls, done);
    throw;
  }
  seconds_in_segments_ += steady_seconds() - start;
  finish(calls, calls.size());
}

/// The first `done` of these calls have run.
void Session::finish(std::span<PendingCall* const> calls, size_t done) {
  if (memory_limit > 0 && !ahead_) keep_memory_limit(calls.first(done));
  pending_.remove(calls.first(done));
  counts_.never_run += pending_.remove_dead_if_many();
}

/// These calls have run, and are to be removed.
void Session::keep_memory_limit(std::span<PendingCall* const> done) {
  for (const PendingCall* call : done)
    for (const StorageNode::Pointer& result : call->event.results)
      if (!result->is_pending() && result->is_alive()) made_.add(result->contents());
  made_.keep_below(static_cast<size_t>(memory_limit));
}

SessionCounts Session::counts() const {
  const SessionLock lock = lock_session(mutex_);
  SessionCounts counts = counts_;
  for (const auto& [rule, looks] : looks_of_operators_) counts.looked_at_by[name_of(*rule)] = looks;
  const SegmentCache::Counts& segments = segments_->counts();
  counts.structures = segments.structures;
  counts.graphs = segments.graphs;
  counts.given_up = segments.given_up;
  counts.moved_to_files = made_.moved();
  for (const auto& [hash, same_hash] : kinds_) counts.kinds += same_hash.size();
  counts.families = segments_->family_counts();
  counts.at_once = at_once_.load(std::memory_order_relaxed);
  return counts;
}

Session::Progress Session::progress() const {
  const SessionLock lock = lock_session(mutex_);
  const SegmentCache::Counts& segments = segments_->counts();
  const FamilyCounts& families = segments_->family_counts();
  return {.noted = counts_.noted,
          .in_graphs = counts_.run_in_graphs,
          .one_by_one = counts_.run_eagerly,
          .never_run = counts_.never_run,
          .looks = counts_.looks,
          .structures = segments.structures,
          .graphs = segments.graphs,
          .waited = segments.waited + families.waited,
          .ahead = counts_.ahead,
          .seconds_ahead = counts_.seconds_ahead,
          .seconds_waited = counts_.seconds_waited,
          .pending = pending_.size(),
          .pending_bytes = pending_.bytes(),
          .trace_graphs = families.graphs,
          .in_trace_graphs = families.calls,
          .missed = families.missed,
          .trace_graph = families.last};
}

std::vector<std::string> Session::take_missing() {
  const SessionLock lock = lock_session(mutex_);
  return std::exchange(segments_->family_counts().unread, {});
}

size_t Session::pending() const {
  const SessionLock lock = lock_session(mutex_);
  return pending_.size();
}

}  // namespace janus::lazy
