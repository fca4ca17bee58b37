// A zero-initialised array for the length of one call: on the stack when it is small.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

namespace janus::speculate {

template <class T, size_t kInline>
class Scratch {
 public:
  explicit Scratch(size_t count) {
    if (count > kInline) heap_ = std::make_unique<T[]>(count);
    data_ = heap_ ? heap_.get() : inline_;
    std::fill_n(data_, count, T());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T& operator[](size_t index) { return data_[index]; }
  T* data() { return data_; }

 private:
  T inline_[kInline];
  std::unique_ptr<T[]> heap_;
  T* data_;
};

}  // namespace janus::speculate
