// Horizontal batching: independent kernels as one piece of work, a step's updates of all
// parameters, say.
//
// Many small ones are too small for the threads one by one, and large ones are shared out together.
// What each computes does not depend on that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "execute/frame/kernel_call.h"

namespace janus::execute {

class KernelBatch {
 public:
  /// Calls that are placed.
  explicit KernelBatch(std::vector<KernelCall> calls);

  std::vector<KernelCall>& calls() { return calls_; }
  const std::vector<KernelCall>& calls() const { return calls_; }
  void run(const Slot* slots);

 private:
  /// Some pieces of a call's work.
  struct Part {
    uint32_t call = 0;
    int64_t begin = 0, end = 0;
    int64_t place = 0;  ///< how much work comes before it
  };

  std::vector<KernelCall> calls_;
  std::vector<Part> parts_;
  int64_t work_ = 0;
};

}  // namespace janus::execute
