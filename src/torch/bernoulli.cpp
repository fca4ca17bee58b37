// See bernoulli.h. What torch computes from its Mersenne twister with a call for each element is
// computed here for 624 numbers at a time, to the bit and with the same state afterwards. Some
// builds of torch draw from elsewhere on some processors: so both are compared once.
#include "torch/bernoulli.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "graph/op.h"
#include "ops/list.h"
#include "torch/tensor.h"

namespace janus::torch {

using execute::Operands;

namespace {

// The loops over whole states, for processors with wider vectors as well.
#if defined(__x86_64__)
#define TORCHJANUS_FOR_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define TORCHJANUS_FOR_WIDE_VECTORS
#endif

constexpr size_t state_size = at::MERSENNE_STATE_N, ahead = at::MERSENNE_STATE_M;

inline uint32_t twisted(uint32_t high, uint32_t low) {
  const uint32_t mixed = (high & 0x80000000U) | (low & 0x7fffffffU);
  return (mixed >> 1) ^ (-(low & 1U) & 0x9908b0dfU);
}

/// The state after `state_size` numbers.
TORCHJANUS_FOR_WIDE_VECTORS void twist(uint32_t* state) {
  for (size_t i = 0; i < state_size - ahead; ++i)
    state[i] = state[i + ahead] ^ twisted(state[i], state[i + 1]);
  for (size_t i = state_size - ahead; i < state_size - 1; ++i)
    state[i] = state[i + ahead - state_size] ^ twisted(state[i], state[i + 1]);
  state[state_size - 1] = state[ahead - 1] ^ twisted(state[state_size - 1], state[0]);
}

/// The numbers that a state gives.
TORCHJANUS_FOR_WIDE_VECTORS void temper(const uint32_t* state, uint32_t* __restrict numbers) {
  for (size_t i = 0; i < state_size; ++i) {
    uint32_t y = state[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    numbers[i] = y ^ (y >> 18);
  }
}

/// A probability as 53 bits, with which so many bits of two numbers are compared.
struct Threshold {
  uint32_t high, low;

  explicit Threshold(double probability) {
    const auto bits = static_cast<uint64_t>(std::ceil(std::ldexp(probability, 53)));
    high = static_cast<uint32_t>(bits >> 32);
    low = static_cast<uint32_t>(bits);
  }
};

template <class T>
inline void compare(const uint32_t* numbers, Threshold threshold, T* __restrict out,
                    int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t high = numbers[2 * i] & 0x1fffffU, low = numbers[2 * i + 1];
    const bool is_equal = high == threshold.high, is_below = low < threshold.low;
    out[i] = T((high < threshold.high) | (is_equal & is_below));
  }
}
TORCHJANUS_FOR_WIDE_VECTORS void compare_pairs(const uint32_t* numbers, Threshold threshold,
                                               float* out, int64_t count) {
  compare(numbers, threshold, out, count);
}
TORCHJANUS_FOR_WIDE_VECTORS void compare_pairs(const uint32_t* numbers, Threshold threshold,
                                               double* out, int64_t count) {
  compare(numbers, threshold, out, count);
}

/// The Mersenne twister MT19937 of Matsumoto and Nishimura, a whole state at a time.
class Twister {
 public:
  /// A new engine has none left, and stands at its beginning.
  explicit Twister(const at::mt19937_data_pod& data)
      : data_(data), used_(state_size + 1 - static_cast<size_t>(data.left_)) {
    temper(data_.state_.data(), numbers_.data());
  }

  /// How many numbers of this state were not taken yet.
  size_t unused() const { return state_size - used_; }
  /// At most so many.
  const uint32_t* take(size_t count) {
    used_ += count;
    return numbers_.data() + used_ - count;
  }
  uint32_t next() {
    if (unused() == 0) {
      twist(data_.state_.data());
      temper(data_.state_.data(), numbers_.data());
      used_ = 0;
    }
    return *take(1);
  }
  /// What torch's engine holds after the same numbers.
  at::mt19937_data_pod data() const {
    at::mt19937_data_pod result = data_;
    result.next_ = static_cast<uint32_t>(used_);
    result.left_ = static_cast<int>(unused()) + 1;
    return result;
  }

 private:
  at::mt19937_data_pod data_;
  std::array<uint32_t, state_size> numbers_;
  size_t used_;
};

template <class T>
void draw(at::CPUGeneratorImpl& generator, double probability, T* out, int64_t count) {
  const Threshold threshold(probability);
  const std::lock_guard lock(generator.mutex_);
  at::mt19937 engine = generator.engine();
  Twister twister(engine.data());
  while (count > 0) {
    const auto pairs = std::min<int64_t>(count, static_cast<int64_t>(twister.unused() / 2));
    compare_pairs(twister.take(static_cast<size_t>(2 * pairs)), threshold, out, pairs);
    out += pairs;
    count -= pairs;
    if (count == 0) break;
    const uint32_t pair[] = {twister.next(), twister.next()};  // maybe of two states
    compare_pairs(pair, threshold, out++, 1);
    --count;
  }
  engine.set_data(twister.data());
  generator.set_engine(engine);
}

void draw(at::CPUGeneratorImpl& generator, double probability, at::Tensor& out) {
  if (out.scalar_type() == at::kFloat) {
    draw(generator, probability, out.mutable_data_ptr<float>(), out.numel());
  } else {
    draw(generator, probability, out.mutable_data_ptr<double>(), out.numel());
  }
}

/// Whether torch gives the same on this processor, and leaves the same state.
bool draws_like_torch() {
  static const bool result = [] {
    constexpr uint64_t seed = 7;
    const at::Generator theirs = at::detail::createCPUGenerator(seed);
    const at::Generator ours = at::detail::createCPUGenerator(seed);
    auto& our_engine = *ours.get<at::CPUGeneratorImpl>();
    for (const double probability : {0.25, 0.9}) {
      for (const int64_t count : {1000, 4097}) {
        our_engine.random();
        theirs.get<at::CPUGeneratorImpl>()->random();
        const at::Tensor expected = at::empty({count}).bernoulli_(probability, theirs);
        at::Tensor drawn = at::empty({count});
        draw(our_engine, probability, drawn);
        if (!drawn.equal(expected)) return false;
      }
    }
    return our_engine.random64() == theirs.get<at::CPUGeneratorImpl>()->random64();
  }();
  return result;
}

class Bernoulli final : public execute::Operation {
 public:
  bool can_run_into() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed like(operands.in(0));
    if (!can_draw(operands, *like)) {
      operands.out(0) = slot_of(at::bernoulli(*like, operands.in(1).f64()));
      return;
    }
    at::Tensor out = at::empty(like->sizes(), like->options());
    draw(operands, out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    Borrowed like(operands.in(0)), out(operands.out(0));
    if (can_draw(operands, *like) && out->is_contiguous()) {
      draw(operands, *out);
    } else {
      out->copy_(at::bernoulli(*like, operands.in(1).f64()));
    }
  }

 private:
  /// Other layouts have other orders, and what is no probability has an error of torch's.
  static bool can_draw(const Operands& operands, const at::Tensor& like) {
    const double probability = operands.in(1).f64();
    return like.is_contiguous() && probability >= 0 && probability <= 1;
  }
  static void draw(const Operands& operands, at::Tensor& out) {
    auto& generator = *at::detail::getDefaultCPUGenerator().get<at::CPUGeneratorImpl>();
    torch::draw(generator, operands.in(1).f64(), out);
  }
};

}  // namespace

std::unique_ptr<execute::Operation> bind_bernoulli(const graph::Node& node) {
  if (node.op != &op::bernoulli_p) return nullptr;
  const graph::DType dtype = node.output()->type.dtype;
  const bool fits = (dtype == graph::DType::f32 || dtype == graph::DType::f64) &&
                    node.inputs[1]->type.kind == graph::Type::Kind::f64;
  return fits && draws_like_torch() ? std::make_unique<Bernoulli>() : nullptr;
}

}  // namespace janus::torch
