// See memory.h.
#include "torch/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/fault.h"
#include "base/policy.h"
#include "torch/certain_part.h"
#include "torch/run_scope.h"
#include "torch/ways.h"

// MKL's own, which libtorch_cpu exports where it was built with it: what each thread has for packed
// operands is kept until somebody asks for it.
extern "C" __attribute__((weak)) void mkl_serv_free_buffers();

namespace janus::torch {

using execute::Placement;

namespace {

/// Blocks by address and, as far as they are free, by size. It holds little more than was once in
/// use at the same time; what exceeds that is given back, the longest unused first. The little more
/// is so that a small block does not drive out a large one that is asked for in every run.
class Pool {
 public:
  explicit Pool(c10::Allocator& source) : source_(source) {}

  void* take(size_t bytes) {
    bytes = (bytes + policy::kPoolGranularity - 1) / policy::kPoolGranularity *
            policy::kPoolGranularity;
    {
      const std::lock_guard lock(mutex_);
      const auto found = free_.lower_bound(bytes);
      // A block much larger than what is wanted is left for something larger.
      if (found != free_.end() && found->first <= bytes + bytes / 4) {
        void* memory = found->second->memory;
        idle_ -= found->first;
        use(found->first);
        unused_.erase(found->second);
        free_.erase(found);
        return memory;
      }
    }
    void* memory = source_.raw_allocate(bytes);
    const std::lock_guard lock(mutex_);
    if (!std::exchange(keeps_, true)) refilled_ = true;
    sizes_.emplace(memory, bytes);
    use(bytes);
    trim(most_used_ + most_used_ / 16);
    return memory;
  }

  /// False if the block is not of this pool.
  bool give_back(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return false;
    used_ -= found->second;
    if (!keeps_) {
      sizes_.erase(found);
      source_.raw_deallocate(memory);
      return true;
    }
    idle_ += found->second;
    unused_.push_back({memory, {}});
    const auto last = std::prev(unused_.end());
    last->place = free_.emplace(found->second, last);
    return true;
  }

  void trim_all() {
    const std::lock_guard lock(mutex_);
    most_used_ = used_;
    trim(used_);
    keeps_ = refilled_ = false;
  }

  /// True once after it has got blocks again, when all had been given back.
  bool was_refilled() { return refilled_ && refilled_.exchange(false); }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  struct Unused;
  using Free = std::multimap<size_t, std::list<Unused>::iterator>;
  struct Unused {
    void* memory;
    Free::iterator place;
  };

  void use(size_t bytes) {
    used_ += bytes;
    most_used_ = std::max(most_used_, used_);
  }

  void trim(size_t most) {
    while (!unused_.empty() && used_ + idle_ > most) {
      const Unused oldest = unused_.front();
      idle_ -= oldest.place->first;
      free_.erase(oldest.place);
      unused_.pop_front();
      sizes_.erase(oldest.memory);
      source_.raw_deallocate(oldest.memory);
    }
  }

  c10::Allocator& source_;
  std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_;
  Free free_;
  std::list<Unused> unused_;  // the longest unused first
  size_t used_ = 0, idle_ = 0, most_used_ = 0;
  bool keeps_ = true;  ///< what is freed: once all was given back, not before it is asked again
  std::atomic<bool> refilled_ = false;
};

thread_local bool pooled = false;
thread_local PlacedScope* placing = nullptr;
Pool* pool = nullptr;
c10::Allocator* ordinary = nullptr;

void release(void* memory) {
  if (memory == nullptr || (placing != nullptr && placing->is_place(memory))) return;
  if (!pool->give_back(memory)) ordinary->raw_deallocate(memory);
}

void leave_alone(void*) {}

void trim_malloc() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

class RunAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (!pooled) return ordinary->allocate(bytes);
    if (!is_certain_part()) fault_point(Fault::memory);
    if (placing == nullptr) return allocate_new(bytes);
    if (void* place = placing->place_for(bytes)) {
      placing->note(bytes, place);
      return {place, place, leave_alone, c10::Device(c10::kCPU)};
    }
    c10::DataPtr memory = allocate_new(bytes);
    placing->note(bytes, memory.get());
    return memory;
  }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, size_t count) const override {
    default_copy_data(to, from, count);
  }

 private:
  static c10::DataPtr allocate_new(size_t bytes) {
    if (bytes < policy::kLeastPooled) return ordinary->allocate(bytes);
    void* memory = pool->take(bytes);
    return {memory, memory, release, c10::Device(c10::kCPU)};
  }
};

}  // namespace

bool is_allocators_own(const c10::DataPtr& memory) {
  return memory.get_deleter() == release || memory.get_deleter() == ordinary->raw_deleter();
}

void install_allocator() {
  static RunAllocator allocator;
  ordinary = c10::GetCPUAllocator();
  pool = new Pool(*ordinary);  // never destroyed: tensors may outlive everything else
  // A child of a fork may free what the parent's threads had at hand.
  pthread_atfork([] { pool->lock(); }, [] { pool->unlock(); }, [] { pool->unlock(); });
  c10::SetCPUAllocator(&allocator);
}

PooledScope::PooledScope() : outer_(std::exchange(pooled, true)) {}

/// The first run after all was given back finds its blocks by and by: it gets one size after the
/// other and gives back what none fits. As much as it keeps is free in malloc's memory by then (24
/// MiB for Inception-v3), and later runs, which find what they need in the pool, never ask for it.
PooledScope::~PooledScope() {
  pooled = outer_;
  if (!outer_ && pool->was_refilled()) trim_malloc();
}

PlacedScope::PlacedScope(std::span<Placement> placements)
    : outer_(std::exchange(placing, this)), placements_(placements) {}
PlacedScope::~PlacedScope() { placing = outer_; }

bool PlacedScope::concerns(size_t bytes) const {
  return std::any_of(placements_.begin(), placements_.end(), [&](const Placement& placement) {
    return static_cast<size_t>(placement.bytes) == bytes;
  });
}

bool PlacedScope::is_place(const void* memory) const {
  return std::any_of(placements_.begin(), placements_.end(),
                     [&](const Placement& placement) { return placement.memory == memory; });
}

int64_t PlacedScope::count(size_t bytes, const void* memory) const {
  int64_t result = 0;
  for (size_t i = 0; i < seen_count_; ++i) {
    if (seen_[i].bytes != bytes) continue;
    if (memory != nullptr && seen_[i].memory == memory) break;
    ++result;
  }
  return result;
}

void* PlacedScope::place_for(size_t bytes) const {
  if (!concerns(bytes)) return nullptr;
  const int64_t number = count(bytes);
  for (const Placement& placement : placements_) {
    if (static_cast<size_t>(placement.bytes) == bytes && placement.ordinal == number) {
      return placement.memory;
    }
  }
  return nullptr;
}

void PlacedScope::note(size_t bytes, const void* memory) {
  if (concerns(bytes) && seen_count_ < seen_.size()) seen_[seen_count_++] = {bytes, memory};
}

void PlacedScope::correct(Placement& placement, const void* memory) const {
  const auto bytes = static_cast<size_t>(placement.bytes);
  const int64_t number = count(bytes, memory);
  if (number < count(bytes)) placement.ordinal = number;
}

void give_back_free_memory() {
  ways_were_compared = false;
  pool->trim_all();
  if (mkl_serv_free_buffers != nullptr) mkl_serv_free_buffers();
  trim_malloc();
}

}  // namespace janus::torch
