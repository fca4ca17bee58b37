// See compilation.h. The code for the walk that the types foretell is made at once, others when
// they first come up.
#include "kernels/compilation.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "base/options.h"
#include "base/thread_pool.h"
#include "kernels/compiled_kernel.h"
#include "kernels/lower.h"
#include "kernels/placement.h"
#include "ops/list.h"

namespace janus::kernels {
namespace {

// --- what the types foretell ---------------------------------------------------------------------

/// Sizes that stand for all: symbols get a number of their own that no other size divides.
class TypicalSizes {
 public:
  std::vector<int64_t> of(const graph::Shape& shape) {
    std::vector<int64_t> sizes;
    for (const graph::Dim& dim : shape) {
      const auto size = dim.evaluate([&](const std::string& name) {
        varies_ = true;
        return symbols_.try_emplace(name, 1009 + 2 * static_cast<int64_t>(symbols_.size()))
            .first->second;
      });
      sizes.push_back(size.value_or(1));
    }
    return sizes;
  }
  bool varies() const { return varies_; }

 private:
  std::map<std::string, int64_t> symbols_;
  bool varies_ = false;
};

/// The axes of a tensor that is broadcast to a space of that rank.
ops::Axes trailing_axes(const std::vector<int64_t>& sizes, size_t rank) {
  ops::Axes axes;
  for (size_t d = 0; d < sizes.size(); ++d)
    axes.push_back(sizes[d] == 1 ? -1 : static_cast<int>(rank - sizes.size() + d));
  return axes;
}

/// A kernel, and a run of it as the types of its node foretell it.
class Foretold {
 public:
  Foretold(std::shared_ptr<const CompiledKernel> kernel, const graph::Node& fused)
      : kernel_(std::move(kernel)) {
    std::vector<const graph::Value*> values;
    for (const graph::Value* input : fused.inputs)
      if (input->type.is_tensor()) values.push_back(input);
    values.insert(values.end(), fused.outputs.begin(), fused.outputs.end());
    const bool reduces = !kernel_->axes().empty();
    const size_t rank = reduces ? kernel_->rank() : fused.output()->type.shape.size();
    TypicalSizes typical;
    sizes_.assign(rank, 1);
    const std::span<const int64_t> fixed = kernel_->fixed_sizes();
    for (size_t d = 0; d < fixed.size(); ++d)
      if (fixed[d] >= 0) sizes_[d] = fixed[d];
    for (size_t t = 0; t < values.size(); ++t) {
      const std::vector<int64_t> sizes = typical.of(values[t]->type.shape);
      const ops::Axes axes = reduces ? kernel_->axes()[t] : trailing_axes(sizes, rank);
      std::vector<int64_t> own(sizes.size());
      int64_t stride = 1;
      for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) {
        own[d] = stride;
        if (axes[d] >= 0) sizes_[static_cast<size_t>(axes[d])] = sizes[d];
      }
      strides_.push_back(strides_in_space(rank, axes, kernel_->map(t), own, sizes));
    }
    varies_ = typical.varies();
  }

  bool prepare(Making making) const {
    std::vector<TensorOperand> tensors;
    for (const auto& one : strides_) tensors.push_back({nullptr, one.data()});
    return kernel_->prepare(
        {.sizes = sizes_, .tensors = tensors, .numbers = {}, .has_other_sizes = varies_}, making);
  }

 private:
  std::shared_ptr<const CompiledKernel> kernel_;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<int64_t>> strides_;
  bool varies_ = false;
};

// --- cache ---------------------------------------------------------------------------------------

class Cache {
 public:
  std::shared_ptr<const CompiledKernel> find_or_make(LoopNest nest) {
    const std::string key = print(nest);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const CompiledKernel>& kernel = kernels_[key];
    if (kernel == nullptr) kernel = std::make_shared<CompiledKernel>(std::move(nest));
    return kernel;
  }

  static Cache& instance() {
    static Cache* const cache = new Cache;  // kernels may run until the process ends
    return *cache;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>> kernels_;
};

void check_limits(const graph::Node& fused, const LoopNest& nest) {
  TORCHJANUS_CHECK(nest.tensor_count() <= kMaxTensors, "fused: ", nest.tensor_count(),
                   " tensors, at most ", kMaxTensors);
  for (const graph::Value* output : fused.outputs) {
    TORCHJANUS_CHECK(output->type.is_tensor() &&
                         (nest.has_rank || output->type.shape == fused.output()->type.shape),
                     "fused: results differ in shape: ", output->type, " and ",
                     fused.output()->type);
    TORCHJANUS_CHECK(output->type.rank() <= static_cast<int64_t>(kMaxRank), "fused: rank ",
                     output->type.rank());
  }
}

std::shared_ptr<const CompiledKernel> find_or_make(const graph::Node& fused) {
  TORCHJANUS_CHECK(fused.blocks.size() == 1 && !fused.outputs.empty(), "fused: no block");
  LoopNest nest;
  try {
    nest = lower_block(*fused.blocks.front());
  } catch (const Unsupported& unsupported) {
    throw InternalError(cat("fused: kernels do not have ", unsupported.reason));
  }
  check_limits(fused, nest);
  return Cache::instance().find_or_make(std::move(nest));
}

}  // namespace

std::shared_ptr<const Kernel> kernel_of(const graph::Node& fused) { return find_or_make(fused); }

std::shared_ptr<const Kernel> compile(const graph::Node& fused) {
  auto kernel = find_or_make(fused);
  Foretold(kernel, fused).prepare(Making::compiled);
  return kernel;
}

namespace {

/// Lowering asks for the thread's default dtype, so it is done here; only LLVM works elsewhere.
std::vector<Foretold> all_foretold(const graph::Graph& graph) {
  std::vector<Foretold> all;
  graph::for_each_node(graph.body(), [&](const graph::Node& node) {
    if (node.op == &op::fused) all.emplace_back(find_or_make(node), node);
  });
  return all;
}

}  // namespace

void compile_all(const graph::Graph& graph) {
  const std::vector<Foretold> all = all_foretold(graph);
  // One by one from a common counter, since some take much longer than others.
  std::atomic<size_t> next = 0;
  const auto workers = std::min<int64_t>(thread_count(), static_cast<int64_t>(all.size()));
  parallel_for(workers, 1, [&](int64_t, int64_t) {
    for (size_t i = next++; i < all.size(); i = next++) all[i].prepare(Making::compiled);
  });
}

std::shared_ptr<BackgroundWork> begin_compiling(const graph::Graph& graph) {
  BackgroundWork::Steps steps;
  for (Foretold& each : all_foretold(graph)) {
    if (each.prepare(Making::found)) continue;
    steps.emplace_back([one = std::move(each)] { one.prepare(Making::compiled); });
  }
  return steps.empty() ? nullptr : BackgroundWork::start(std::move(steps));
}

bool can_compile(const graph::Node& node) {
  if (options().is_disabled("kernels") || node.op == nullptr) return false;
  const auto reduction = ops::reduction_of(node);
  const bool reindexes = ops::is_reindexing(node);
  if ((reduction || reindexes) && options().is_disabled("reductions")) return false;
  if (!reduction && !reindexes &&
      !(node.op->is(graph::Trait::elementwise) && node.outputs.size() == 1))
    return false;
  const graph::Type& type = reduction ? node.inputs[0]->type : node.output()->type;
  if (!type.is_tensor() || type.rank() > static_cast<int64_t>(kMaxRank)) return false;
  return !why_not(node).has_value();
}

}  // namespace janus::kernels
