#include "lazy/made_storages.h"

#include <vector>

#include "base/policy.h"
#include "lazy/storage_node.h"
#include "torch/exposed.h"
#include "torch/file_backed.h"

namespace janus::lazy {

int64_t memory_limit = 0;

void MadeStorages::add(const c10::Storage& storage) {
  if (storage.nbytes() < policy::kSmallestMovedStorage) return;
  all_.emplace_back(
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage.unsafeGetStorageImpl()));
}

void MadeStorages::keep_below(size_t bytes) {
  std::deque<c10::weak_intrusive_ptr<c10::StorageImpl>> alive;
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> in_memory;
  size_t used = 0;
  for (auto& each : all_) {
    auto storage = each.lock();
    if (!storage) continue;
    alive.push_back(std::move(each));
    if (torch::is_in_file(*storage)) continue;
    used += storage->nbytes();
    in_memory.push_back(std::move(storage));
  }
  all_.swap(alive);
  for (size_t i = 0; i < in_memory.size() && used > bytes; ++i) {
    c10::StorageImpl& storage = *in_memory[i];
    if (torch::is_exposed(storage) || !torch::move_to_file(storage, materializer())) continue;
    used -= storage.nbytes();
    ++moved_;
  }
}

}  // namespace janus::lazy
