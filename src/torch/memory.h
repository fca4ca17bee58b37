// Memory of the tensors that operators make while a graph runs.
//
// ATen's operators allocate their results themselves. Outside of runs that goes to ATen's own
// allocator as ever; inside, large blocks come from a pool that keeps what was freed, since new
// pages of the system cost more than many an operator, and a result whose place was planned is made
// right there.
#pragma once

#include <c10/core/Allocator.h>

#include <array>
#include <span>

#include "execute/library/operation.h"

namespace janus::torch {

/// Whether the memory is of ATen's allocator or of the pool: freed when its owner is, and seen by
/// nobody else.
bool is_allocators_own(const c10::DataPtr& memory);

/// Puts the pool in front of ATen's allocator; called once.
void install_allocator();

/// From here to the end of the scope this thread allocates from the pool.
class PooledScope {
 public:
  PooledScope();
  ~PooledScope();
  PooledScope(const PooledScope&) = delete;
  PooledScope& operator=(const PooledScope&) = delete;

 private:
  bool outer_;
};

/// From here to the end of the scope this thread's allocations of the given sizes are made at the
/// given addresses, each once: of the allocations of its size, the one of number `ordinal`.
class PlacedScope {
 public:
  explicit PlacedScope(std::span<execute::Placement> placements);
  ~PlacedScope();
  PlacedScope(const PlacedScope&) = delete;
  PlacedScope& operator=(const PlacedScope&) = delete;

  /// For a result that came to lie elsewhere, at `memory`: notes which allocation it was, so that
  /// it is placed next time.
  void correct(execute::Placement& placement, const void* memory) const;

  /// For the allocator: the place of the allocation that comes next, null if it has none.
  void* place_for(size_t bytes) const;
  void note(size_t bytes, const void* memory);
  bool is_place(const void* memory) const;

 private:
  struct Allocation {
    size_t bytes;
    const void* memory;
  };
  bool concerns(size_t bytes) const;
  /// How many of `seen_` are of that size, up to the one at `memory`.
  int64_t count(size_t bytes, const void* memory = nullptr) const;

  PlacedScope* outer_;
  std::span<execute::Placement> placements_;
  std::array<Allocation, 32> seen_;
  size_t seen_count_ = 0;
};

/// Gives all that is free, of the pool and of malloc, back to the system.
void give_back_free_memory();

}  // namespace janus::torch
