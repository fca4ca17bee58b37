#include "graph/dim.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "graph/text.h"

namespace janus::graph {
namespace {

std::string canonical(const char* text) { return to_string(parse_dim(text)); }

TEST(Dim, arithmetic_on_numbers_is_pythons) {
  EXPECT_EQ(floor_divide(-7, 2), Dim(-4));
  EXPECT_EQ(floor_divide(7, -2), Dim(-4));
  EXPECT_EQ(remainder(-7, 2), Dim(1));
  EXPECT_EQ(remainder(7, -2), Dim(-1));
  EXPECT_EQ(minimum(3, 5), Dim(3));
  EXPECT_EQ(maximum(3, 5), Dim(5));
}

TEST(Dim, equal_expressions_are_equal) {
  const Dim b = Dim::symbol("B"), t = Dim::symbol("T");
  EXPECT_EQ(b * t + b, b * (t + 1));
  EXPECT_EQ(b + t - b, t);
  EXPECT_EQ(b * 4 - b * 4, Dim(0));
  EXPECT_NE(b, t);
  EXPECT_NE(Dim::symbol("B"), Dim::symbol("B", true));
  EXPECT_TRUE((b - b).is_constant());
}

TEST(Dim, text_is_canonical) {
  EXPECT_EQ(canonical("20"), "20");
  EXPECT_EQ(canonical("T+B-1"), "B+T-1");
  EXPECT_EQ(canonical("4*B"), "B*4");
  EXPECT_EQ(canonical("(H-4)//2"), "H//2-2");
  EXPECT_EQ(canonical("-(H//3)"), "-(H//3)");
  EXPECT_EQ(canonical("(H//3)*2"), "(H//3)*2");
  EXPECT_EQ(canonical("$n - 1"), "$n-1");
  EXPECT_EQ(canonical("max(T, B)"), "max(B,T)");
}

TEST(Dim, quotients_are_shortened) {
  EXPECT_EQ(canonical("B*6//3"), "B*2");
  EXPECT_EQ(canonical("(B*4+6)//4"), "B+1");
  EXPECT_EQ(canonical("B*T//T"), "B");
  EXPECT_EQ(canonical("H//2//3"), "H//6");
  EXPECT_EQ(canonical("(H//2+1)//2"), "(H+2)//4");
  EXPECT_EQ(canonical("B*4%2"), "0");
  EXPECT_EQ(canonical("(B*6+3)%4"), "((B+1)%2)*2+1");
  EXPECT_EQ(canonical("B%12%4"), "B%4");
  EXPECT_EQ(canonical("(B*T+1)%T"), "1");
}

TEST(Dim, what_may_be_zero_is_not_cancelled) {
  EXPECT_EQ(canonical("$n*B//$n"), "(B*$n)//$n");
  EXPECT_EQ(canonical("$n%$n"), "$n%$n");
}

TEST(Dim, bounds_decide_extrema) {
  EXPECT_EQ(canonical("max(1,B)"), "B");
  EXPECT_EQ(canonical("min(B,B+3)"), "B");
  EXPECT_EQ(canonical("max(B,$n)"), "max(B,$n)");
  EXPECT_EQ(Dim::symbol("B").lower_bound(), 2);
  EXPECT_EQ(Dim::symbol("n", true).lower_bound(), std::nullopt);
  EXPECT_EQ(parse_dim("B*3-1").lower_bound(), 5);
  EXPECT_EQ(parse_dim("$n%5").lower_bound(), 0);
  EXPECT_EQ(parse_dim("$n%5").upper_bound(), 4);
  EXPECT_EQ(parse_dim("min(B,7)").upper_bound(), 7);
}

TEST(Dim, evaluation_notices_what_it_cannot_do) {
  const auto with = [](int64_t number) {
    return [number](const std::string&) { return std::optional(number); };
  };
  EXPECT_EQ(parse_dim("(H-4)//2").evaluate(with(28)), 12);
  EXPECT_EQ(parse_dim("B*B").evaluate(with(int64_t{1} << 40)), std::nullopt);
  EXPECT_EQ(parse_dim("7//$n").evaluate(with(0)), std::nullopt);
  EXPECT_EQ(parse_dim("B+1").evaluate([](const std::string&) { return std::nullopt; }),
            std::nullopt);
}

TEST(Dim, overflow_and_division_by_zero_are_errors) {
  const Dim large = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(large + 1, DimError);
  EXPECT_THROW(large * 2, DimError);
  EXPECT_THROW(floor_divide(Dim::symbol("B"), 0), DimError);
  EXPECT_THROW(remainder(3, 0), DimError);
  EXPECT_THROW(floor_divide(std::numeric_limits<int64_t>::min(), -1), DimError);
}

TEST(Dim, expressions_do_not_grow_without_end) {
  Dim product = 1;
  EXPECT_THROW(
      {
        for (int i = 0; i < 20; ++i) product = product * (Dim::symbol("a" + std::to_string(i)) + 1);
      },
      DimError);
}

TEST(Dim, substitution_simplifies_again) {
  const Dim dim = parse_dim("B*T//4+B");
  const Dim result = dim.substitute([](const std::string& name) -> std::optional<Dim> {
    if (name == "T") return Dim(8);
    return std::nullopt;
  });
  EXPECT_EQ(to_string(result), "B*3");
  EXPECT_EQ(dim.symbols(), (std::vector<std::string>{"B", "T"}));
}

TEST(Dim, names_are_words) {
  EXPECT_THROW(Dim::symbol("a b"), InternalError);
  EXPECT_THROW(Dim::symbol(""), InternalError);
  EXPECT_THROW(Dim::symbol("2b"), InternalError);
}

/// A random expression and its value, computed beside it.
class RandomDim {
 public:
  explicit RandomDim(unsigned seed) : random_(seed) {}

  struct Pair {
    Dim dim;
    int64_t value;
  };

  int64_t value_of(const std::string& name) const { return name == "n" ? -3 : name == "B" ? 5 : 2; }

  Pair make(int depth) {
    const int kind = pick(depth == 0 ? 2 : 8);
    if (kind == 0) {
      const int64_t number = pick(13) - 6;
      return {number, number};
    }
    if (kind == 1) {
      const std::string name = pick(3) == 0 ? "n" : pick(2) == 0 ? "B" : "T";
      return {Dim::symbol(name, name == "n"), value_of(name)};
    }
    const Pair a = make(depth - 1), b = make(depth - 1);
    switch (kind) {
      case 2:
        return {a.dim + b.dim, a.value + b.value};
      case 3:
        return {a.dim - b.dim, a.value - b.value};
      case 4:
        return {a.dim * b.dim, a.value * b.value};
      case 5:
        return {minimum(a.dim, b.dim), std::min(a.value, b.value)};
      case 6:
        return {maximum(a.dim, b.dim), std::max(a.value, b.value)};
      default:
        return divide(a, b);
    }
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  Pair divide(const Pair& a, const Pair& b) {
    if (b.value == 0 || b.dim.is(0)) return a;
    const Dim quotient = floor_divide(a.value, b.value);
    if (pick(2) == 0) return {floor_divide(a.dim, b.dim), quotient.value()};
    return {remainder(a.dim, b.dim), a.value - quotient.value() * b.value};
  }

  std::mt19937 random_;
};

TEST(Dim, random_expressions_have_the_right_value_and_read_back) {
  for (unsigned seed = 0; seed < 5000; ++seed) {
    RandomDim random(seed);
    const auto [dim, value] = random.make(4);
    EXPECT_EQ(
        dim.evaluate([&](const std::string& name) { return std::optional(random.value_of(name)); }),
        value)
        << dim;
    EXPECT_EQ(parse_dim(to_string(dim)), dim) << dim;
    if (const auto low = dim.lower_bound()) EXPECT_LE(*low, value) << dim;
    if (const auto high = dim.upper_bound()) EXPECT_GE(*high, value) << dim;
  }
}

}  // namespace
}  // namespace janus::graph
