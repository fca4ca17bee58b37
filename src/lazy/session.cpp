#include "lazy/session.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/options.h"
#include "base/policy.h"
#include "lazy/new_kind.h"
#include "lazy/segment_cache.h"
#include "torch/exposed.h"
#include "torch/index_bounds.h"
#include "torch/interception_keys.h"

namespace janus::lazy {

namespace {

/// All sessions, for storages that another thread's session watches.
struct Sessions {
  std::mutex mutex;
  std::vector<std::unique_ptr<Session>> all;
};

Sessions& sessions() {
  static auto* const made = new Sessions;
  return *made;
}

std::vector<Session*> all_sessions() {
  const std::lock_guard lock(sessions().mutex);
  std::vector<Session*> all;
  for (const auto& each : sessions().all) all.push_back(each.get());
  return all;
}

std::span<const c10::IValue> arguments_of(const OperatorRule& rule, const at::Stack& stack) {
  return std::span(stack).last(rule.writes.size());
}

template <class Visit>
void visit_watched(const c10::IValue& value, size_t argument, const Visit& visit) {
  if (value.isTensor()) {
    const c10::StorageImpl* const storage = storage_of(value.toTensor());
    if (storage != nullptr && is_watched(*storage)) visit(*storage, argument);
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) visit_watched(each, argument, visit);
  } else if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements())
      visit_watched(each, argument, visit);
  } else if (value.isGenericDict()) {
    for (const auto& each : value.toGenericDict()) visit_watched(each.value(), argument, visit);
  }
}

/// Calls `visit(storage, argument)` for each tensor among the arguments, also within containers,
/// whose storage is watched.
template <class Visit>
void for_each_watched(std::span<const c10::IValue> arguments, const Visit& visit) {
  for (size_t i = 0; i < arguments.size(); ++i) visit_watched(arguments[i], i, visit);
}

}  // namespace

/// Which of the noted calls need which others.
class Session::Walk {
 public:
  explicit Walk(std::deque<Event>& log) : log_(log) {
    for (size_t i = 0; i < log.size(); ++i) add(i);
    mark_live();
  }

  /// In the order of the log, the calls that those need.
  std::vector<size_t> needed_for(std::span<const Wanted> wanted) {
    std::vector<bool> marked(log_.size());
    for (const Wanted& each : wanted) {
      StorageNode& node = *each.node;
      if (node.numbered_in != number_) continue;
      if (node.writer >= 0) marked[static_cast<size_t>(node.writer)] = true;
      if (!each.is_written) continue;
      for (const uint32_t reader : readers_[node.number])
        if (live_[reader]) marked[reader] = true;
    }
    spread(marked, /*to_readers=*/true);
    return listed(marked);
  }
  std::vector<size_t> needed_for_all() const { return listed(live_); }
  /// The calls that somebody needs later, once those are `done`.
  std::vector<size_t> rest(std::span<const size_t> done) const {
    std::vector<bool> marked = live_;
    for (const size_t call : done) marked[call] = false;
    return listed(marked);
  }

 private:
  struct Edge {
    uint32_t from, to;
    bool is_reader;  ///< `to` only reads what `from` writes
  };

  void enter(StorageNode& node) {
    if (node.numbered_in == number_) return;
    node.numbered_in = number_;
    node.number = static_cast<uint32_t>(nodes_.size());
    node.writer = -1;
    nodes_.push_back(&node);
    readers_.emplace_back();
  }

  void add(size_t index) {
    const auto call = static_cast<uint32_t>(index);
    const Event& event = log_[index];
    for (size_t k = 0; k < event.operands.size(); ++k) {
      StorageNode& node = *event.operands[k].node;
      enter(node);
      if (node.writer >= 0 && node.writer != call)
        edges_.push_back({call, static_cast<uint32_t>(node.writer), false});
      if (!event.kind->writes(k)) {
        readers_[node.number].push_back(call);
        continue;
      }
      for (const uint32_t reader : readers_[node.number])
        if (reader != call) edges_.push_back({call, reader, true});
      readers_[node.number].clear();
      node.writer = call;
    }
    for (const StorageNode::Pointer& node : event.results) {
      enter(*node);
      node->writer = call;
    }
  }

  void mark_live() {
    live_.assign(log_.size(), false);
    for (const StorageNode* node : nodes_)
      if (node->writer >= 0 && node->is_alive()) live_[static_cast<size_t>(node->writer)] = true;
    spread(live_, /*to_readers=*/false);
  }

  void spread(std::vector<bool>& marked, bool to_readers) const {
    for (size_t k = edges_.size(); k-- > 0;) {
      const Edge& edge = edges_[k];
      if (!marked[edge.from]) continue;
      if (!edge.is_reader || (to_readers && live_[edge.to])) marked[edge.to] = true;
    }
  }

  static std::vector<size_t> listed(const std::vector<bool>& marked) {
    std::vector<size_t> calls;
    for (size_t i = 0; i < marked.size(); ++i)
      if (marked[i]) calls.push_back(i);
    return calls;
  }

  std::deque<Event>& log_;
  uint64_t number_ = next_numbering();
  std::vector<StorageNode*> nodes_;
  std::vector<std::vector<uint32_t>> readers_;
  std::vector<Edge> edges_;  ///< by `from`, ascending; they all lead back
  std::vector<bool> live_;
};

Session::Session() : segments_(std::make_unique<SegmentCache>()) {}
Session::~Session() = default;

Session& Session::of_this_thread() {
  thread_local Session* const mine = [] {
    const std::lock_guard lock(sessions().mutex);
    return sessions().all.emplace_back(std::make_unique<Session>()).get();
  }();
  return *mine;
}

// ---- Calls ------------------------------------------------------------------------------------

void Session::take(const c10::OperatorHandle& overload, at::Stack& stack,
                   c10::function_ref<void()> run) {
  const OperatorRule& rule = rule_of(overload);
  if (rule.treatment == Treatment::view) return run();
  if (rule.treatment == Treatment::note && note(rule, stack, run)) return;
  run_at_once(rule, stack, run);
}

bool Session::note(const OperatorRule& rule, at::Stack& stack, c10::function_ref<void()> run) {
  at::Stack arguments;  // freed without the lock: a tensor's end may need Python's
  std::unique_lock lock(mutex_);
  parts_.read(rule, stack);
  if (!parts_.is_known) return false;
  CallKind* const kind = known_kind();
  if (kind == nullptr) {
    NewKind made(rule, parts_, stack);
    lock.unlock();
    run_at_once(rule, stack, run);
    lock.lock();
    auto finished = std::move(made).with_results(stack);
    kinds_[hash_of(finished->key)].push_back(std::move(finished));
    return true;
  }
  if (!may_wait(*kind, stack)) return false;
  append(*kind, stack, arguments);
  if (log_.size() >= policy::kMostPendingCalls || pending_bytes_ >= policy::kMostPendingBytes)
    run_all(Look::limit);
  return true;
}

void Session::run_at_once(const OperatorRule& rule, at::Stack& stack,
                          c10::function_ref<void()> run) {
  at_once_.fetch_add(1, std::memory_order_relaxed);
  const auto arguments = arguments_of(rule, stack);
  bool is_any_watched = false;
  for_each_watched(arguments, [&](const c10::StorageImpl&, size_t) { is_any_watched = true; });
  if (!is_any_watched) return run();

  std::vector<StorageNode::Pointer> watched;
  {
    const std::lock_guard lock(mutex_);
    for_each_watched(arguments, [&](const c10::StorageImpl& storage, size_t) {
      if (StorageNode* node = known_node(storage))
        watched.push_back(StorageNode::Pointer::reclaim_copy(node));
    });
  }
  serve(rule.overload, stack);
  run();
  const std::lock_guard lock(mutex_);
  // An operator that asks for a pointer only to read has ended that.
  for (const StorageNode::Pointer& node : watched)
    if (ready_nodes_.contains(node->address())) node->watch();
}

CallKind* Session::known_kind() {
  const auto found = kinds_.find(hash_of(parts_.words));
  if (found == kinds_.end()) return nullptr;
  for (const auto& each : found->second)
    if (each->key == parts_.words) return each.get();
  return nullptr;
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
  if (StorageNode* const node = known_node(*storage_of(indices))) {
    const Wanted wanted{node, false};
    if (serve({&wanted, 1}, Look::value)) ++looks_of_operators_[&operator_rule];
  }
  const c10::IValue& bounding = arguments[rule.bounded_by];
  const int64_t end =
      bounding.isInt() ? bounding.toInt() : bounding.toTensor().size(rule.dimension);
  const std::optional<int64_t> ignored =
      rule.ignored ? std::optional(arguments[*rule.ignored].toInt()) : std::nullopt;
  const torch::NotIntercepted scope;
  return torch::all_between(indices, 0, end, ignored);
}

void Session::append(const CallKind& kind, at::Stack& stack, at::Stack& arguments) {
  Event& event = log_.emplace_back();
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
      pending_bytes_ += shape.bytes;
      if (kind.rule->makes_indices && i == 1) note_indices(storage);
    }
  }
  ++counts_.noted;
}

StorageNode* Session::known_node(const c10::StorageImpl& storage) {
  StorageNode* const pending = StorageNode::of_pending(storage);
  if (pending != nullptr) return &pending->session() == this ? pending : nullptr;
  const auto found = ready_nodes_.find(&storage);
  return found == ready_nodes_.end() ? nullptr : found->second.get();
}

/// Whether operands in memory that others may change can be copied: nothing may be noted that
/// writes there.
bool Session::can_copy_exposed(const CallKind& kind) const {
  for (size_t k = 0; k < parts_.tensors.size(); ++k) {
    const at::Tensor& tensor = *parts_.tensors[k];
    if (StorageNode::of_pending(*storage_of(tensor)) != nullptr) continue;
    if (!torch::is_exposed(*storage_of(tensor))) continue;
    if (kind.writes(k) || tensor.nbytes() > policy::kLargestCopiedOperand ||
        !tensor.is_non_overlapping_and_dense())
      return false;
  }
  return true;
}

/// An operand of a call that is noted: a copy of what others may change.
Event::Operand Session::operand_of(const at::Tensor& tensor) {
  const c10::StorageImpl& storage = *storage_of(tensor);
  const bool is_copied = StorageNode::of_pending(storage) == nullptr && torch::is_exposed(storage);
  if (!is_copied) return {node_of(tensor), tensor.storage_offset()};
  const torch::NotIntercepted scope;
  at::Tensor copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options());
  copy.copy_(tensor);
  return {node_of(copy), 0};
}

StorageNode::Pointer Session::node_of(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  if (StorageNode* const known = known_node(*storage.unsafeGetStorageImpl()))
    return StorageNode::Pointer::reclaim_copy(known);
  StorageNode::Pointer made = StorageNode::of_ready(*this, storage);
  ready_nodes_.emplace(storage.unsafeGetStorageImpl(), made);
  return made;
}

// ---- Looks ------------------------------------------------------------------------------------

void Session::serve(const c10::OperatorHandle& overload, const at::Stack& stack) {
  const OperatorRule& rule = rule_of(overload);
  const auto arguments = arguments_of(rule, stack);
  const bool is_known = overload.schema().name().starts_with("aten::");
  for (Session* session : all_sessions()) {
    const std::lock_guard lock(session->mutex_);
    std::vector<Wanted> wanted;
    for_each_watched(arguments, [&](const c10::StorageImpl& storage, size_t argument) {
      if (StorageNode* node = session->known_node(storage))
        wanted.push_back({node, !is_known || rule.writes[argument]});
    });
    if (!wanted.empty() && session->serve(wanted, Look::value))
      ++session->looks_of_operators_[&rule];
  }
}

void Session::serve_pointer(const c10::StorageImpl& storage) {
  if (torch::is_intercepted())
    torch::note_exposed(storage);  // else an operator that runs has asked
  serve_storage(storage, /*is_written=*/true);
}

void Session::settle(const c10::StorageImpl& storage) {
  if (is_watched(storage)) serve_storage(storage, /*is_written=*/false);
}

void Session::serve_storage(const c10::StorageImpl& storage, bool is_written) {
  for (Session* session : all_sessions()) {
    const std::lock_guard lock(session->mutex_);
    StorageNode* const node = session->known_node(storage);
    if (node == nullptr || session->is_running_) continue;
    const Wanted wanted{node, is_written};
    session->serve({&wanted, 1}, Look::pointer);
  }
}

bool Session::serve(std::span<const Wanted> wanted, Look look) {
  bool has_run = false;
  if (!log_.empty()) {
    Walk walk(log_);
    std::vector<size_t> needed = walk.needed_for(wanted);
    if (!needed.empty() && options().is_disabled(kCrossIterationSwitch.name))
      needed = walk.needed_for_all();
    if (!needed.empty()) {
      count(look);
      run(needed, walk);
      has_run = true;
    }
  }
  for (const Wanted& each : wanted)
    TORCH_CHECK(!each.node->is_pending(),
                "torchjanus: the operator that was to compute this tensor has failed");
  return has_run;
}

void Session::count(Look look) {
  ++counts_.looks;
  static constexpr const char* kNames[] = {"", "an address", "a converted function",
                                           "too much pending", "the end"};
  if (look != Look::value) ++counts_.looked_at_by[kNames[static_cast<size_t>(look)]];
}

void Session::run_all(Look look) {
  const std::lock_guard lock(mutex_);
  if (log_.empty()) return;
  Walk walk(log_);
  count(look);
  const std::vector<size_t> needed = walk.needed_for_all();
  run(needed, walk);
}

void Session::run(std::span<const size_t> calls, const Walk& walk) {
  std::vector<const Event*> events;
  for (const size_t call : calls) {
    events.push_back(&log_[call]);
    for (const Event::Operand& each : log_[call].operands)
      if (!each.node->is_pending()) each.node->unwatch();
  }
  std::unordered_set<const StorageNode*> used_later;
  for (const size_t call : walk.rest(calls))
    for (const Event::Operand& each : log_[call].operands) used_later.insert(each.node.get());
  const Segment segment(std::move(events),
                        [&](const StorageNode& node) { return used_later.contains(&node); });
  size_t done = 0;
  is_running_ = true;
  try {
    const bool by_graph = segments_->run(segment, done);
    (by_graph ? counts_.run_in_graphs : counts_.run_eagerly) += calls.size();
  } catch (...) {  // memory ran out: what is left may run later, but not for ever
    is_running_ = false;
    if (done < calls.size() && std::exchange(log_[calls[done]].has_failed, true)) ++done;
    keep_rest(calls.first(done), walk);
    throw;
  }
  is_running_ = false;
  keep_rest(calls, walk);
}

void Session::keep_rest(std::span<const size_t> done, const Walk& walk) {
  std::deque<Event> rest;
  for (const size_t call : walk.rest(done)) rest.push_back(std::move(log_[call]));
  counts_.never_run += log_.size() - done.size() - rest.size();
  log_.swap(rest);
  std::unordered_map<const c10::StorageImpl*, StorageNode::Pointer> still;
  pending_bytes_ = 0;
  for (const Event& event : log_) {
    for (const Event::Operand& each : event.operands) {
      if (each.node->is_pending()) continue;
      each.node->keep();
      each.node->watch();
      still.emplace(each.node->address(), each.node);
    }
    for (const ResultShape& result : event.kind->results) pending_bytes_ += result.bytes;
  }
  for (const auto& [address, node] : ready_nodes_)
    if (!still.contains(address)) node->release();
  ready_nodes_.swap(still);
}

SessionCounts Session::counts() const {
  const std::lock_guard lock(mutex_);
  SessionCounts counts = counts_;
  for (const auto& [rule, looks] : looks_of_operators_)
    counts.looked_at_by[c10::toString(rule->overload.operator_name())] = looks;
  const SegmentCache::Counts& segments = segments_->counts();
  counts.structures = segments.structures;
  counts.graphs = segments.graphs;
  counts.given_up = segments.given_up;
  counts.at_once = at_once_.load(std::memory_order_relaxed);
  return counts;
}

Session::Progress Session::progress() const {
  const std::lock_guard lock(mutex_);
  return {counts_.noted, counts_.run_in_graphs};
}

size_t Session::pending() const {
  const std::lock_guard lock(mutex_);
  return log_.size();
}

}  // namespace janus::lazy
