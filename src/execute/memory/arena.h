// Offset assignment: places buffers with known live ranges into one arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace janus::execute {

inline constexpr int64_t arena_alignment = 64;

/// A buffer that is alive from step `first` to step `last`, both included.
struct Buffer {
  int64_t bytes = 0;
  size_t first = 0;
  size_t last = 0;
  int64_t offset = -1;  ///< where place_buffers put it
};

/// Gives every buffer an aligned offset such that no two that are alive together overlap; returns
/// the bytes needed. Largest first, each into the smallest gap that it fits.
int64_t place_buffers(std::vector<Buffer>& buffers);

/// Aligned memory that is freed at the end; null for no bytes.
class Memory {
 public:
  Memory() = default;
  explicit Memory(int64_t bytes);
  char* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(char* memory) const;
  };
  std::unique_ptr<char, Free> data_;
};

}  // namespace janus::execute
