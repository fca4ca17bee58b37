// A dimension of a tensor: a number, or an integer expression over named dimensions.
//
// A Dim is kept in a canonical form (a sum of products of atoms, atoms being symbols, floor
// divisions, remainders, minima and maxima), so that equal expressions compare equal structurally.
// Arithmetic has Python's semantics (floor division). A symbol that names a tensor's dimension is
// at least 2: sizes 0 and 1 are always specialised, since broadcasting depends on them. A symbol
// may also name a Python int that varies from call to call; such a symbol may have any value
// (Dim::symbol's second argument).
//
// Text form: `20`, `B`, `B*4`, `H//2-2`, `B+T-1`, `min(B,T)`; a symbol that may have any value is
// written with a dollar sign: `$n+1`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace janus::graph {

/// A dimension that cannot be computed: a number does not fit into 64 bits, a division by zero, or
/// an expression that has become too large. Builder turns it into a TypeError.
class DimError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Dim {
 public:
  Dim() : Dim(0) {}
  Dim(int64_t value) : value_(value) {}  // NOLINT: a number is a dimension
  Dim(int value) : value_(value) {}      // NOLINT

  /// A named dimension (letters, digits, underscores). `any_integer`: it may be negative, zero or
  /// one (a varying Python int).
  static Dim symbol(const std::string& name, bool any_integer = false);

  bool is_constant() const { return expression_ == nullptr; }
  /// The number. Precondition: is_constant().
  int64_t value() const;
  bool is(int64_t number) const { return is_constant() && value_ == number; }

  /// The names of all symbols in it, sorted, each once.
  std::vector<std::string> symbols() const;

  /// Its value where `lookup` gives each symbol's; nullopt on overflow, division by zero or a
  /// missing symbol.
  std::optional<int64_t> evaluate(
      const std::function<std::optional<int64_t>(const std::string&)>& lookup) const;

  /// The same expression with symbols replaced where `lookup` gives something.
  Dim substitute(const std::function<std::optional<Dim>(const std::string&)>& lookup) const;

  /// Smallest value it is known to have (symbols of tensors are at least 2), if bounded.
  std::optional<int64_t> lower_bound() const;
  std::optional<int64_t> upper_bound() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  /// Floor division and Python's remainder. DimError if b is the constant 0.
  friend Dim floor_divide(const Dim& a, const Dim& b);
  friend Dim remainder(const Dim& a, const Dim& b);
  friend Dim minimum(const Dim& a, const Dim& b);
  friend Dim maximum(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  /// Some total order, for sorted containers.
  friend bool operator<(const Dim& a, const Dim& b);
  friend std::ostream& operator<<(std::ostream& out, const Dim& dim);

  struct Expression;

 private:
  friend struct DimAccess;
  explicit Dim(std::shared_ptr<const Expression> expression);
  int64_t value_ = 0;
  std::shared_ptr<const Expression> expression_;
};

Dim floor_divide(const Dim& a, const Dim& b);
Dim remainder(const Dim& a, const Dim& b);
Dim minimum(const Dim& a, const Dim& b);
Dim maximum(const Dim& a, const Dim& b);

std::string to_string(const Dim& dim);

using Shape = std::vector<Dim>;

/// The product of the dimensions; 1 for a shape of rank 0.
Dim element_count(const Shape& shape);

}  // namespace janus::graph
