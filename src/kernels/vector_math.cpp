#include "kernels/vector_math.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/check.h"

namespace janus::kernels {
namespace {

bool has_avx512(const Target& target) { return target.vector_bytes == 64; }
std::string name_of_scale(int lanes) { return cat("llvm.x86.avx512.mask.scalef.ps.", 32 * lanes); }

/// The estimate of 1 / sqrt(x) has vectors of its own; fewer lanes are filled up.
int root_piece(int lanes, const Target& target) {
  return std::clamp(lanes, 4, target.vector_bytes == 16 ? 4 : 8);
}
std::string name_of_estimate(int lanes) {
  return lanes == 8 ? "llvm.x86.avx.rsqrt.ps.256" : "llvm.x86.sse.rsqrt.ps";
}

/// A function's body in the making. Operands are names of values, or literals.
class Body {
 public:
  Body(int lanes, const Target& target) : lanes_(lanes), target_(target) {}

  using Vector = std::string;

  /// A literal, all lanes equal.
  static Vector constant(float value) {
    std::ostringstream out;
    out << "splat (float 0x" << std::hex << std::uppercase
        << std::bit_cast<uint64_t>(static_cast<double>(value)) << ")";
    return std::move(out).str();
  }

  Vector add(const Vector& a, const Vector& b) { return floats("fadd", a, b); }
  Vector subtract(const Vector& a, const Vector& b) { return floats("fsub", a, b); }
  Vector multiply(const Vector& a, const Vector& b) { return floats("fmul", a, b); }
  Vector divide(const Vector& a, const Vector& b) { return floats("fdiv", a, b); }
  Vector multiply_add(const Vector& a, const Vector& b, const Vector& c) {
    return assign(cat("call ", floats(), " @llvm.fma.v", lanes_, "f32(", floats(), " ", a, ", ",
                      floats(), " ", b, ", ", floats(), " ", c, ")"));
  }
  Vector absolute(const Vector& a) {
    return assign(cat("call ", floats(), " @llvm.fabs.v", lanes_, "f32(", floats(), " ", a, ")"));
  }
  Vector with_sign(const Vector& a, const Vector& sign) {
    return assign(cat("call ", floats(), " @llvm.copysign.v", lanes_, "f32(", floats(), " ", a,
                      ", ", floats(), " ", sign, ")"));
  }
  /// `a` if `x` (compared by `how` with `bound`) else `b`. NaN compares false.
  Vector choose(std::string_view how, const Vector& x, const Vector& bound, const Vector& a,
                const Vector& b) {
    const Vector condition = compare(how, x, bound);
    return assign(cat("select <", lanes_, " x i1> ", condition, ", ", floats(), " ", a, ", ",
                      floats(), " ", b));
  }
  Vector bits(const Vector& a) {
    return assign(cat("bitcast ", floats(), " ", a, " to ", integers()));
  }
  Vector from_bits(const Vector& a) {
    return assign(cat("bitcast ", integers(), " ", a, " to ", floats()));
  }
  Vector integer(std::string_view operation, const Vector& a, const Vector& b) {
    return assign(cat(operation, " ", integers(), " ", a, ", ", b));
  }
  bool has_avx512() const { return kernels::has_avx512(target_); }
  /// a * 2^whole, rounded once. Where `takes` is given and false, 0, and no time is lost on
  /// underflow.
  Vector scale(const Vector& a, const Vector& whole, const Vector& takes = {}) {
    const int count = piece();
    return in_pieces(
        [&](int first) {
          Vector mask = "-1";
          if (!takes.empty())
            mask = assign(
                cat("bitcast <", count, " x i1> ", piece_of("i1", takes, first), " to i", count));
          const Vector number = piece_of("float", a, first),
                       power = piece_of("float", whole, first);
          return assign(cat("call ", piece_type(), " @", name_of_scale(count), "(", piece_type(),
                            " ", number, ", ", piece_type(), " ", power, ", ", piece_type(),
                            " zeroinitializer, i", count, " ", mask,
                            count == 16 ? ", i32 4)" : ")"));
        },
        count);
  }
  /// What the processor has for 1 / sqrt(a), good to some 12 bits.
  Vector estimated_inverse_root(const Vector& a) {
    const int count = root_piece(lanes_, target_);
    const std::string type = cat("<", count, " x float>");
    const Vector estimates = in_pieces(
        [&](int first) {
          return assign(cat("call ", type, " @", name_of_estimate(count), "(", type, " ",
                            piece_of("float", a, first, count), ")"));
        },
        count);
    if (count <= lanes_) return estimates;
    return assign(cat("shufflevector ", type, " ", estimates, ", ", type, " poison, ",
                      consecutive(0, lanes_)));
  }
  Vector root(const Vector& a) {
    return assign(cat("call ", floats(), " @llvm.sqrt.v", lanes_, "f32(", floats(), " ", a, ")"));
  }
  /// Whether `x`, compared by `how` with `bound`, is so in each lane.
  Vector compare(std::string_view how, const Vector& x, const Vector& bound) {
    return assign(cat("fcmp ", how, " ", floats(), " ", x, ", ", bound));
  }
  static Vector integer_constant(int64_t value) { return cat("splat (i32 ", value, ")"); }

  /// c[0] + c[1] x + c[2] x² + ...
  Vector polynomial(const Vector& x, std::span<const float> coefficients) {
    Vector sum = constant(coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;)
      sum = multiply_add(sum, x, constant(coefficients[i]));
    return sum;
  }

  const std::string& text() const { return text_; }
  std::string finish(std::string_view function, const Vector& result) const {
    return cat("define internal ", floats(), " @vector.", function, "(", floats(),
               " %x) alwaysinline {\n", text_, "  ret ", floats(), " ", result, "\n}\n");
  }

 private:
  std::string floats() const { return cat("<", lanes_, " x float>"); }
  std::string integers() const { return cat("<", lanes_, " x i32>"); }
  Vector floats(std::string_view operation, const Vector& a, const Vector& b) {
    return assign(cat(operation, " ", floats(), " ", a, ", ", b));
  }
  Vector assign(const std::string& instruction) {
    const Vector name = cat("%v", count_++);
    text_ += cat("  ", name, " = ", instruction, "\n");
    return name;
  }

  // --- instructions that LLVM has for vectors of one width only

  int piece() const { return std::min(lanes_, 16); }
  std::string piece_type() const { return cat("<", piece(), " x float>"); }
  Vector piece_of(std::string_view element, const Vector& a, int first) {
    return piece_of(element, a, first, piece());
  }
  Vector piece_of(std::string_view element, const Vector& a, int first, int count) {
    if (count == lanes_) return a;
    const std::string type = cat("<", lanes_, " x ", element, ">");
    return assign(
        cat("shufflevector ", type, " ", a, ", ", type, " poison, ", consecutive(first, count)));
  }
  /// part(first lane) for each piece of `count` lanes, put together.
  template <class Part>
  Vector in_pieces(Part&& part, int count) {
    std::vector<Vector> parts;
    for (int first = 0; first < lanes_; first += count) parts.push_back(part(first));
    for (int size = count; parts.size() > 1; size *= 2) {
      const std::string type = cat("<", size, " x float> ");
      std::vector<Vector> joined;
      for (size_t i = 0; i < parts.size(); i += 2)
        joined.push_back(assign(cat("shufflevector ", type, parts[i], ", ", type, parts[i + 1],
                                    ", ", consecutive(0, 2 * size))));
      parts = std::move(joined);
    }
    return parts.front();
  }
  static std::string consecutive(int first, int count) {
    std::string out = cat("<", count, " x i32> <");
    for (int i = 0; i < count; ++i) out += cat(i == 0 ? "" : ", ", "i32 ", first + i);
    return out + ">";
  }

  int lanes_;
  const Target& target_;
  int count_ = 0;
  std::string text_;
};

/// e^x = 2^whole * fraction with fraction in [0.7, 1.5].
struct Exponential {
  Body::Vector fraction;
  Body::Vector whole;    ///< as floats
  Body::Vector shifted;  ///< as floats in whose lowest bits the integers stand
};

Exponential split_exponential(Body& body, const Body::Vector& x) {
  static constexpr float kInverse = 1.4426950408889634f;  // 1 / log 2
  static constexpr float kHigh = 0.693145751953125f;      // log 2 = kHigh + kLow, kHigh has 12 bits
  static constexpr float kLow = 1.4286068203094172e-6f;
  static constexpr float kPolynomial[] = {0.5f, 0.16666516661643982f, 0.04166620224714279f,
                                          0.008369073271751404f, 0.0013950809370727f};
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the lowest bits.
  const auto shift = Body::constant(12582912.0f);
  const auto shifted = body.multiply_add(x, Body::constant(kInverse), shift);
  const auto whole = body.subtract(shifted, shift);
  const auto high = body.multiply_add(whole, Body::constant(-kHigh), x);
  const auto rest = body.multiply_add(whole, Body::constant(-kLow), high);
  const auto square = body.multiply(rest, rest);
  const auto tail = body.multiply_add(square, body.polynomial(rest, kPolynomial), rest);
  return {body.add(tail, Body::constant(1.0f)), whole, shifted};
}

Body::Vector integer_power(Body& body, const Exponential& parts) {
  return body.integer("sub", body.bits(parts.shifted), Body::integer_constant(0x4B400000));
}

Body::Vector power_of_two(Body& body, const Body::Vector& exponent) {
  const auto biased = body.integer("add", exponent, Body::integer_constant(127));
  return body.from_bits(body.integer("shl", biased, Body::integer_constant(23)));
}

/// e^x for x that are known to neither overflow nor underflow.
Body::Vector moderate_exponential(Body& body, const Body::Vector& x) {
  const Exponential parts = split_exponential(body, x);
  if (body.has_avx512()) return body.scale(parts.fraction, parts.whole);
  return body.multiply(parts.fraction, power_of_two(body, integer_power(body, parts)));
}

Body::Vector exponential(Body& body, const Body::Vector& x) {
  const auto limit = Body::constant(89.0f), least = Body::constant(-104.0f);
  const auto zero = Body::constant(0.0f);
  const auto below = body.choose("ogt", x, limit, limit, x);
  if (body.has_avx512()) {
    const Exponential parts = split_exponential(body, below);
    return body.scale(parts.fraction, parts.whole, body.compare("uge", x, least));
  }
  // What is less gives 0. Not by underflow, which takes a processor as long as hundreds of
  // instructions: half of the scores of a causal attention are -inf.
  const Exponential parts = split_exponential(body, body.choose("olt", x, least, zero, below));
  const auto power = integer_power(body, parts);
  // In two steps, since 2^power itself may be too large or too small for a float.
  const auto half = body.integer("ashr", power, Body::integer_constant(1));
  const auto other = body.integer("sub", power, half);
  const auto result = body.multiply(body.multiply(parts.fraction, power_of_two(body, half)),
                                    power_of_two(body, other));
  return body.choose("olt", x, least, zero, result);
}

Body::Vector hyperbolic_tangent(Body& body, const Body::Vector& x) {
  static constexpr float kPolynomial[] = {-0.3333326280117035f, 0.1333089917898178f,
                                          -0.05369296669960022f, 0.020483314990997314f,
                                          -0.005528633017092943f};
  const auto size = body.absolute(x);
  const auto square = body.multiply(size, size);
  const auto factor = body.multiply(body.polynomial(square, kPolynomial), square);
  const auto small = body.multiply_add(factor, size, size);
  const auto limit = Body::constant(10.0f);
  const auto limited = body.choose("ogt", size, limit, limit, size);
  const auto power = moderate_exponential(body, body.add(limited, limited));
  const auto one = Body::constant(1.0f);
  const auto quotient = body.divide(Body::constant(2.0f), body.add(power, one));
  const auto large = body.subtract(one, quotient);
  return body.with_sign(body.choose("olt", size, Body::constant(0.625f), small, large), x);
}

Body::Vector error_function(Body& body, const Body::Vector& x) {
  static constexpr float kSmall[] = {
      0.12837916612625122f,  -0.3761262595653534f,    0.1128358542919159f,   -0.026853810995817184f,
      0.005188327748328447f, -0.0008010192541405559f, 7.853857823647559e-05f};
  // The logarithm of 1 - erf(x) from 1 to 4.
  static constexpr float kLarge[] = {-0.0003537187585607171f, -1.1270400285720825f,
                                     -0.6382256746292114f,    -0.10303737223148346f,
                                     0.02180531993508339f,    -0.002939607948064804f,
                                     0.00018557407020125538f};
  const auto size = body.absolute(x);
  const auto square = body.multiply(size, size);
  const auto small = body.multiply_add(body.polynomial(square, kSmall), size, size);
  const auto limit = Body::constant(4.0f), one = Body::constant(1.0f);
  const auto limited = body.choose("ogt", size, limit, limit, size);
  const auto rest = moderate_exponential(body, body.polynomial(limited, kLarge));
  const auto large = body.subtract(one, rest);
  return body.with_sign(body.choose("olt", size, one, small, large), x);
}

/// The root as MKL computes it for processors that are not Intel's, found by comparing results:
/// each operation is rounded by itself. Beyond the limits it is the processor's.
Body::Vector refined_root(Body& body, const Body::Vector& x) {
  constexpr float least = 0x1p-126f, most = 0x1.ffep127f;
  const auto half = Body::constant(0.5f);
  const auto estimate = body.estimated_inverse_root(x);
  const auto first = body.multiply(x, estimate), first_inverse = body.multiply(estimate, half);
  const auto error = body.subtract(half, body.multiply(first_inverse, first));
  const auto second = body.add(first, body.multiply(first, error));
  const auto inverse = body.add(first_inverse, body.multiply(first_inverse, error));
  const auto rest = body.subtract(x, body.multiply(second, second));
  const auto refined = body.add(second, body.multiply(rest, inverse));
  const auto exact = body.root(x);
  const auto large = body.choose("oge", x, Body::constant(least), refined, exact);
  return body.choose("ole", x, Body::constant(most), large, exact);
}

struct Written {
  std::string_view name;
  Body::Vector (*write)(Body& body, const Body::Vector& x);
  bool is_polynomial = true;
};
constexpr Written kWritten[] = {
    {.name = "exp", .write = &exponential},
    {.name = "tanh", .write = &hyperbolic_tangent},
    {.name = "erf", .write = &error_function},
    {.name = "refined_sqrt", .write = &refined_root, .is_polynomial = false},
};

const Written* find(std::string_view name) {
  const auto* found = std::ranges::find(kWritten, name, &Written::name);
  return found == std::end(kWritten) ? nullptr : found;
}

}  // namespace

bool has_vector_math(std::string_view function, const Target& target) {
  const Written* found = find(function);
  return found != nullptr && (target.has_fused_multiply_add || !found->is_polynomial);
}

std::string vector_math(std::string_view function, int lanes, const Target& target) {
  const Written* found = find(function);
  TORCHJANUS_CHECK(found != nullptr, "vector_math: no function ", function);
  Body body(lanes, target);
  const auto result = found->write(body, "%x");
  return body.finish(function, result);
}

std::string vector_math_declarations(std::string_view function, int lanes, const Target& target) {
  const std::string type = cat("<", lanes, " x float>"), suffix = cat(".v", lanes, "f32(");
  if (function == "refined_sqrt") {
    const int piece = root_piece(lanes, target);
    const std::string part = cat("<", piece, " x float>");
    return cat("declare ", part, " @", name_of_estimate(piece), "(", part, ")\n", "declare ", type,
               " @llvm.sqrt", suffix, type, ")\n");
  }
  std::string out;
  if (has_avx512(target)) {
    const int piece = std::min(lanes, 16);
    const std::string part = cat("<", piece, " x float>");
    out = cat("declare ", part, " @", name_of_scale(piece), "(", part, ", ", part, ", ", part,
              ", i", piece, piece == 16 ? ", i32)\n" : ")\n");
  }
  return cat(out, "declare ", type, " @llvm.fma", suffix, type, ", ", type, ", ", type, ")\n",
             "declare ", type, " @llvm.fabs", suffix, type, ")\n", "declare ", type,
             " @llvm.copysign", suffix, type, ", ", type, ")\n");
}

std::string refined_root_of_doubles_name(int lanes) {
  return cat("vector.refined_sqrt.f64.", lanes);
}

namespace {

// Digits and the exponent's last bit make a number m from 1/2 to 2. With y, the estimate of its
// inverse root, and d = 1 - m y^2, which m's two halves give exactly, the root is
// m y + m y (c1 d + c2 d^2 + ...). D, I, F and B: vectors of doubles, integers, floats and bits.
constexpr std::string_view steps_to_estimate = R"(
  %bits = bitcast $D %x to $I
  %digits = and $I %bits, splat (i64 u0x001FFFFFFFFFFFFF)
  %scaled = or $I %digits, splat (i64 u0x3FE0000000000000)
  %m = bitcast $I %scaled to $D
  %cut = and $I %scaled, splat (i64 u0x7FFFFFFFE0000000)
  %short = bitcast $I %cut to $D
  %narrow = fptrunc $D %short to $F
)";

constexpr std::string_view steps_from_estimate = R"(
  %y = fpext $F %estimate to $D
  %high.bits = and $I %scaled, splat (i64 u0x7FFFFFFFF8000000)
  %high = bitcast $I %high.bits to $D
  %low = fsub $D %m, %high
  %first = fmul $D %high, %y
  %rest = fmul $D %low, %y
  %first.y = fmul $D %first, %y
  %rest.y = fmul $D %rest, %y
  %most.of.d = fsub $D splat (double 1.0), %first.y
  %d = fsub $D %most.of.d, %rest.y
  %p4 = fmul $D splat (double 0x3FD1800032B15F97), %d
  %s3 = fadd $D %p4, splat (double 0x3FD40000B13005EF)
  %p3 = fmul $D %s3, %d
  %s2 = fadd $D %p3, splat (double 0x3FD80000000000F5)
  %p2 = fmul $D %s2, %d
  %s1 = fadd $D %p2, splat (double 0x3FDFFFFFFFFFFE71)
  %p1 = fmul $D %d, %s1
  %of.y = fmul $D %y, %p1
  %step = fmul $D %m, %of.y
  %correction = fadd $D %rest, %step
  %root = fadd $D %first, %correction
  %exponent = lshr $I %bits, splat (i64 53)
  %half = and $I %exponent, splat (i64 1023)
  %biased = add $I %half, splat (i64 512)
  %placed = shl $I %biased, splat (i64 52)
  %power = bitcast $I %placed to $D
  %refined = fmul $D %root, %power
  %exact = call $D @llvm.sqrt.v$Lf64($D %x)
  %is.normal = fcmp oge $D %x, splat (double 0x0010000000000000)
  %is.moderate = fcmp olt $D %x, splat (double 0x7FD0000000000000)
  %takes = and $B %is.normal, %is.moderate
  %result = select $B %takes, $D %refined, $D %exact
  ret $D %result
}
)";

/// `text` with the types of vectors of `lanes` lanes.
std::string with_types(std::string_view text, int lanes) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    const char letter = text[++i];
    const std::string_view element = letter == 'D'   ? "double"
                                     : letter == 'I' ? "i64"
                                     : letter == 'F' ? "float"
                                                     : "i1";
    out += letter == 'L' ? std::to_string(lanes) : cat("<", lanes, " x ", element, ">");
  }
  return out;
}

}  // namespace

std::string refined_root_of_doubles(int lanes, const Target& target) {
  Body body(lanes, target);
  const auto estimate = body.estimated_inverse_root("%narrow");
  return cat("define internal ", with_types("$D", lanes), " @", refined_root_of_doubles_name(lanes),
             "(", with_types("$D", lanes), " %x) alwaysinline {",
             with_types(steps_to_estimate, lanes), body.text(),
             with_types("  %estimate = bitcast $F ", lanes), estimate, with_types(" to $F", lanes),
             with_types(steps_from_estimate, lanes));
}

std::string refined_root_of_doubles_declarations(int lanes, const Target& target) {
  const int piece = root_piece(lanes, target);
  return cat(with_types("declare $D @llvm.sqrt.v$Lf64($D)\n", lanes), "declare ",
             with_types("$F", piece), " @", name_of_estimate(piece), "(", with_types("$F", piece),
             ")\n");
}

}  // namespace janus::kernels
