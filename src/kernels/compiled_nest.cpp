#include "kernels/compiled_nest.h"

#include <algorithm>
#include <memory>

#include "base/options.h"
#include "base/policy.h"
#include "base/processor.h"
#include "base/thread_pool.h"
#include "jit/jit.h"
#include "kernels/emit.h"
#include "kernels/sharing.h"

namespace janus::kernels {
namespace {

/// Of the function in a kernel's text.
constexpr const char* kSymbol = "kernel";
static_assert(2 * kMaxTensors <= 64);

constexpr int64_t kMostElementBytes = 8;

Target host_target() {
  return {.vector_bytes = jit::vector_bytes(),
          .has_fused_multiply_add = has_fused_multiply_add(),
          .has_function = [](std::string_view name) {
            return jit::external_function(name) != nullptr;
          }};
}

void dump_text(const std::string& text) {
  static std::atomic<int> number = 0;
  if (!options().dump_folder.empty()) dump(cat("k", number++, ".ll"), text);
}

/// The outermost dimension if it can be shared out evenly, else the largest. Reduced ones can't
/// be; -1: there is no other.
int dimension_to_split(const Space& space, int threads) {
  int outermost = -1, largest = -1;
  for (int dim = 0; dim < space.rank; ++dim) {
    if (space.reduced[dim] || space.sizes[dim] == 1) continue;
    outermost = dim;
    if (largest < 0 || space.sizes[dim] > space.sizes[largest]) largest = dim;
  }
  if (outermost < 0) return -1;
  const bool even = space.sizes[outermost] >= 4 * threads || space.sizes[outermost] % threads == 0;
  return even ? outermost : largest;
}

}  // namespace

CompiledNest::CompiledNest(LoopNest nest) : nest_(std::move(nest)), cost_(nest_.cost()) {
  for (size_t t = 0; t < nest_.tensor_count(); ++t)
    element_sizes_[t] = graph::byte_size(nest_.tensor_dtype(t));
  for (const Instruction& one : nest_.code)
    if (one.opcode == Opcode::load && one.operands[0] < 0 && one.operands[1] < 0)
      read_in_place_ |= uint32_t{1} << one.index;
  widens_ =
      nest_.combines() && cost_ <= policy::kLittleWork && can_widen(nest_, host_target(), false);
  widens_rows_ = nest_.combines() && can_widen(nest_, host_target(), true);
}

CompiledNest::~CompiledNest() {
  for (const Version* version = versions_.load(); version != nullptr;) {
    const Version* next = version->next;
    delete version;
    version = next;
  }
}

std::string CompiledNest::text() const {
  const Version* version = versions_.load(std::memory_order_acquire);
  if (version == nullptr) version = make_version({.walks = 0x5555555555555555 & all_tensors()});
  return text_for(version->key);
}

// ---- Code ---------------------------------------------------------------------------------------

Order CompiledNest::order_of(const OrderKey& key, size_t tensors) {
  Order order{.walks = std::vector<Walk>(tensors),
              .reduced_loops = key.reduced_loops,
              .lanes_reduced = key.lanes_reduced,
              .registers = key.registers,
              .keeps = key.keeps,
              .past_cache = key.past_cache,
              .ahead = key.ahead};
  for (size_t t = 0; t < tensors; ++t)
    order.walks[t] = static_cast<Walk>((key.walks >> (2 * t)) & 3);
  return order;
}

std::string CompiledNest::text_for(const OrderKey& key) const {
  return emit(nest_, order_of(key, nest_.tensor_count()), host_target());
}

CompiledNest::OrderKey CompiledNest::order_key(const Space& space, void* const* starts) const {
  OrderKey key{.reduced_loops = space.reduced_loops, .lanes_reduced = space.lanes_reduced()};
  for (int t = 0; t < space.tensors; ++t)
    key.walks |= static_cast<uint64_t>(space.walk(t)) << (2 * t);
  key.past_cache = stored_past_cache(space, starts);
  key.ahead = fetched_ahead(space);
  if (!nest_.combines()) return key;
  if (space.sizes[0] >= policy::kLongRow && widens_)
    key.registers = policy::kReductionVectors;
  else if (space.sizes[0] >= policy::kLongRow && widens_rows_ && space.lanes_reduced())
    key.registers = policy::kCostlyReductionVectors;
  const int64_t bytes =
      space.lanes_reduced() ? kMostElementBytes : key.registers * jit::vector_bytes();
  key.keeps = space.row_length() * bytes <= policy::kMostKeptBytes;
  return key;
}

/// Tensors that come from memory, in the order in which they lie there or down columns: a processor
/// foresees by itself what is read next, but not beyond the end of a page.
uint32_t CompiledNest::fetched_ahead(const Space& space) const {
  if (space.has_other_sizes) return 0;
  const bool down_columns = space.reduced_loops > 0 && !space.lanes_reduced();
  const int next = space.reduced_loops > 0 ? 2 : 1;
  uint32_t ahead = 0;
  for (int t = 0; t < space.tensors; ++t) {
    if ((read_in_place_ >> t & 1) == 0 || space.walk(t) != Walk::contiguous) continue;
    const int64_t row_bytes = space.sizes[0] * element_sizes_[static_cast<size_t>(t)];
    const int64_t stride = space.strides[next][t];
    const bool follows = stride == space.sizes[0] || row_bytes >= policy::kLongRowBytes;
    if (space.count_of(t) * element_sizes_[static_cast<size_t>(t)] >= policy::kFarBytes &&
        (down_columns ? stride != 0 : follows))
      ahead |= uint32_t{1} << t;
  }
  return ahead;
}

/// Large results that lie apart from what is read: the processor need not read what it overwrites.
uint32_t CompiledNest::stored_past_cache(const Space& space, void* const* starts) const {
  if (space.has_other_sizes) return 0;
  uint32_t stored = 0;
  for (int t = static_cast<int>(nest_.inputs.size()); t < static_cast<int>(nest_.held_count());
       ++t) {
    const int64_t bytes = element_sizes_[static_cast<size_t>(t)];
    if (space.walk(t) != Walk::contiguous || space.count_of(t) * bytes < policy::kPastCacheBytes)
      continue;
    bool fits = starts == nullptr || (reinterpret_cast<uintptr_t>(starts[t]) % kLineBytes == 0 &&
                                      !takes_place_of_input(t, starts));
    for (int dim = 1; dim < space.rank; ++dim)
      fits = fits && space.strides[dim][t] * bytes % kLineBytes == 0;
    if (fits) stored |= uint32_t{1} << t;
  }
  return stored;
}

bool CompiledNest::takes_place_of_input(int output, void* const* starts) const {
  return std::find(starts, starts + nest_.inputs.size(), starts[output]) !=
         starts + nest_.inputs.size();
}

bool CompiledNest::prepare(const Space& space, Making making) const {
  const auto is_there = [&](const OrderKey& key) {
    return find_version(key) != nullptr || make_version(key, making) != nullptr;
  };
  const OrderKey key = order_key(space, nullptr);
  if (key.past_cache == 0) return is_there(key);
  // Results that lie otherwise, or in the place of what is read, are known to a run only.
  OrderKey anywhere = key;
  anywhere.past_cache = 0;
  const bool is_there_for_others = is_there(anywhere);
  return is_there(key) && is_there_for_others;
}

CompiledNest::Code CompiledNest::code_for(const OrderKey& key) const {
  const Version* version = find_version(key);
  if (version == nullptr) version = find_similar_version(key);
  if (version == nullptr) version = make_version(key);
  return version->code;
}

const CompiledNest::Version* CompiledNest::find_version(const OrderKey& key) const {
  for (const Version* version = versions_.load(std::memory_order_acquire); version != nullptr;
       version = version->next)
    if (version->key == key) return version;
  return nullptr;
}

/// A run waits for no code that only comes sooner to what it reads, or stores more past the cache.
const CompiledNest::Version* CompiledNest::find_similar_version(const OrderKey& key) const {
  for (const Version* version = versions_.load(std::memory_order_acquire); version != nullptr;
       version = version->next) {
    OrderKey similar = version->key;
    if ((similar.past_cache & ~key.past_cache) != 0) continue;
    similar.past_cache = key.past_cache;
    similar.ahead = key.ahead;
    if (similar == key) return version;
  }
  return nullptr;
}

uint64_t CompiledNest::all_tensors() const {
  const size_t bits = 2 * nest_.tensor_count();
  return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

const CompiledNest::Version* CompiledNest::make_version(OrderKey key, Making making) const {
  const std::lock_guard lock(mutex_);
  if (const Version* made = find_version(key)) return made;
  const Version* first = versions_.load();
  int count = 0;
  for (const Version* version = first; version != nullptr; version = version->next) ++count;
  if (count >= policy::kMostKernelVersions) {
    key.walks = 0xaaaaaaaaaaaaaaaa & all_tensors();  // every tensor strided
    if (const Version* made = find_version(key)) return made;
  }
  auto version = std::make_unique<Version>();
  version->key = key;
  const std::string text = text_for(key);
  const bool compiles = making == Making::compiled;
  if (compiles) dump_text(text);
  version->code =
      reinterpret_cast<Code>(compiles ? jit::compile(text, kSymbol) : jit::find(text, kSymbol));
  if (version->code == nullptr) return nullptr;
  version->next = first;
  versions_.store(version.get(), std::memory_order_release);
  return version.release();
}

// ---- Walking the space --------------------------------------------------------------------------

namespace {

/// Pieces of a dimension, as indices of it.
int64_t piece_size(int dim) { return dim == 0 ? policy::kInnerGrain : 1; }
int64_t piece_count(int64_t size, int dim) {
  return (size + piece_size(dim) - 1) / piece_size(dim);
}

}  // namespace

void CompiledNest::run(const Space& space, const Call& call) const {
  const Code code = code_for(order_key(space, call.starts));
  const int64_t work = space.element_count() * cost_;
  const int dim = is_worth_sharing(work) ? dimension_to_split(space, thread_count()) : -1;
  if (dim < 0) return run_part(code, space, call);
  const int64_t unit = piece_size(dim), units = piece_count(space.sizes[dim], dim);
  parallel_for(units, least_pieces(work, units), [&](int64_t begin, int64_t end) {
    run_slice(code, space, call, dim, begin * unit, std::min(end * unit, space.sizes[dim]));
  });
}

std::optional<CompiledNest::Course> CompiledNest::course_over(const Space& space) const {
  const OrderKey key = order_key(space, nullptr);
  if (!space.is_inside(space.rank - 1) || key.past_cache != 0) return std::nullopt;
  const auto rank = static_cast<size_t>(space.rank);
  const int64_t* const strides = space.strides[0];
  Course course{.code = code_for(key),
                .sizes{space.sizes, space.sizes + rank},
                .strides{strides, strides + rank * kMaxTensors},
                .work = space.element_count() * cost_,
                .dim = dimension_to_split(space, std::max(2, thread_count()))};
  if (course.dim < 0) return course;
  course.unit = piece_size(course.dim);
  course.units = piece_count(space.sizes[course.dim], course.dim);
  return course;
}

void CompiledNest::run(const Course& course, const Call& call) const {
  if (course.units == 1 || !is_worth_sharing(course.work))
    return course.code(call.starts, course.strides.data(), course.sizes.data(), call.numbers,
                       call.extents);
  parallel_for(course.units, least_pieces(course.work, course.units),
               [&](int64_t begin, int64_t end) { run_pieces(course, call, begin, end); });
}

void CompiledNest::run_pieces(const Course& course, const Call& call, int64_t begin,
                              int64_t end) const {
  if (course.dim < 0) return run(course, call);
  const auto dim = static_cast<size_t>(course.dim);
  const int64_t first = begin * course.unit, last = std::min(end * course.unit, course.sizes[dim]);
  int64_t sizes[kMaxRank + 2];
  std::ranges::copy(course.sizes, sizes);
  sizes[dim] = last - first;
  void* moved[kMaxTensors];
  for (size_t t = 0; t < nest_.tensor_count(); ++t)
    moved[t] = static_cast<char*>(call.starts[t]) +
               first * course.strides[dim * kMaxTensors + t] * element_sizes_[t];
  course.code(moved, course.strides.data(), sizes, call.numbers, call.extents);
}

void CompiledNest::run_slice(const Space& space, const Call& call, int dim, int64_t begin,
                             int64_t end) const {
  run_slice(code_for(order_key(space, call.starts)), space, call, dim, begin, end);
}

void CompiledNest::run_slice(Code code, const Space& space, const Call& call, int dim,
                             int64_t begin, int64_t end) const {
  Space slice = space;
  slice.sizes[dim] = end - begin;
  void* moved[kMaxTensors];
  for (int t = 0; t < space.tensors; ++t)
    moved[t] = static_cast<char*>(call.starts[t]) +
               begin * space.strides[dim][t] * element_sizes_[static_cast<size_t>(t)];
  run_part(code, slice, {moved, call.numbers, call.extents});
}

/// The compiled code walks the first dimensions; the others are counted up here.
void CompiledNest::run_part(Code code, const Space& space, const Call& call) const {
  if (space.is_inside(space.rank - 1))
    return code(call.starts, space.strides[0], space.sizes, call.numbers, call.extents);
  char* places[kMaxTensors];
  for (int t = 0; t < space.tensors; ++t) places[t] = static_cast<char*>(call.starts[t]);
  int64_t indices[kMaxRank] = {};
  for (;;) {
    code(reinterpret_cast<void* const*>(places), space.strides[0], space.sizes, call.numbers,
         call.extents);
    if (!advance(space, indices, places)) return;
  }
}

/// Steps to the next point of the outer dimensions; false after the last.
bool CompiledNest::advance(const Space& space, int64_t* indices, char** places) const {
  for (int dim = 2 + space.reduced_loops; dim < space.rank; ++dim) {
    const int64_t steps = ++indices[dim] < space.sizes[dim] ? 1 : 1 - space.sizes[dim];
    if (steps != 1) indices[dim] = 0;
    for (int t = 0; t < space.tensors; ++t)
      places[t] += steps * space.strides[dim][t] * element_sizes_[static_cast<size_t>(t)];
    if (steps == 1) return true;
  }
  return false;
}

}  // namespace janus::kernels
