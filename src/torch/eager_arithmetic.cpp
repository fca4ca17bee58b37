// See eager_arithmetic.h. Each question is put to the operator itself, with operands of which the
// possible answers differ: so nothing has to be known of how torch and its libraries choose their
// code, and what the environment narrows is seen as well.
#include "torch/eager_arithmetic.h"

#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sqrt.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/eager_arithmetic.h"
#include "torch/tensor.h"
#include "torch/version.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace janus::torch {

using ops::EagerArithmetic;
using ops::Gelu;
using ops::Root;

namespace {

/// Whole vectors, and few enough for one thread.
constexpr int64_t count = 64;

/// Whatever else is active where torch is asked has no part in it.
class PlainDispatch {
  c10::impl::ExcludeDispatchKeyGuard guard_{
      c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset |
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot,
                           c10::DispatchKey::ADInplaceOrView})};
};

at::Tensor all(double value, at::ScalarType dtype) {
  return at::full({count}, value, at::TensorOptions().dtype(dtype));
}

template <class T>
bool is_everywhere(const at::Tensor& tensor, T value) {
  const T* elements = elements_of<T>(tensor);
  return std::all_of(elements, elements + count, [&](T each) { return each == value; });
}

// --- products and sums --------------------------------------------------------------------------

/// (1 + 2^-12)^2 - 1 has a last bit that is lost where the product is rounded.
constexpr double factor = 1 + 0x1p-12;
constexpr float in_one = 0x1p-11f + 0x1p-24f;

bool contracts_sums() {
  const at::Tensor one = all(-1, at::kFloat), x = all(factor, at::kFloat);
  return is_everywhere(at::add(one, x, factor), in_one);
}

bool contracts_products() {
  const at::Tensor one = all(-1, at::kFloat), x = all(factor, at::kFloat);
  return is_everywhere(at::addcmul(one, x, x), in_one);
}

/// From -1 a third of the way that is three times as long as the factor: the weight's own rounding
/// is in both results.
bool contracts_lerp() {
  constexpr float weight = 0x1p-2f + 0x1p-14f, way = 4 * (1 + 0x1p-12f);
  const at::Tensor start = all(-1, at::kFloat), end = all(way - 1, at::kFloat);
  return is_everywhere(at::lerp(start, end, static_cast<double>(weight)),
                       std::fma(weight, way, -1.0F));
}

/// (1 + 2^-6)^2 - 1 has a last bit that half precision holds, but not beside the 1.
template <class T>
bool rounds_products(at::ScalarType dtype) {
  const at::Tensor one = all(-1, dtype), x = all(1 + 0x1p-6, dtype);
  return is_everywhere(at::add(one, x, 1 + 0x1p-6), T(0x1p-5F));
}

/// Of 11: the root's rounding is enough for another last digit.
bool rounds_roots_of_bf16() {
  const at::Tensor x = all(11, at::kBFloat16);
  return is_everywhere(at::pow(x, -0.5), c10::BFloat16(155 * 0x1p-9F));
}

// --- roots --------------------------------------------------------------------------------------

/// Numbers of all sizes, each with other digits.
template <class T>
at::Tensor positive_numbers(at::ScalarType dtype) {
  constexpr int64_t many = 2048;
  at::Tensor numbers = at::empty({many}, at::TensorOptions().dtype(dtype));
  T* elements = numbers.mutable_data_ptr<T>();
  uint64_t state = 1;
  for (int64_t i = 0; i < many; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double digits = 1 + static_cast<double>(state >> 11) * 0x1p-53;
    elements[i] = static_cast<T>(std::ldexp(digits, static_cast<int>(i % 128) - 64));
  }
  return numbers;
}

template <class T, class Function>
bool gives_eagers_roots(const at::Tensor& numbers, const at::Tensor& roots, Function function) {
  const T* from = elements_of<T>(numbers);
  const T* expected = elements_of<T>(roots);
  for (int64_t i = 0; i < numbers.numel(); ++i)
    if (function(from[i]) != expected[i]) return false;
  return true;
}

#if defined(__x86_64__)
/// What kernels compute (kernels/vector_math.cpp). Volatile: no compiler may join the operations.
float refined_root(float x) {
  const float estimate = _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(x)));
  const volatile float first = x * estimate, first_inverse = estimate * 0.5F;
  const volatile float both = first_inverse * first;
  const volatile float error = 0.5F - both;
  const volatile float first_step = first * error, inverse_step = first_inverse * error;
  const volatile float second = first + first_step, inverse = first_inverse + inverse_step;
  const volatile float square = second * second;
  const volatile float rest = x - square;
  const volatile float last_step = rest * inverse;
  return second + last_step;
}

double with_bits(double x, uint64_t kept, uint64_t set = 0) {
  return std::bit_cast<double>((std::bit_cast<uint64_t>(x) & kept) | set);
}

/// Of normal numbers, as `positive_numbers` are.
double refined_root(double x) {
  const double m = with_bits(x, 0x001FFFFFFFFFFFFF, 0x3FE0000000000000);
  const auto narrow = static_cast<float>(with_bits(m, ~uint64_t{0x1FFFFFFF}));
  const double y = _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(narrow)));
  const double high = with_bits(m, ~uint64_t{0x7FFFFFF}), low = m - high;
  const volatile double first = high * y, rest = low * y;
  const volatile double first_y = first * y, rest_y = rest * y;
  const volatile double most_of_d = 1 - first_y;
  const volatile double d = most_of_d - rest_y;
  volatile double sum = 0x1.1800032b15f97p-2;
  for (const double c : {0x1.40000b13005efp-2, 0x1.80000000000f5p-2, 0x1.ffffffffffe71p-2}) {
    const volatile double product = sum * d;
    sum = product + c;
  }
  const volatile double part = d * sum;
  const volatile double of_y = y * part;
  const volatile double step = m * of_y;
  const volatile double correction = rest + step;
  const int power = (std::ilogb(x) - std::ilogb(m)) / 2;
  return std::ldexp(first + correction, power);
}
#endif

template <class T>
Root root_of(at::ScalarType dtype) {
  const at::Tensor numbers = positive_numbers<T>(dtype), roots = at::sqrt(numbers);
  if (gives_eagers_roots<T>(numbers, roots, [](T x) { return std::sqrt(x); })) return Root::exact;
#if defined(__x86_64__)
  const auto refined = [](T x) { return refined_root(x); };
  if (gives_eagers_roots<T>(numbers, roots, refined)) return Root::refined;
#endif
  return Root::exact;
}

// --- gelu ---------------------------------------------------------------------------------------

Gelu try_gelu(at::ScalarType dtype, double most) {
  const PlainDispatch plain;
  const auto gelu = [&](double x) { return at::gelu(all(x, dtype)).to(at::kDouble); };
  const at::Tensor of_infinity = gelu(std::numeric_limits<double>::infinity());
  if (std::isnan(*elements_of<double>(of_infinity))) return Gelu::scaled_last;
  const at::Tensor of_least = gelu(-most);
  const bool is_negative = std::signbit(*elements_of<double>(of_least));
  return is_negative ? Gelu::scaled_first : Gelu::halves_summed;
}

template <class T>
Gelu gelu_of(at::ScalarType dtype) {
  static const Gelu asked = try_gelu(dtype, static_cast<double>(std::numeric_limits<T>::max()));
  return asked;
}

/// Of infinity one way gives NaN; of the most negative number one gives a zero with the other sign.
Gelu gelu(graph::DType dtype) {
  switch (dtype) {
    case graph::DType::f32:
      return gelu_of<float>(at::kFloat);
    case graph::DType::f16:
      return gelu_of<c10::Half>(at::kHalf);
    case graph::DType::bf16:
      return gelu_of<c10::BFloat16>(at::kBFloat16);
    default:
      return Gelu::scaled_first;  // no library has it in double precision
  }
}

}  // namespace

void ask_for_eager_arithmetic() {
  const PlainDispatch plain;
  EagerArithmetic& eager = ops::eager_arithmetic();
  eager.contracts_sums = contracts_sums();
  eager.contracts_products = contracts_products();
  eager.contracts_lerp = contracts_lerp();
  eager.rounds_products_of_f16 = rounds_products<c10::Half>(at::kHalf);
  eager.rounds_products_of_bf16 = rounds_products<c10::BFloat16>(at::kBFloat16);
  eager.rounds_roots_of_bf16 = rounds_roots_of_bf16();
  eager.root_of_f32 = root_of<float>(at::kFloat);
  eager.root_of_f64 = root_of<double>(at::kDouble);
  eager.gelu = gelu;
}

}  // namespace janus::torch
