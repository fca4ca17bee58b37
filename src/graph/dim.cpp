// The canonical form of dimension expressions.
//
// An expression is a constant plus a sorted list of terms; a term is a coefficient (never 0) times
// a sorted product of atoms (never empty). An atom is a symbol or one of the four operations that a
// polynomial cannot hold. A Dim without symbols is always a plain number. Rules that shorten a
// quotient hold for every value of the symbols, not only for those seen so far.
#include "graph/dim.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <numeric>
#include <set>
#include <span>

#include "base/check.h"
#include "base/policy.h"

namespace janus::graph {
namespace {

enum class Operation { symbol, floor_divide, remainder, minimum, maximum };

struct Atom {
  Operation operation = Operation::symbol;
  std::string name;           // of a symbol
  bool any_integer = false;   // of a symbol
  std::vector<Dim> operands;  // two; of minima and maxima two or more, sorted
};
using AtomPointer = std::shared_ptr<const Atom>;

struct Term {
  int64_t coefficient = 0;
  std::vector<AtomPointer> atoms;
};

int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) throw DimError(cat(a, " + ", b, " overflows"));
  return result;
}

int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) throw DimError(cat(a, " * ", b, " overflows"));
  return result;
}

int64_t checked_floor_divide(int64_t a, int64_t b) {
  if (b == 0) throw DimError("division by zero");
  if (b == -1) return checked_multiply(a, -1);
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}

int64_t checked_remainder(int64_t a, int64_t b) {
  if (b == 0) throw DimError("division by zero");
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

}  // namespace

struct Dim::Expression {
  int64_t constant = 0;
  std::vector<Term> terms;
};

/// The private parts of Dim, for the free functions of this file.
struct DimAccess {
  static const Dim::Expression* get(const Dim& dim) { return dim.expression_.get(); }

  /// The Dim for a canonical expression.
  static Dim make(Dim::Expression expression) {
    if (expression.terms.empty()) return expression.constant;
    if (expression.terms.size() > policy::kMostTerms)
      throw DimError("dimension expression is too large");
    return Dim(std::make_shared<const Dim::Expression>(std::move(expression)));
  }
};

namespace {

std::strong_ordering order(const Dim& a, const Dim& b);

std::strong_ordering order(const Atom& a, const Atom& b) {
  if (&a == &b) return std::strong_ordering::equal;
  if (const auto by = a.operation <=> b.operation; by != 0) return by;
  if (const int by = a.name.compare(b.name); by != 0) return by <=> 0;
  if (const auto by = a.any_integer <=> b.any_integer; by != 0) return by;
  if (const auto by = a.operands.size() <=> b.operands.size(); by != 0) return by;
  for (size_t i = 0; i < a.operands.size(); ++i)
    if (const auto by = order(a.operands[i], b.operands[i]); by != 0) return by;
  return std::strong_ordering::equal;
}

std::strong_ordering order(const std::vector<AtomPointer>& a, const std::vector<AtomPointer>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (const auto by = order(*a[i], *b[i]); by != 0) return by;
  return a.size() <=> b.size();
}

std::strong_ordering order(const Dim& a, const Dim& b) {
  const Dim::Expression* left = DimAccess::get(a);
  const Dim::Expression* right = DimAccess::get(b);
  if (left == nullptr && right == nullptr) return a.value() <=> b.value();
  if (left == nullptr || right == nullptr) return (left != nullptr) <=> (right != nullptr);
  if (left == right) return std::strong_ordering::equal;
  if (const auto by = left->terms.size() <=> right->terms.size(); by != 0) return by;
  for (size_t i = 0; i < left->terms.size(); ++i) {
    if (const auto by = order(left->terms[i].atoms, right->terms[i].atoms); by != 0) return by;
    if (const auto by = left->terms[i].coefficient <=> right->terms[i].coefficient; by != 0)
      return by;
  }
  return left->constant <=> right->constant;
}

int64_t constant_part(const Dim& dim) {
  return dim.is_constant() ? dim.value() : DimAccess::get(dim)->constant;
}

std::span<const Term> terms(const Dim& dim) {
  return dim.is_constant() ? std::span<const Term>() : DimAccess::get(dim)->terms;
}

/// Brings a list of terms in any order, with repetitions and zeros, into canonical form.
Dim from_terms(int64_t constant, std::vector<Term> list) {
  std::sort(list.begin(), list.end(),
            [](const Term& a, const Term& b) { return order(a.atoms, b.atoms) < 0; });
  Dim::Expression result{.constant = constant, .terms = {}};
  for (Term& term : list) {
    if (!result.terms.empty() && order(result.terms.back().atoms, term.atoms) == 0) {
      int64_t& sum = result.terms.back().coefficient;
      sum = checked_add(sum, term.coefficient);
    } else {
      if (!result.terms.empty() && result.terms.back().coefficient == 0) result.terms.pop_back();
      result.terms.push_back(std::move(term));
    }
  }
  std::erase_if(result.terms, [](const Term& term) { return term.coefficient == 0; });
  return DimAccess::make(std::move(result));
}

Dim from_atom(Atom atom) {
  return from_terms(
      0, {Term{.coefficient = 1, .atoms = {std::make_shared<const Atom>(std::move(atom))}}});
}

/// The atom that the whole of `dim` is, or null.
const Atom* only_atom(const Dim& dim) {
  const auto list = terms(dim);
  const bool alone = list.size() == 1 && constant_part(dim) == 0 && list[0].coefficient == 1 &&
                     list[0].atoms.size() == 1;
  return alone ? list[0].atoms[0].get() : nullptr;
}

// ---- Bounds: interval arithmetic; an end that is missing is unbounded -------------------------

struct Interval {
  std::optional<int64_t> low, high;
};

std::optional<int64_t> add_ends(std::optional<int64_t> a, std::optional<int64_t> b) {
  int64_t result;
  if (!a || !b || __builtin_add_overflow(*a, *b, &result)) return std::nullopt;
  return result;
}

std::optional<int64_t> multiply_ends(std::optional<int64_t> a, int64_t b) {
  int64_t result;
  if (!a || __builtin_mul_overflow(*a, b, &result)) return std::nullopt;
  return result;
}

Interval bounds(const Dim& dim);

Interval quotient_bounds(const Dim& a, const Dim& b) {
  const Interval top = bounds(a), bottom = bounds(b);
  Interval result;
  if (!bottom.low || *bottom.low < 1 || !top.low || *top.low < 0) {
    if (!b.is_constant() || b.value() < 1) return result;
    if (top.low) result.low = checked_floor_divide(*top.low, b.value());
    if (top.high) result.high = checked_floor_divide(*top.high, b.value());
    return result;
  }
  result.low = bottom.high ? checked_floor_divide(*top.low, *bottom.high) : 0;
  if (top.high) result.high = checked_floor_divide(*top.high, *bottom.low);
  return result;
}

Interval remainder_bounds(const Dim& b) {
  const Interval divisor = bounds(b);
  Interval result;
  if (divisor.low && *divisor.low >= 1) {
    result.low = 0;
    if (divisor.high) result.high = *divisor.high - 1;
  }
  return result;
}

Interval extremum_bounds(const Atom& atom) {
  const bool smallest = atom.operation == Operation::minimum;
  Interval result = bounds(atom.operands[0]);
  for (size_t i = 1; i < atom.operands.size(); ++i) {
    const Interval other = bounds(atom.operands[i]);
    // For the end that one operand alone decides (a minimum's upper end) any bound will do; for the
    // other end every operand needs one.
    auto& decided = smallest ? result.high : result.low;
    const auto& other_decided = smallest ? other.high : other.low;
    auto& joint = smallest ? result.low : result.high;
    const auto& other_joint = smallest ? other.low : other.high;
    if (other_decided && (!decided || (*other_decided < *decided) == smallest))
      decided = other_decided;
    if (!other_joint)
      joint.reset();
    else if (joint && (*other_joint < *joint) == smallest)
      joint = other_joint;
  }
  return result;
}

Interval bounds(const Atom& atom) {
  switch (atom.operation) {
    case Operation::symbol:
      return atom.any_integer ? Interval{} : Interval{.low = 2, .high = std::nullopt};
    case Operation::floor_divide:
      return quotient_bounds(atom.operands[0], atom.operands[1]);
    case Operation::remainder:
      return remainder_bounds(atom.operands[1]);
    case Operation::minimum:
    case Operation::maximum:
      return extremum_bounds(atom);
  }
  return {};
}

Interval bounds(const Term& term) {
  Interval product{.low = 1, .high = 1};
  for (const AtomPointer& atom : term.atoms) {
    const Interval factor = bounds(*atom);
    // Only products of numbers that are not negative are followed; all sizes are.
    if (!factor.low || *factor.low < 0) {
      if (term.atoms.size() > 1) return {};
      product = factor;
      break;
    }
    product.low = multiply_ends(product.low, *factor.low);
    product.high = factor.high ? multiply_ends(product.high, *factor.high) : std::nullopt;
  }
  const auto low = multiply_ends(product.low, term.coefficient);
  const auto high = multiply_ends(product.high, term.coefficient);
  return term.coefficient >= 0 ? Interval{low, high} : Interval{high, low};
}

Interval bounds(const Dim& dim) {
  Interval sum{.low = constant_part(dim), .high = constant_part(dim)};
  for (const Term& term : terms(dim)) {
    const Interval part = bounds(term);
    sum.low = add_ends(sum.low, part.low);
    sum.high = add_ends(sum.high, part.high);
  }
  return sum;
}

bool at_least(const Dim& dim, int64_t number) {
  const auto low = bounds(dim).low;
  return low && *low >= number;
}

bool below(const Dim& dim, const Dim& limit) {
  const auto low = bounds(limit - dim).low;
  return low && *low >= 1;
}

// ---- Division ---------------------------------------------------------------------------------

/// a = quotient * divisor + rest, for as many terms as divide without doubt.
struct Split {
  Dim quotient, rest;
};

/// By a positive number: afterwards every coefficient of the rest is in [0, divisor).
Split split(const Dim& a, int64_t divisor) {
  std::vector<Term> quotient, rest;
  for (const Term& term : terms(a)) {
    quotient.push_back({checked_floor_divide(term.coefficient, divisor), term.atoms});
    rest.push_back({checked_remainder(term.coefficient, divisor), term.atoms});
  }
  return {from_terms(checked_floor_divide(constant_part(a), divisor), std::move(quotient)),
          from_terms(checked_remainder(constant_part(a), divisor), std::move(rest))};
}

/// The atoms of `product` without those of `factors`, or nullopt if they are not all in it. Both
/// are sorted.
std::optional<std::vector<AtomPointer>> without(const std::vector<AtomPointer>& product,
                                                const std::vector<AtomPointer>& factors) {
  std::vector<AtomPointer> result;
  size_t next = 0;
  for (const AtomPointer& atom : product) {
    if (next < factors.size() && order(*atom, *factors[next]) == 0)
      ++next;
    else
      result.push_back(atom);
  }
  if (next != factors.size()) return std::nullopt;
  return result;
}

/// By an expression that is known to be positive.
Split split(const Dim& a, const Dim& divisor) {
  if (a == divisor) return {1, 0};
  const auto divisor_terms = terms(divisor);
  if (divisor_terms.size() != 1 || constant_part(divisor) != 0) return {0, a};
  const Term& factor = divisor_terms[0];
  std::vector<Term> quotient, rest;
  int64_t quotient_constant = 0;
  for (const Term& term : terms(a)) {
    auto atoms = without(term.atoms, factor.atoms);
    if (!atoms || term.coefficient % factor.coefficient != 0) {
      rest.push_back(term);
    } else if (atoms->empty()) {
      quotient_constant = checked_add(quotient_constant, term.coefficient / factor.coefficient);
    } else {
      quotient.push_back({term.coefficient / factor.coefficient, std::move(*atoms)});
    }
  }
  return {from_terms(quotient_constant, std::move(quotient)),
          from_terms(constant_part(a), std::move(rest))};
}

int64_t common_factor(const Dim& a, int64_t with) {
  int64_t result = with;
  for (const Term& term : terms(a)) result = std::gcd(result, term.coefficient);
  return result;
}

/// Precondition: every coefficient is a multiple of `divisor`; the constant is divided downwards.
Dim divide_terms(const Dim& a, int64_t divisor) {
  std::vector<Term> result(terms(a).begin(), terms(a).end());
  for (Term& term : result) term.coefficient /= divisor;
  return from_terms(checked_floor_divide(constant_part(a), divisor), std::move(result));
}

/// The rest of a division by a positive number, divided by it: an atom unless it is known to be 0.
Dim divide_rest(const Dim& rest, int64_t divisor) {
  if (at_least(rest, 0) && below(rest, divisor)) return 0;
  if (const int64_t factor = common_factor(rest, divisor); factor > 1)
    return floor_divide(divide_terms(rest, factor), divisor / factor);
  // (x // a + k) // b = (x + k * a) // (a * b)
  const Dim constant = constant_part(rest);
  if (const Atom* inner = only_atom(rest - constant);
      inner != nullptr && inner->operation == Operation::floor_divide &&
      inner->operands[1].is_constant() && inner->operands[1].value() > 0) {
    const Dim& step = inner->operands[1];
    return floor_divide(inner->operands[0] + constant * step, step * divisor);
  }
  return from_atom({.operation = Operation::floor_divide, .operands = {rest, divisor}});
}

/// The rest of a division by a positive number.
Dim reduce_rest(const Dim& rest, int64_t divisor) {
  if (at_least(rest, 0) && below(rest, divisor)) return rest;
  if (const int64_t factor = common_factor(rest, divisor); factor > 1) {
    return remainder(divide_terms(rest, factor), divisor / factor) * factor +
           checked_remainder(constant_part(rest), factor);
  }
  if (const Atom* inner = only_atom(rest);
      inner != nullptr && inner->operation == Operation::remainder &&
      inner->operands[1].is_constant() && inner->operands[1].value() > 0 &&
      inner->operands[1].value() % divisor == 0) {
    return remainder(inner->operands[0], divisor);
  }
  return from_atom({.operation = Operation::remainder, .operands = {rest, divisor}});
}

/// Whether a minimum (maximum) of both needs `a` not at all. Of two equal bounds one wins.
bool is_dominated(Operation operation, const Dim& a, const Dim& by) {
  const Interval difference = bounds(operation == Operation::minimum ? a - by : by - a);
  if (!difference.low || *difference.low < 0) return false;
  return !(difference.high && *difference.high == 0) || by < a;
}

Dim extremum(Operation operation, const Dim& a, const Dim& b) {
  std::vector<Dim> all;
  for (const Dim* side : {&a, &b}) {
    if (const Atom* inner = only_atom(*side); inner != nullptr && inner->operation == operation)
      all.insert(all.end(), inner->operands.begin(), inner->operands.end());
    else
      all.push_back(*side);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() > policy::kMostFactors) throw DimError("dimension expression is too large");
  std::vector<Dim> kept;
  for (const Dim& one : all) {
    if (std::none_of(all.begin(), all.end(), [&](const Dim& other) {
          return &other != &one && is_dominated(operation, one, other);
        }))
      kept.push_back(one);
  }
  if (kept.size() == 1) return kept[0];
  return from_atom({.operation = operation, .operands = std::move(kept)});
}

// ---- Walks ------------------------------------------------------------------------------------

void collect_symbols(const Dim& dim, std::set<std::string>& names) {
  for (const Term& term : terms(dim)) {
    for (const AtomPointer& atom : term.atoms) {
      if (atom->operation == Operation::symbol) names.insert(atom->name);
      for (const Dim& operand : atom->operands) collect_symbols(operand, names);
    }
  }
}

Dim combine(Operation operation, const std::vector<Dim>& operands) {
  Dim result = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    switch (operation) {
      case Operation::floor_divide:
        result = floor_divide(result, operands[i]);
        break;
      case Operation::remainder:
        result = remainder(result, operands[i]);
        break;
      case Operation::minimum:
        result = minimum(result, operands[i]);
        break;
      default:
        result = maximum(result, operands[i]);
        break;
    }
  }
  return result;
}

using Lookup = std::function<std::optional<Dim>(const std::string&)>;

Dim substitute(const Atom& atom, const AtomPointer& pointer, const Lookup& lookup) {
  if (atom.operation == Operation::symbol) {
    if (auto replacement = lookup(atom.name)) return *replacement;
    return from_terms(0, {Term{.coefficient = 1, .atoms = {pointer}}});
  }
  std::vector<Dim> operands;
  for (const Dim& operand : atom.operands) operands.push_back(operand.substitute(lookup));
  return combine(atom.operation, operands);
}

// ---- Text -------------------------------------------------------------------------------------

/// Whether it can stand to the right of `//`, `%` or beside `*` without parentheses.
bool is_simple(const Dim& dim) {
  if (dim.is_constant()) return dim.value() >= 0;
  const Atom* atom = only_atom(dim);
  return atom != nullptr && atom->operation != Operation::floor_divide &&
         atom->operation != Operation::remainder;
}

void print_operand(std::ostream& out, const Dim& dim) {
  if (is_simple(dim))
    out << dim;
  else
    out << '(' << dim << ')';
}

void print(std::ostream& out, const Atom& atom) {
  switch (atom.operation) {
    case Operation::symbol:
      out << (atom.any_integer ? "$" : "") << atom.name;
      return;
    case Operation::floor_divide:
    case Operation::remainder:
      print_operand(out, atom.operands[0]);
      out << (atom.operation == Operation::remainder ? "%" : "//");
      print_operand(out, atom.operands[1]);
      return;
    case Operation::minimum:
    case Operation::maximum:
      out << (atom.operation == Operation::minimum ? "min(" : "max(");
      for (size_t i = 0; i < atom.operands.size(); ++i)
        out << (i == 0 ? "" : ",") << atom.operands[i];
      out << ')';
  }
}

void print(std::ostream& out, const Term& term, bool first) {
  // The smallest integer has no positive counterpart: its sign stays with the number.
  constexpr int64_t smallest = std::numeric_limits<int64_t>::min();
  const bool minus = term.coefficient < 0 && term.coefficient != smallest;
  out << (minus ? "-" : first ? "" : "+");
  const bool unit = term.coefficient == 1 || term.coefficient == -1;
  const bool alone = unit && term.atoms.size() == 1 && first && term.coefficient == 1;
  for (size_t i = 0; i < term.atoms.size(); ++i) {
    const Atom& atom = *term.atoms[i];
    const bool quotient =
        atom.operation == Operation::floor_divide || atom.operation == Operation::remainder;
    // A sum may hold a quotient bare; a product and a minus sign may not.
    const bool bare = !quotient || alone || (unit && term.atoms.size() == 1 && !first);
    out << (i == 0 ? "" : "*") << (bare ? "" : "(");
    print(out, atom);
    out << (bare ? "" : ")");
  }
  if (!unit) out << '*' << (minus ? -term.coefficient : term.coefficient);
}

}  // namespace

Dim::Dim(std::shared_ptr<const Expression> expression) : expression_(std::move(expression)) {}

Dim Dim::symbol(const std::string& name, bool any_integer) {
  const auto is_word = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  TORCHJANUS_CHECK(!name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
                       std::all_of(name.begin(), name.end(), is_word),
                   "dim: \"", name, "\" cannot name a dimension");
  return from_atom(
      {.operation = Operation::symbol, .name = name, .any_integer = any_integer, .operands = {}});
}

int64_t Dim::value() const {
  TORCHJANUS_CHECK(is_constant(), "dim: ", *this, " is not a number");
  return value_;
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  collect_symbols(*this, names);
  return {names.begin(), names.end()};
}

std::optional<int64_t> Dim::evaluate(
    const std::function<std::optional<int64_t>(const std::string&)>& lookup) const {
  bool missing = false;
  try {
    const Dim result = substitute([&](const std::string& name) -> std::optional<Dim> {
      const auto number = lookup(name);
      missing = missing || !number;
      return Dim(number.value_or(0));
    });
    return missing ? std::nullopt : std::optional(result.value());
  } catch (const DimError&) {
    return std::nullopt;
  }
}

Dim Dim::substitute(const std::function<std::optional<Dim>(const std::string&)>& lookup) const {
  if (is_constant()) return *this;
  Dim sum = expression_->constant;
  for (const Term& term : expression_->terms) {
    Dim product = term.coefficient;
    for (const AtomPointer& atom : term.atoms)
      product = product * graph::substitute(*atom, atom, lookup);
    sum = sum + product;
  }
  return sum;
}

std::optional<int64_t> Dim::lower_bound() const { return bounds(*this).low; }
std::optional<int64_t> Dim::upper_bound() const { return bounds(*this).high; }

Dim operator+(const Dim& a, const Dim& b) {
  std::vector<Term> list(terms(a).begin(), terms(a).end());
  list.insert(list.end(), terms(b).begin(), terms(b).end());
  return from_terms(checked_add(constant_part(a), constant_part(b)), std::move(list));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  const auto scaled = [](const Dim& dim, int64_t factor, std::vector<Term>& into) {
    for (const Term& term : terms(dim))
      into.push_back({checked_multiply(term.coefficient, factor), term.atoms});
  };
  if (terms(a).size() * terms(b).size() > policy::kMostTerms)
    throw DimError("dimension expression is too large");
  std::vector<Term> list;
  scaled(a, constant_part(b), list);
  scaled(b, constant_part(a), list);
  for (const Term& left : terms(a)) {
    for (const Term& right : terms(b)) {
      Term product{checked_multiply(left.coefficient, right.coefficient), left.atoms};
      product.atoms.insert(product.atoms.end(), right.atoms.begin(), right.atoms.end());
      if (product.atoms.size() > policy::kMostFactors)
        throw DimError("dimension expression is too large");
      std::sort(product.atoms.begin(), product.atoms.end(),
                [](const AtomPointer& x, const AtomPointer& y) { return order(*x, *y) < 0; });
      list.push_back(std::move(product));
    }
  }
  return from_terms(checked_multiply(constant_part(a), constant_part(b)), std::move(list));
}

Dim floor_divide(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_floor_divide(a.value(), b.value());
  if (b.is_constant()) {
    if (b.value() == 0) throw DimError("division by zero");
    if (b.value() < 0) return floor_divide(a * Dim(-1), b * Dim(-1));
    const auto [quotient, rest] = split(a, b.value());
    return quotient + divide_rest(rest, b.value());
  }
  if (!at_least(b, 1)) return from_atom({.operation = Operation::floor_divide, .operands = {a, b}});
  const auto [quotient, rest] = split(a, b);
  if (at_least(rest, 0) && below(rest, b)) return quotient;
  return quotient + from_atom({.operation = Operation::floor_divide, .operands = {rest, b}});
}

Dim remainder(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_remainder(a.value(), b.value());
  if (b.is_constant()) {
    if (b.value() == 0) throw DimError("division by zero");
    if (b.value() < 0) return remainder(a * Dim(-1), b * Dim(-1)) * Dim(-1);
    return reduce_rest(split(a, b.value()).rest, b.value());
  }
  if (!at_least(b, 1)) return from_atom({.operation = Operation::remainder, .operands = {a, b}});
  const Dim rest = split(a, b).rest;
  if (at_least(rest, 0) && below(rest, b)) return rest;
  return from_atom({.operation = Operation::remainder, .operands = {rest, b}});
}

Dim minimum(const Dim& a, const Dim& b) { return extremum(Operation::minimum, a, b); }
Dim maximum(const Dim& a, const Dim& b) { return extremum(Operation::maximum, a, b); }

bool operator==(const Dim& a, const Dim& b) { return order(a, b) == 0; }
bool operator<(const Dim& a, const Dim& b) { return order(a, b) < 0; }

std::ostream& operator<<(std::ostream& out, const Dim& dim) {
  if (dim.is_constant()) return out << dim.value();
  bool first = true;
  for (const Term& term : dim.expression_->terms) {
    print(out, term, first);
    first = false;
  }
  const int64_t constant = dim.expression_->constant;
  if (constant > 0 || constant == std::numeric_limits<int64_t>::min()) out << '+';
  if (constant != 0) out << constant;
  return out;
}

std::string to_string(const Dim& dim) { return cat(dim); }

Dim element_count(const Shape& shape) {
  Dim product = 1;
  for (const Dim& dim : shape) product = product * dim;
  return product;
}

}  // namespace janus::graph
