// The calls that a session has noted and that have not run, and which of them need which others.
//
// This is kept up to date with every call, so a look costs what it makes run and not what is
// pending. A call is *live* while somebody can look at what it writes, or while a live call needs
// it.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "lazy/event.h"

namespace janus::lazy {

/// A noted call.
struct PendingCall {
  Event event;

  struct Need {
    uint64_t number;
    bool only_reads;  ///< what this call writes to, so it has to run first unless it is dead
  };
  uint64_t number = 0;                       ///< ascending, from 1
  c10::SmallVector<Need, 4> needs;           ///< earlier calls
  c10::SmallVector<uint64_t, 4> dependents;  ///< later calls that need what this one writes
  uint64_t judged_in = 0;                    ///< the question in which is_live was found out
  bool is_live = false;
  uint64_t taken_in = 0;    ///< the question that it was taken as an answer to
  bool is_running = false;  ///< ahead: it is live, and has to end before it can be removed
};

/// A storage that somebody is about to read, or perhaps to write.
struct Wanted {
  StorageNode::Pointer node;
  bool is_written = false;
};

class PendingCalls {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  /// Of the results, and of operands that only pending calls keep, as far as these are known.
  size_t bytes() const { return bytes_ + kept_bytes_; }
  /// Whether as many are pending as may be.
  bool is_full() const;

  /// The last of all. Its number is set here.
  void add(std::unique_ptr<PendingCall> call);
  /// The node of a storage with contents that pending calls use; null of others.
  StorageNode::Pointer ready_node(const c10::StorageImpl& storage) const;
  /// The same, made if there is none.
  StorageNode::Pointer ready_node(Session& session, const c10::Storage& storage);

  /// In their order, the calls that have to run before the storages may be used.
  std::vector<PendingCall*> needed_for(std::span<const Wanted> wanted);
  /// All live calls.
  std::vector<PendingCall*> needed_for_all();
  /// Whether live calls use the storage that the last question did not name.
  bool is_used_by_others(const StorageNode& node);
  /// They have run, or never will.
  void remove(std::span<PendingCall* const> calls);
  /// Removes the dead ones if there may be many; how many it has removed.
  size_t remove_dead_if_many();
  /// The same if they may keep many bytes of operands. To be asked before is_full().
  size_t remove_dead_if_heavy();
  /// Removes all; how many there were.
  size_t clear();

 private:
  PendingCall* at(uint64_t number) const;
  void depend(PendingCall& call, StorageNode& node, bool writes);
  void judge_all();
  bool is_live(PendingCall& call);
  bool is_seen(const PendingCall& call) const;
  void take(PendingCall& call, std::vector<PendingCall*>& taken) const;
  void settle(StorageNode& node);
  static size_t most_bytes();
  size_t remove_dead();

  std::deque<std::unique_ptr<PendingCall>> slots_;  ///< null where calls are removed
  uint64_t first_ = 1;                              ///< number of slots_[0]
  size_t size_ = 0;
  size_t bytes_ = 0;
  size_t met_bytes_ = 0;  ///< of operands with contents, since the last look at those that are kept
  size_t kept_bytes_ = 0;    ///< found then
  size_t live_at_last_ = 0;  ///< calls left when the dead were removed last
  uint64_t question_ = 0;
  std::unordered_map<const c10::StorageImpl*, StorageNode::Pointer> ready_nodes_;
};

}  // namespace janus::lazy
