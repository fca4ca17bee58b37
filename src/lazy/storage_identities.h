// Numbers for storages that segments find as they begin: the same for the same storage, as long as
// it lives. Those that come again and again are parameters and other state of the program.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <unordered_map>

namespace janus::lazy {

using StorageIdentity = uint32_t;

class StorageIdentities {
 public:
  /// Also counts that a segment has found it.
  StorageIdentity of(c10::StorageImpl& storage);
  /// Whether it lives, and was found so often that it will come again.
  bool is_lasting(StorageIdentity identity) const;

 private:
  struct Known {
    StorageIdentity identity = 0;
    int found = 0;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  ///< keeps the address its own
  };
  void forget_dead();

  std::unordered_map<const c10::StorageImpl*, Known> known_;
  std::unordered_map<StorageIdentity, const c10::StorageImpl*> lasting_;
  StorageIdentity next_ = 0;
  size_t most_ = 1024;  ///< dead ones are forgotten when there are more
};

}  // namespace janus::lazy
