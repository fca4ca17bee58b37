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
#include "kernels/emit.h"
#include "kernels/lower.h"
#include "kernels/space.h"
#include "ops/list.h"

namespace janus::kernels {
namespace {

using Code = void (*)(void* const* tensors, const int64_t* inner_strides,
                      const int64_t* outer_strides, int64_t inner, int64_t outer,
                      const NumberOperand* numbers);

/// Work (elements times cost, some 3 µs) that outweighs waking a thread.
constexpr int64_t kWorkPerThread = 1 << 18;
/// Pieces of the innermost dimension start where a cache line may start.
constexpr int64_t kInnerGrain = 64;
constexpr int kMostVersions = 6;

/// Two bits for each tensor: its Walk.
using WalkKey = uint64_t;
static_assert(2 * kMaxTensors <= 64);

WalkKey walk_key(const Space& space) {
  WalkKey key = 0;
  for (int t = 0; t < space.tensors; ++t) key |= static_cast<WalkKey>(space.walk(t)) << (2 * t);
  return key;
}

std::vector<Walk> walks_of(WalkKey key, size_t tensors) {
  std::vector<Walk> walks(tensors);
  for (size_t t = 0; t < tensors; ++t) walks[t] = static_cast<Walk>((key >> (2 * t)) & 3);
  return walks;
}

class CompiledKernel final : public Kernel {
 public:
  explicit CompiledKernel(LoopNest nest) : nest_(std::move(nest)), cost_(nest_.cost()) {
    for (size_t t = 0; t < nest_.tensor_count(); ++t)
      element_sizes_[t] = graph::byte_size(nest_.tensor_dtype(t));
  }

  ~CompiledKernel() override {
    for (const Version* version = versions_.load(); version != nullptr;) {
      const Version* next = version->next;
      delete version;
      version = next;
    }
  }

  void run(const Arguments& arguments) const override {
    TORCHJANUS_CHECK(arguments.tensors.size() == nest_.tensor_count() &&
                         arguments.numbers.size() == nest_.numbers.size(),
                     "kernel: ", arguments.tensors.size(), " tensors and ",
                     arguments.numbers.size(), " numbers for\n", print(nest_));
    Space space;
    if (!space.read(arguments)) return;
    space.simplify(static_cast<int>(nest_.inputs.size()));
    const Code code = code_for(walk_key(space));
    void* starts[kMaxTensors];
    for (int t = 0; t < space.tensors; ++t)
      starts[t] = arguments.tensors[static_cast<size_t>(t)].data;
    run_on_threads(code, space, starts, arguments.numbers.data());
  }

  const std::string& llvm_text() const override {
    const Version* version = versions_.load(std::memory_order_acquire);
    if (version == nullptr) version = make_version(0x5555555555555555 & all_tensors());
    return version->text;
  }

  /// Makes the code for these sizes and strides, so that the first run need not wait.
  void prepare(const Arguments& arguments) const {
    Space space;
    if (!space.read(arguments)) return;
    space.simplify(static_cast<int>(nest_.inputs.size()));
    code_for(walk_key(space));
  }

 private:
  struct Version {
    WalkKey key = 0;
    Code code = nullptr;
    std::string text;
    const Version* next = nullptr;
  };

  // --- code --------------------------------------------------------------------------------------

  Code code_for(WalkKey key) const {
    const Version* version = find_version(key);
    if (version == nullptr) version = make_version(key);
    return version->code;
  }

  const Version* find_version(WalkKey key) const {
    for (const Version* version = versions_.load(std::memory_order_acquire); version != nullptr;
         version = version->next)
      if (version->key == key) return version;
    return nullptr;
  }

  WalkKey all_tensors() const {
    const size_t bits = 2 * nest_.tensor_count();
    return bits == 64 ? ~WalkKey{0} : (WalkKey{1} << bits) - 1;
  }

  const Version* make_version(WalkKey key) const {
    const std::lock_guard lock(mutex_);
    if (const Version* made = find_version(key)) return made;
    const Version* first = versions_.load();
    int count = 0;
    for (const Version* version = first; version != nullptr; version = version->next) ++count;
    if (count >= kMostVersions) {
      key = 0xaaaaaaaaaaaaaaaa & all_tensors();  // every tensor strided
      if (const Version* made = find_version(key)) return made;
    }
    auto version = std::make_unique<Version>();
    version->key = key;
    version->text = emit(nest_, walks_of(key, nest_.tensor_count()), host_target());
    dump_text(version->text);
    version->code = reinterpret_cast<Code>(jit::compile(version->text, "kernel"));
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

  void run_on_threads(Code code, const Space& space, void* const* starts,
                      const NumberOperand* numbers) const {
    const int64_t work = space.element_count() * cost_;
    const int threads = work < 2 * kWorkPerThread ? 1 : thread_count();
    if (threads == 1) return run_part(code, space, starts, numbers);
    const int dim = dimension_to_split(space, threads);
    const int64_t unit = dim == 0 ? kInnerGrain : 1;
    const int64_t units = (space.sizes[dim] + unit - 1) / unit;
    const int64_t work_per_unit = std::max<int64_t>(work / units, 1);
    parallel_for(units, (kWorkPerThread + work_per_unit - 1) / work_per_unit,
                 [&](int64_t begin, int64_t end) {
                   run_slice(code, space, starts, numbers, dim, begin * unit,
                             std::min(end * unit, space.sizes[dim]));
                 });
  }

  /// The outermost dimension if it can be shared out evenly, else the largest.
  static int dimension_to_split(const Space& space, int threads) {
    const int outermost = space.rank - 1;
    if (space.sizes[outermost] >= 4 * threads || space.sizes[outermost] % threads == 0)
      return outermost;
    return static_cast<int>(std::max_element(space.sizes, space.sizes + space.rank) - space.sizes);
  }

  /// The part of the space where `begin` <= index of dimension `dim` < `end`.
  void run_slice(Code code, const Space& space, void* const* starts, const NumberOperand* numbers,
                 int dim, int64_t begin, int64_t end) const {
    Space slice = space;
    slice.sizes[dim] = end - begin;
    void* moved[kMaxTensors];
    for (int t = 0; t < space.tensors; ++t)
      moved[t] = static_cast<char*>(starts[t]) +
                 begin * space.strides[dim][t] * element_sizes_[static_cast<size_t>(t)];
    run_part(code, slice, moved, numbers);
  }

  /// The compiled code walks dimensions 0 and 1; the others are counted up here.
  void run_part(Code code, const Space& space, void* const* starts,
                const NumberOperand* numbers) const {
    if (space.rank == 2)
      return code(starts, space.strides[0], space.strides[1], space.sizes[0], space.sizes[1],
                  numbers);
    char* places[kMaxTensors];
    for (int t = 0; t < space.tensors; ++t) places[t] = static_cast<char*>(starts[t]);
    int64_t indices[kMaxRank] = {};
    for (;;) {
      code(reinterpret_cast<void* const*>(places), space.strides[0], space.strides[1],
           space.sizes[0], space.sizes[1], numbers);
      if (!advance(space, indices, places)) return;
    }
  }

  /// Steps to the next pair of inner dimensions; false after the last.
  bool advance(const Space& space, int64_t* indices, char** places) const {
    for (int dim = 2; dim < space.rank; ++dim) {
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
  mutable std::mutex mutex_;  // guards growing of versions_
  mutable std::atomic<const Version*> versions_ = nullptr;
};

// --- what the types foretell ---------------------------------------------------------------------

/// Sizes that stand for all: symbols get a number of their own that no other size divides.
std::vector<int64_t> typical_sizes(const graph::Shape& shape) {
  std::map<std::string, int64_t> symbols;
  std::vector<int64_t> sizes;
  for (const graph::Dim& dim : shape) {
    const auto size = dim.evaluate([&](const std::string& name) {
      return symbols.try_emplace(name, 1009 + 2 * static_cast<int64_t>(symbols.size()))
          .first->second;
    });
    sizes.push_back(size.value_or(1));
  }
  return sizes;
}

/// Strides in the iteration space of a contiguous tensor that is broadcast to it.
std::vector<int64_t> typical_strides(const graph::Shape& shape, size_t rank) {
  const std::vector<int64_t> sizes = typical_sizes(shape);
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = 1;
  for (size_t i = 0; i < sizes.size() && i < rank; ++i) {
    const int64_t size = sizes[sizes.size() - 1 - i];
    strides[rank - 1 - i] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return strides;
}

void prepare_for_types(const CompiledKernel& kernel, const graph::Node& fused) {
  const graph::Shape& shape = fused.output()->type.shape;
  const std::vector<int64_t> sizes = typical_sizes(shape);
  std::vector<std::vector<int64_t>> strides;
  const auto add = [&](const graph::Value* value) {
    if (value->type.is_tensor())
      strides.push_back(typical_strides(value->type.shape, shape.size()));
  };
  for (const graph::Value* input : fused.inputs) add(input);
  for (const graph::Value* output : fused.outputs) add(output);
  std::vector<TensorOperand> tensors;
  for (const auto& one : strides) tensors.push_back({nullptr, one.data()});
  kernel.prepare({.sizes = sizes, .tensors = tensors, .numbers = {}});
}

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
    TORCHJANUS_CHECK(output->type.is_tensor() && output->type.shape == fused.output()->type.shape,
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

std::shared_ptr<const Kernel> compile(const graph::Node& fused) {
  auto kernel = find_or_make(fused);
  prepare_for_types(*kernel, fused);
  return kernel;
}

void compile_all(const graph::Graph& graph) {
  // Lowering asks for the thread's default dtype, so it is done here; only LLVM works side by side.
  std::vector<std::pair<const graph::Node*, std::shared_ptr<const CompiledKernel>>> kernels;
  graph::for_each_node(graph.body(), [&](const graph::Node& node) {
    if (node.op == &op::fused) kernels.emplace_back(&node, find_or_make(node));
  });
  // One by one from a common counter, since some take much longer than others.
  std::atomic<size_t> next = 0;
  const auto workers = std::min<int64_t>(thread_count(), static_cast<int64_t>(kernels.size()));
  parallel_for(workers, 1, [&](int64_t, int64_t) {
    for (size_t i = next++; i < kernels.size(); i = next++)
      prepare_for_types(*kernels[i].second, *kernels[i].first);
  });
}

bool can_compile(const graph::Node& elementwise) {
  if (options().is_disabled("kernels") || elementwise.op == nullptr) return false;
  if (!elementwise.op->is(graph::Trait::elementwise) || elementwise.outputs.size() != 1)
    return false;
  const graph::Type& type = elementwise.output()->type;
  if (!type.is_tensor() || type.rank() > static_cast<int64_t>(kMaxRank)) return false;
  return !why_not(elementwise).has_value();
}

}  // namespace janus::kernels
