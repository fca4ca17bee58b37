// See kernel_batch.h.
#include "execute/plan/kernel_batch.h"

#include <algorithm>
#include <utility>

#include "base/policy.h"
#include "base/thread_pool.h"
#include "kernels/sharing.h"

namespace janus::execute {

KernelBatch::KernelBatch(std::vector<KernelCall> calls) : calls_(std::move(calls)) {
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    const kernels::PlacedKernel& kernel = *calls_[i].placed();
    const int64_t pieces = kernel.pieces();
    const int64_t count = std::clamp<int64_t>(kernel.work() / policy::kWorkOfBatchPart, 1, pieces);
    for (int64_t k = 0; k < count; ++k)
      parts_.push_back(
          {i, pieces * k / count, pieces * (k + 1) / count, work_ + kernel.work() / count * k});
    work_ += kernel.work();
  }
}

void KernelBatch::run(const Slot* slots) {
  const bool is_shared = kernels::is_worth_sharing(work_);
  for (KernelCall& call : calls_) {
    if (is_shared)
      call.read_numbers(slots);
    else
      call.run(slots);
  }
  if (!is_shared) return;
  parallel_for(work_, kernels::work_per_thread(), [&](int64_t begin, int64_t end) {
    auto part = std::ranges::lower_bound(parts_, begin, {}, &Part::place);
    for (; part != parts_.end() && part->place < end; ++part) {
      const KernelCall& call = calls_[part->call];
      call.placed()->run_pieces(call.arguments(), part->begin, part->end);
    }
  });
}

}  // namespace janus::execute
