// See compiled_kernel.h.
#include "kernels/compiled_kernel.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/check.h"

namespace janus::kernels {
namespace {

/// How many bytes from its first element a tensor is read at point 0, which may be outside of it.
int64_t offset_of_first(const TensorOperand& tensor, const LoopNest& nest, size_t index) {
  if (nest.map(index) == nullptr) return 0;
  return tensor.strides[nest.rank] * graph::byte_size(nest.inputs[index]);
}

/// One walk through the space, by code that counts all of its dimensions.
class PlacedNest final : public PlacedKernel {
 public:
  PlacedNest(const CompiledNest& nest, CompiledNest::Course course, const Arguments& arguments)
      : nest_(nest),
        course_(std::move(course)),
        extents_(arguments.sizes.begin(), arguments.sizes.end()) {
    if (nest.nest().maps.empty()) return;
    for (size_t t = 0; t < arguments.tensors.size(); ++t)
      offsets_.push_back(offset_of_first(arguments.tensors[t], nest.nest(), t));
  }

  void run(const Arguments& arguments) const override {
    void* starts[kMaxTensors] = {};
    nest_.run(course_, call(arguments, starts));
  }
  int64_t work() const override { return course_.work; }
  int64_t pieces() const override { return course_.units; }
  void run_pieces(const Arguments& arguments, int64_t begin, int64_t end) const override {
    void* starts[kMaxTensors] = {};
    nest_.run_pieces(course_, call(arguments, starts), begin, end);
  }

 private:
  Call call(const Arguments& arguments, void** starts) const {
    for (size_t t = 0; t < arguments.tensors.size(); ++t) starts[t] = arguments.tensors[t].data;
    for (size_t t = 0; t < offsets_.size(); ++t)
      starts[t] = static_cast<char*>(starts[t]) + offsets_[t];
    return {starts, arguments.numbers.data(), extents_.data()};
  }

  const CompiledNest& nest_;
  const CompiledNest::Course course_;
  const std::vector<int64_t> extents_;
  std::vector<int64_t> offsets_;  ///< by tensor; none where all are read at the points themselves
};

}  // namespace

void CompiledKernel::run(const Arguments& arguments) const {
  const LoopNest& nest = by_row_.nest();
  TORCHJANUS_CHECK(arguments.tensors.size() == nest.held_count() &&
                       arguments.numbers.size() == nest.numbers.size(),
                   "kernel: ", arguments.tensors.size(), " tensors and ", arguments.numbers.size(),
                   " numbers for\n", print(nest));
  if (nest.maps.empty()) return run_placed(arguments);
  TensorOperand tensors[kMaxTensors];
  std::ranges::copy(arguments.tensors, tensors);
  for (size_t t = 0; t < arguments.tensors.size(); ++t)
    tensors[t].data = static_cast<char*>(tensors[t].data) + offset_of_first(tensors[t], nest, t);
  const std::span<const TensorOperand> placed(tensors, arguments.tensors.size());
  if (nest.tensor_numbers.empty()) return run_placed({arguments.sizes, placed, arguments.numbers});
  std::vector<NumberOperand> numbers = all_numbers(arguments);
  run_placed({arguments.sizes, placed, numbers});
  if (numbers.back().i64 != 0) throw std::out_of_range("an index is outside of its tensor");
}

std::unique_ptr<const PlacedKernel> CompiledKernel::place(const Arguments& arguments) const {
  const LoopNest& nest = by_row_.nest();
  Space space;
  if (!nest.tensor_numbers.empty() || !space.read(arguments, nest)) return nullptr;
  space.simplify(static_cast<int>(nest.inputs.size()));
  if (in_phases_.suit(space)) return nullptr;
  auto course = by_row_.course_over(space);
  if (!course) return nullptr;
  return std::make_unique<PlacedNest>(by_row_, std::move(*course), arguments);
}

bool CompiledKernel::prepare(const Arguments& arguments, Making making) const {
  Space space;
  if (!space.read(arguments, by_row_.nest())) return true;
  space.simplify(static_cast<int>(by_row_.nest().inputs.size()));
  return in_phases_.suit(space) ? in_phases_.prepare(arguments, making)
                                : by_row_.prepare(space, making);
}

/// The node's numbers, those of tensors, and the place where failure is noted.
std::vector<NumberOperand> CompiledKernel::all_numbers(const Arguments& arguments) const {
  const LoopNest& nest = by_row_.nest();
  std::vector<NumberOperand> numbers(arguments.numbers.begin(), arguments.numbers.end());
  for (const TensorNumber& one : nest.tensor_numbers) {
    const int64_t* const steps = arguments.tensors[one.tensor].strides + nest.rank + 1;
    const int64_t* const sizes = steps + nest.map(one.tensor)->mapped_rank();
    numbers.push_back({.i64 = (one.kind == TensorNumber::Kind::step ? steps : sizes)[one.dim]});
  }
  numbers.push_back({.i64 = 0});
  return numbers;
}

void CompiledKernel::run_placed(const Arguments& arguments) const {
  const LoopNest& nest = by_row_.nest();
  Space space;
  if (!space.read(arguments, nest)) return;
  space.simplify(static_cast<int>(nest.inputs.size()));
  if (in_phases_.suit(space)) return in_phases_.run(arguments);
  void* starts[kMaxTensors] = {};
  for (size_t t = 0; t < arguments.tensors.size(); ++t) starts[t] = arguments.tensors[t].data;
  by_row_.run(space, {starts, arguments.numbers.data(), arguments.sizes.data()});
}

}  // namespace janus::kernels
