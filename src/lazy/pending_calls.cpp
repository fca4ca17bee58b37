#include "lazy/pending_calls.h"

#include <algorithm>
#include <utility>

#include "base/policy.h"
#include "lazy/made_storages.h"

namespace janus::lazy {

namespace {

constexpr size_t kShareOfPending = 4;  // of a memory limit, and for operands; chosen, not measured

}  // namespace

size_t PendingCalls::most_bytes() {
  return memory_limit > 0 ? static_cast<size_t>(memory_limit) / kShareOfPending
                          : policy::kMostPendingBytes;
}

bool PendingCalls::is_full() const {
  constexpr size_t kMostHoles = 4;  // for each call
  return size_ >= policy::kMostPendingCalls || bytes() >= most_bytes() ||
         kShareOfPending * kept_bytes_ >= most_bytes() ||
         slots_.size() >= (kMostHoles + 1) * policy::kMostPendingCalls;
}

PendingCall* PendingCalls::at(uint64_t number) const {
  return number < first_ ? nullptr : slots_[number - first_].get();
}

void PendingCalls::add(std::unique_ptr<PendingCall> added) {
  PendingCall& call = *slots_.emplace_back(std::move(added));
  call.number = first_ + slots_.size() - 1;
  const Event& event = call.event;
  for (size_t k = 0; k < event.operands.size(); ++k)
    depend(call, *event.operands[k].node, event.kind->writes(k));
  for (const StorageNode::Pointer& node : event.results) node->writer = call.number;
  for (const ResultShape& result : event.kind->results) bytes_ += result.bytes;
  ++size_;
}

void PendingCalls::depend(PendingCall& call, StorageNode& node, bool writes) {
  PendingCall* const writer = at(node.writer);
  if (writer != nullptr && writer != &call) {
    call.needs.push_back({writer->number, false});
    writer->dependents.push_back(call.number);
  }
  auto& uses = node.uses;
  if (writes) {
    for (size_t i = uses.size(); i-- > 0 && !uses[i].writes;) {
      const PendingCall* const reader = at(uses[i].number);
      if (reader != nullptr && reader != &call) call.needs.push_back({reader->number, true});
    }
    node.writer = call.number;
  }
  const auto is_removed = [&](const StorageNode::Use& use) { return at(use.number) == nullptr; };
  if (uses.size() == uses.capacity())
    uses.erase(std::ranges::remove_if(uses, is_removed).begin(), uses.end());
  uses.push_back({call.number, writes});
  ++node.pending_uses;
}

StorageNode::Pointer PendingCalls::ready_node(const c10::StorageImpl& storage) const {
  const auto found = ready_nodes_.find(&storage);
  return found == ready_nodes_.end() ? StorageNode::Pointer() : found->second;
}

StorageNode::Pointer PendingCalls::ready_node(Session& session, const c10::Storage& storage) {
  auto& node = ready_nodes_[storage.unsafeGetStorageImpl()];
  if (!node) {
    node = StorageNode::of_ready(session, storage);
    met_bytes_ += storage.nbytes();
  }
  return node;
}

// ---- Questions ---------------------------------------------------------------------------------

/// Whether the program can look at what the call writes, or it runs.
bool PendingCalls::is_seen(const PendingCall& call) const {
  const auto is_seen_in = [&](const StorageNode& node) {
    return node.writer == call.number && node.is_alive();
  };
  if (call.is_running) return true;
  const Event& event = call.event;
  for (const StorageNode::Pointer& node : event.results)
    if (is_seen_in(*node)) return true;
  for (size_t k = 0; k < event.operands.size(); ++k)
    if (event.kind->writes(k) && is_seen_in(*event.operands[k].node)) return true;
  return false;
}

bool PendingCalls::is_live(PendingCall& asked) {
  if (asked.judged_in == question_) return asked.is_live;
  std::vector<PendingCall*> met = {&asked}, open = {&asked};
  asked.judged_in = question_;
  asked.is_live = false;
  while (!open.empty()) {
    PendingCall& call = *open.back();
    open.pop_back();
    bool is_needed = is_seen(call);
    for (size_t i = 0; i < call.dependents.size() && !is_needed; ++i) {
      PendingCall* const next = at(call.dependents[i]);
      if (next == nullptr) continue;
      if (next->judged_in == question_) {
        is_needed = next->is_live;
        continue;
      }
      next->judged_in = question_;
      next->is_live = false;
      met.push_back(next);
      open.push_back(next);
    }
    if (!is_needed) continue;
    for (PendingCall* each : met) each->judged_in = 0;  // nothing is known of the others
    asked.judged_in = question_;
    return asked.is_live = true;
  }
  return false;
}

void PendingCalls::judge_all() {
  ++question_;
  for (auto slot = slots_.rbegin(); slot != slots_.rend(); ++slot) {
    if (*slot == nullptr) continue;
    PendingCall& call = **slot;
    call.judged_in = question_;
    call.is_live = is_seen(call) || std::ranges::any_of(call.dependents, [&](uint64_t number) {
                     const PendingCall* const next = at(number);
                     return next != nullptr && next->is_live;
                   });
  }
}

void PendingCalls::take(PendingCall& call, std::vector<PendingCall*>& taken) const {
  if (std::exchange(call.taken_in, question_) != question_) taken.push_back(&call);
}

std::vector<PendingCall*> PendingCalls::needed_for(std::span<const Wanted> wanted) {
  ++question_;
  std::vector<PendingCall*> taken;
  for (const Wanted& each : wanted) {
    if (PendingCall* const writer = at(each.node->writer)) take(*writer, taken);
    const auto& uses = each.node->uses;
    for (size_t i = uses.size(); each.is_written && i-- > 0 && !uses[i].writes;)
      if (PendingCall* const reader = at(uses[i].number); reader != nullptr && is_live(*reader))
        take(*reader, taken);
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    for (const PendingCall::Need& need : taken[i]->needs) {
      PendingCall* const earlier = at(need.number);
      if (earlier != nullptr && (!need.only_reads || is_live(*earlier))) take(*earlier, taken);
    }
  }
  std::ranges::sort(taken, {}, &PendingCall::number);
  return taken;
}

std::vector<PendingCall*> PendingCalls::needed_for_all() {
  judge_all();
  std::vector<PendingCall*> taken;
  for (const auto& slot : slots_)
    if (slot != nullptr && slot->is_live) take(*slot, taken);
  return taken;
}

bool PendingCalls::is_used_by_others(const StorageNode& node) {
  return std::ranges::any_of(node.uses, [&](const StorageNode::Use& use) {
    PendingCall* const call = at(use.number);
    return call != nullptr && call->taken_in != question_ && is_live(*call);
  });
}

// ---- Removal -----------------------------------------------------------------------------------

/// Watches a storage with contents while pending calls use it, and lets go of it afterwards.
void PendingCalls::settle(StorageNode& node) {
  if (node.is_pending()) return;
  if (node.pending_uses == 0) {
    node.release();
    ready_nodes_.erase(node.address());
    return;
  }
  node.keep();
  node.watch();
  ready_nodes_.try_emplace(node.address(), StorageNode::Pointer::reclaim_copy(&node));
}

void PendingCalls::remove(std::span<PendingCall* const> calls) {
  std::vector<std::unique_ptr<PendingCall>> removed;
  for (PendingCall* const call : calls) {
    for (const Event::Operand& each : call->event.operands) --each.node->pending_uses;
    for (const ResultShape& result : call->event.kind->results) bytes_ -= result.bytes;
    removed.push_back(std::move(slots_[call->number - first_]));
    --size_;
  }
  for (const auto& call : removed) {
    for (const Event::Operand& each : call->event.operands) settle(*each.node);
    for (const StorageNode::Pointer& each : call->event.results) settle(*each);
  }
  while (!slots_.empty() && slots_.front() == nullptr) {
    slots_.pop_front();
    ++first_;
  }
}

size_t PendingCalls::remove_dead_if_many() {
  constexpr size_t kFew = 64;
  return size_ < 2 * live_at_last_ + kFew ? 0 : remove_dead();
}

/// Operands that the program has dropped are kept by the calls that are to read them.
size_t PendingCalls::remove_dead_if_heavy() {
  if (kShareOfPending * met_bytes_ < most_bytes()) return 0;
  const size_t removed = remove_dead();
  met_bytes_ = kept_bytes_ = 0;
  for (const auto& [storage, node] : ready_nodes_)
    if (!node->is_alive()) kept_bytes_ += storage->nbytes();
  return removed;
}

size_t PendingCalls::remove_dead() {
  judge_all();
  std::vector<PendingCall*> dead;
  for (const auto& slot : slots_)
    if (slot != nullptr && !slot->is_live) dead.push_back(slot.get());
  remove(dead);
  live_at_last_ = size_;
  return dead.size();
}

size_t PendingCalls::clear() {
  std::vector<PendingCall*> all;
  for (const auto& slot : slots_)
    if (slot != nullptr) all.push_back(slot.get());
  remove(all);
  live_at_last_ = 0;
  met_bytes_ = kept_bytes_ = 0;
  return all.size();
}

}  // namespace janus::lazy
