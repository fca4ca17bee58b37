// Kernels at run time: one loop nest, and code for each way in which its tensors have been walked
// so far. The code for the walk that the types foretell is made at once, others when they first
// come up; a kernel for which that happens often gets code that takes any stride.
#include "kernels/kernel.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "base/options.h"
#include "base/thread_pool.h"
#include "jit/jit.h"
#include "kernels/compilation.h"
#include "kernels/emit.h"
#include "kernels/lower.h"
#include "kernels/space.h"
#include "ops/list.h"

namespace janus::kernels {
namespace {

using Code = void (*)(void* const* tensors, const int64_t* strides, const int64_t* sizes,
                      const NumberOperand* numbers, const int64_t* extents);

/// Work (elements times cost, some 3 µs) that outweighs waking a thread.
constexpr int64_t kWorkPerThread = 1 << 18;
/// Pieces of the innermost dimension start where a cache line may start.
constexpr int64_t kInnerGrain = 64;
constexpr int kMostVersions = 6;
/// Of the function in a kernel's text.
constexpr const char* kSymbol = "kernel";

/// How code comes to be there.
enum class Making { compiled, found };

/// For which walks through the space code was made. Two bits for each tensor: its Walk.
struct OrderKey {
  uint64_t walks = 0;
  int reduced_loops = 0;
  bool lanes_reduced = false;
  int registers = 1;
  bool keeps = false;

  friend bool operator==(const OrderKey&, const OrderKey&) = default;
};
static_assert(2 * kMaxTensors <= 64);

/// What a run passes on to the code beside the space.
struct Run {
  Code code;
  const NumberOperand* numbers;
  const int64_t* extents;
};

/// Vectors side by side where reductions go on for long: they keep the adders busy, and columns are
/// read in longer pieces.
constexpr int kRegisters = 4;
constexpr int64_t kLongRow = 256;
/// More work than this at a point keeps the processor busy by itself.
constexpr int64_t kLittleWork = 16;
/// What is kept of a row lies on the stack.
constexpr int64_t kMostKeptBytes = 64 << 10;
constexpr int64_t kMostElementBytes = 8;

Order order_of(const OrderKey& key, size_t tensors) {
  Order order{.walks = std::vector<Walk>(tensors),
              .reduced_loops = key.reduced_loops,
              .lanes_reduced = key.lanes_reduced,
              .registers = key.registers,
              .keeps = key.keeps};
  for (size_t t = 0; t < tensors; ++t)
    order.walks[t] = static_cast<Walk>((key.walks >> (2 * t)) & 3);
  return order;
}

class CompiledKernel final : public Kernel {
 public:
  explicit CompiledKernel(LoopNest nest) : nest_(std::move(nest)), cost_(nest_.cost()) {
    for (size_t t = 0; t < nest_.tensor_count(); ++t)
      element_sizes_[t] = graph::byte_size(nest_.tensor_dtype(t));
    widens_ = nest_.reduces && cost_ <= kLittleWork && can_widen(nest_, host_target());
  }

  ~CompiledKernel() override {
    for (const Version* version = versions_.load(); version != nullptr;) {
      const Version* next = version->next;
      delete version;
      version = next;
    }
  }

  void run(const Arguments& arguments) const override {
    TORCHJANUS_CHECK(arguments.tensors.size() == nest_.held_count() &&
                         arguments.numbers.size() == nest_.numbers.size(),
                     "kernel: ", arguments.tensors.size(), " tensors and ",
                     arguments.numbers.size(), " numbers for\n", print(nest_));
    Space space;
    if (!space.read(arguments, nest_)) return;
    space.simplify(static_cast<int>(nest_.inputs.size()));
    const Run run{code_for(order_key(space)), arguments.numbers.data(), arguments.sizes.data()};
    void* starts[kMaxTensors] = {};
    for (size_t t = 0; t < arguments.tensors.size(); ++t) starts[t] = arguments.tensors[t].data;
    run_on_threads(run, space, starts);
  }

  const std::string& llvm_text() const override {
    const Version* version = versions_.load(std::memory_order_acquire);
    if (version == nullptr) version = make_version({.walks = 0x5555555555555555 & all_tensors()});
    return version->text;
  }

  std::span<const ops::Axes> axes() const override { return nest_.axes; }
  size_t rank() const override { return static_cast<size_t>(nest_.rank); }

  /// Makes the code for these sizes and strides, so that the first run need not wait. Whether it is
  /// there; where it is only to be found, it may not be.
  bool prepare(const Arguments& arguments, Making making) const {
    Space space;
    if (!space.read(arguments, nest_)) return true;
    space.simplify(static_cast<int>(nest_.inputs.size()));
    const OrderKey key = order_key(space);
    return find_version(key) != nullptr || make_version(key, making) != nullptr;
  }

 private:
  struct Version {
    OrderKey key;
    Code code = nullptr;
    std::string text;
    const Version* next = nullptr;
  };

  // --- code --------------------------------------------------------------------------------------

  OrderKey order_key(const Space& space) const {
    OrderKey key{.reduced_loops = space.reduced_loops, .lanes_reduced = space.lanes_reduced()};
    for (int t = 0; t < space.tensors; ++t)
      key.walks |= static_cast<uint64_t>(space.walk(t)) << (2 * t);
    if (!nest_.reduces) return key;
    if (widens_ && space.sizes[0] >= kLongRow) key.registers = kRegisters;
    const int64_t bytes =
        space.lanes_reduced() ? kMostElementBytes : key.registers * jit::vector_bytes();
    key.keeps = space.row_length() * bytes <= kMostKeptBytes;
    return key;
  }

  Code code_for(const OrderKey& key) const {
    const Version* version = find_version(key);
    if (version == nullptr) version = make_version(key);
    return version->code;
  }

  const Version* find_version(const OrderKey& key) const {
    for (const Version* version = versions_.load(std::memory_order_acquire); version != nullptr;
         version = version->next)
      if (version->key == key) return version;
    return nullptr;
  }

  uint64_t all_tensors() const {
    const size_t bits = 2 * nest_.tensor_count();
    return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  }

  /// Null if code that is only to be found was not made before.
  const Version* make_version(OrderKey key, Making making = Making::compiled) const {
    const std::lock_guard lock(mutex_);
    if (const Version* made = find_version(key)) return made;
    const Version* first = versions_.load();
    int count = 0;
    for (const Version* version = first; version != nullptr; version = version->next) ++count;
    if (count >= kMostVersions) {
      key.walks = 0xaaaaaaaaaaaaaaaa & all_tensors();  // every tensor strided
      if (const Version* made = find_version(key)) return made;
    }
    auto version = std::make_unique<Version>();
    version->key = key;
    version->text = emit(nest_, order_of(key, nest_.tensor_count()), host_target());
    const bool compiles = making == Making::compiled;
    if (compiles) dump_text(version->text);
    version->code = reinterpret_cast<Code>(compiles ? jit::compile(version->text, kSymbol)
                                                    : jit::find(version->text, kSymbol));
    if (version->code == nullptr) return nullptr;
    version->next = first;
    versions_.store(version.get(), std::memory_order_release);
    return version.release();
  }

  static Target host_target() {
    return {.vector_bytes = jit::vector_bytes(), .has_function = [](std::string_view name) {
              return jit::external_function(name) != nullptr;
            }};
  }

  static void dump_text(const std::string& text) {
    static std::atomic<int> number = 0;
    if (!options().dump_folder.empty()) dump(cat("k", number++, ".ll"), text);
  }

  // --- walking the space -------------------------------------------------------------------------

  void run_on_threads(const Run& run, const Space& space, void* const* starts) const {
    const int64_t work = space.element_count() * cost_;
    const int threads = work < 2 * kWorkPerThread ? 1 : thread_count();
    const int dim = threads == 1 ? -1 : dimension_to_split(space, threads);
    if (dim < 0) return run_part(run, space, starts);
    const int64_t unit = dim == 0 ? kInnerGrain : 1;
    const int64_t units = (space.sizes[dim] + unit - 1) / unit;
    const int64_t work_per_unit = std::max<int64_t>(work / units, 1);
    parallel_for(units, (kWorkPerThread + work_per_unit - 1) / work_per_unit,
                 [&](int64_t begin, int64_t end) {
                   run_slice(run, space, starts, dim, begin * unit,
                             std::min(end * unit, space.sizes[dim]));
                 });
  }

  /// The outermost dimension if it can be shared out evenly, else the largest. Reduced ones can't
  /// be; -1: there is no other.
  static int dimension_to_split(const Space& space, int threads) {
    int outermost = -1, largest = -1;
    for (int dim = 0; dim < space.rank; ++dim) {
      if (space.reduced[dim] || space.sizes[dim] == 1) continue;
      outermost = dim;
      if (largest < 0 || space.sizes[dim] > space.sizes[largest]) largest = dim;
    }
    if (outermost < 0) return -1;
    const bool even =
        space.sizes[outermost] >= 4 * threads || space.sizes[outermost] % threads == 0;
    return even ? outermost : largest;
  }

  /// The part of the space where `begin` <= index of dimension `dim` < `end`.
  void run_slice(const Run& run, const Space& space, void* const* starts, int dim, int64_t begin,
                 int64_t end) const {
    Space slice = space;
    slice.sizes[dim] = end - begin;
    void* moved[kMaxTensors];
    for (int t = 0; t < space.tensors; ++t)
      moved[t] = static_cast<char*>(starts[t]) +
                 begin * space.strides[dim][t] * element_sizes_[static_cast<size_t>(t)];
    run_part(run, slice, moved);
  }

  /// The compiled code walks the first dimensions; the others are counted up here.
  void run_part(const Run& run, const Space& space, void* const* starts) const {
    if (space.is_inside(space.rank - 1))
      return run.code(starts, space.strides[0], space.sizes, run.numbers, run.extents);
    char* places[kMaxTensors];
    for (int t = 0; t < space.tensors; ++t) places[t] = static_cast<char*>(starts[t]);
    int64_t indices[kMaxRank] = {};
    for (;;) {
      run.code(reinterpret_cast<void* const*>(places), space.strides[0], space.sizes, run.numbers,
               run.extents);
      if (!advance(space, indices, places)) return;
    }
  }

  /// Steps to the next point of the outer dimensions; false after the last.
  bool advance(const Space& space, int64_t* indices, char** places) const {
    for (int dim = 2 + space.reduced_loops; dim < space.rank; ++dim) {
      const int64_t steps = ++indices[dim] < space.sizes[dim] ? 1 : 1 - space.sizes[dim];
      if (steps != 1) indices[dim] = 0;
      for (int t = 0; t < space.tensors; ++t)
        places[t] += steps * space.strides[dim][t] * element_sizes_[static_cast<size_t>(t)];
      if (steps == 1) return true;
    }
    return false;
  }

  LoopNest nest_;
  int64_t cost_;
  int64_t element_sizes_[kMaxTensors] = {};
  bool widens_ = false;
  mutable std::mutex mutex_;  // guards growing of versions_
  mutable std::atomic<const Version*> versions_ = nullptr;
};

// --- what the types foretell ---------------------------------------------------------------------

/// Sizes that stand for all: symbols get a number of their own that no other size divides.
class TypicalSizes {
 public:
  std::vector<int64_t> of(const graph::Shape& shape) {
    std::vector<int64_t> sizes;
    for (const graph::Dim& dim : shape) {
      const auto size = dim.evaluate([&](const std::string& name) {
        return symbols_.try_emplace(name, 1009 + 2 * static_cast<int64_t>(symbols_.size()))
            .first->second;
      });
      sizes.push_back(size.value_or(1));
    }
    return sizes;
  }

 private:
  std::map<std::string, int64_t> symbols_;
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
    for (size_t t = 0; t < values.size(); ++t) {
      const std::vector<int64_t> sizes = typical.of(values[t]->type.shape);
      const ops::Axes axes = reduces ? kernel_->axes()[t] : trailing_axes(sizes, rank);
      std::vector<int64_t>& own = strides_.emplace_back(rank, 0);
      int64_t stride = 1;
      for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) {
        if (axes[d] < 0) continue;
        own[static_cast<size_t>(axes[d])] = stride;
        sizes_[static_cast<size_t>(axes[d])] = sizes[d];
      }
    }
  }

  bool prepare(Making making) const {
    std::vector<TensorOperand> tensors;
    for (const auto& one : strides_) tensors.push_back({nullptr, one.data()});
    return kernel_->prepare({.sizes = sizes_, .tensors = tensors, .numbers = {}}, making);
  }

 private:
  std::shared_ptr<const CompiledKernel> kernel_;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<int64_t>> strides_;
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
                         (nest.reduces || output->type.shape == fused.output()->type.shape),
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
  if (reduction && options().is_disabled("reductions")) return false;
  if (!reduction && !(node.op->is(graph::Trait::elementwise) && node.outputs.size() == 1))
    return false;
  const graph::Type& type = reduction ? node.inputs[0]->type : node.output()->type;
  if (!type.is_tensor() || type.rank() > static_cast<int64_t>(kMaxRank)) return false;
  return !why_not(node).has_value();
}

}  // namespace janus::kernels
