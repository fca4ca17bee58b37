// Memory at whose end the process ends: kernels are no code that a sanitizer sees.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace janus::kernels {

/// Bytes, zero at first, directly in front of a page that can't be read or written.
class GuardedBytes {
 public:
  GuardedBytes() : GuardedBytes(0) {}
  explicit GuardedBytes(size_t size) : size_(size) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    mapped_ = (size + page - 1) / page * page + page;
    void* start = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    const size_t used = mapped_ - page;  // qemu refuses none
    if (used > 0 && ::mprotect(start, used, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    start_ = static_cast<std::byte*>(start);
    data_ = start_ + mapped_ - page - size;
  }
  GuardedBytes(const GuardedBytes& other) : GuardedBytes(other.size_) {
    std::copy_n(other.data_, size_, data_);
  }
  GuardedBytes& operator=(GuardedBytes other) noexcept {
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    std::swap(start_, other.start_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~GuardedBytes() { ::munmap(start_, mapped_); }

  std::byte* data() { return data_; }
  size_t size() const { return size_; }

  friend bool operator==(const GuardedBytes& a, const GuardedBytes& b) {
    return std::equal(a.data_, a.data_ + a.size_, b.data_, b.data_ + b.size_);
  }

 private:
  size_t size_, mapped_ = 0;
  std::byte* start_ = nullptr;  ///< of what is mapped
  std::byte* data_ = nullptr;
};

}  // namespace janus::kernels
