// A storage that noted operators read or write.
//
// Its contents are *pending* while the operator that makes them has not run. The storage then has
// no memory, and an address that nobody can read. It refers to its node by the context of its data
// pointer, and torch calls a materializer before it gives out a mutable pointer: there the
// operators run. Storages from before
// have the same materializer while noted operators read or write them, as whoever gets a pointer
// must see what eager would have written there.
//
// A node never holds a reference to a pending storage. Autograd counts references to decide what it
// may write over, and a program sees when its tensors die.
#pragma once

#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstdint>

#include "torch/materializer.h"

namespace janus::lazy {

class Session;

class StorageNode final : public c10::intrusive_ptr_target {
 public:
  using Pointer = c10::intrusive_ptr<StorageNode>;

  /// A new storage of `bytes`, whose contents are pending, and its node.
  static Pointer make_pending(Session& session, size_t bytes, c10::Storage& storage);
  /// The node of a storage that has its memory; it is kept alive until release().
  static Pointer of_ready(Session& session, const c10::Storage& storage);
  /// The node of a storage with pending contents; null of others.
  static StorageNode* of_pending(const c10::StorageImpl& storage);

  StorageNode(Session& session, c10::weak_intrusive_ptr<c10::StorageImpl> weak)
      : session_(&session), weak_(std::move(weak)) {}

  Session& session() const { return *session_; }
  bool is_pending() const { return is_pending_; }
  /// Whether the program still has a tensor in this storage.
  bool is_alive() const { return kept_ ? kept_.use_count() > 1 : !weak_.expired(); }
  /// The address that identifies the storage while it is alive.
  const c10::StorageImpl* address() const { return address_; }
  /// A storage with its contents as far as operators have run: the program's, or one of our own
  /// where that has died.
  c10::Storage contents() const;
  /// A storage of its own in the memory of the contents, which must be kept meanwhile. Nobody is
  /// called back when an operator asks it for a pointer. `is_written`: an operator may write there.
  c10::Storage memory(bool is_written) const;
  /// Gives a pending storage its contents: those of `made`, which nobody else refers to.
  void install(c10::Storage made);

  /// Frees the contents of a storage that has died: no operator that still runs reads them.
  void drop_contents() { own_ = {}; }

  /// Keeps a storage that has its contents now, for operators that are still to read or write it.
  void keep();
  /// Has torch call back before it gives out a pointer.
  void watch();
  /// Ends watching, and lets go of a storage that has its memory.
  void release();

  // What pending_calls.cpp keeps here.
  struct Use {
    uint64_t number;  ///< of a call, which may have been removed
    bool writes;
  };
  uint64_t writer = 0;            ///< number of the last call that writes to it; 0: none
  c10::SmallVector<Use, 4> uses;  ///< as an operand, in order
  size_t pending_uses = 0;

  // What a segment keeps here.
  uint32_t number = 0;       ///< in the order in which the segment meets storages
  uint64_t numbered_in = 0;  ///< the segment in which it has that number

 private:
  void unwatch();

  Session* session_;
  c10::weak_intrusive_ptr<c10::StorageImpl> weak_;
  c10::StorageImpl* address_ = nullptr;
  c10::intrusive_ptr<c10::StorageImpl> kept_;  ///< of a storage that had its memory
  c10::Storage own_;                           ///< contents of a storage that has died
  bool is_pending_ = false;
};

/// What torch calls before it gives out a pointer to a watched storage. Set once, at the first use.
void set_materializer(torch::Materializer materializer);
torch::Materializer materializer();

/// A number that no segment has used yet.
uint64_t next_numbering();

/// Whether noted operators read or write the storage, or its contents are pending.
inline bool is_watched(const c10::StorageImpl& storage) { return torch::has_materializer(storage); }

}  // namespace janus::lazy
