#include "torch/exposed.h"

#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "torch/file_backed.h"
#include "torch/materializer.h"
#include "torch/memory.h"

namespace janus::torch {

namespace {

/// A weak reference keeps the address from being used for another storage.
struct Exposed {
  std::mutex mutex;
  std::unordered_map<const c10::StorageImpl*, c10::weak_intrusive_ptr<c10::StorageImpl>> all;
  std::atomic<size_t> count = 0;
  size_t next_purge = 256;
};

Exposed& exposed() {
  static auto* const made = new Exposed;
  return *made;
}

}  // namespace

void note_exposed(const c10::StorageImpl& storage) {
  Exposed& known = exposed();
  const std::lock_guard lock(known.mutex);
  if (known.all.contains(&storage)) return;
  const auto strong = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(
      const_cast<c10::StorageImpl*>(&storage));  // NOLINT: it only counts
  known.all.emplace(&storage, c10::weak_intrusive_ptr<c10::StorageImpl>(strong));
  if (known.all.size() >= known.next_purge) {
    std::erase_if(known.all, [](const auto& each) { return each.second.expired(); });
    known.next_purge = 2 * known.all.size() + 256;
  }
  known.count = known.all.size();
}

bool is_exposed(const c10::StorageImpl& storage) {
  const bool is_own = is_allocators_own(data_of(storage)) || is_in_file(storage);
  return !is_own || weak_references_of_register(storage) > 0;
}

uint32_t weak_references_of_register(const c10::StorageImpl& storage) {
  Exposed& known = exposed();
  if (known.count == 0) return 0;
  const std::lock_guard lock(known.mutex);
  return known.all.contains(&storage) ? 1 : 0;
}

}  // namespace janus::torch
