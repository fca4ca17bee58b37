// Attributes: the compile-time constants of a node, by name, printed sorted as {k=v, ...}.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "graph/dim.h"
#include "graph/type.h"

namespace janus::graph {

struct None {
  friend bool operator==(None, None) = default;
};

/// One value. Integers are int64_t, lists of integers are Shapes (they may hold named dimensions).
/// Text: `none`, `true`, `3`, `0.5` (always with a point, exponent, `inf` or `nan`), `"text"`,
/// `f32`, `[B,-1]`, `f[0.5,1.0]`, `b[1,0]`, `dim(B*2)` for one dimension expression.
using AttributeValue = std::variant<None, bool, int64_t, double, std::string, DType, Dim, Shape,
                                    std::vector<double>, std::vector<bool>>;

/// Equality to the bit: -0.0 differs from 0.0, and nan equals nan.
bool identical(const AttributeValue& a, const AttributeValue& b);

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, AttributeValue>> values)
      : values_(values) {}

  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  const AttributeValue* find(std::string_view name) const;
  void set(std::string name, AttributeValue value) {
    values_.insert_or_assign(std::move(name), std::move(value));
  }

  /// The attribute `name` as a T; InternalError if it is missing or of another type.
  template <class T>
  const T& get(std::string_view name) const {
    const AttributeValue* value = find(name);
    TORCHJANUS_CHECK(value != nullptr, "attribute ", name, " is missing");
    const T* typed = std::get_if<T>(value);
    TORCHJANUS_CHECK(typed != nullptr, "attribute ", name, " has another type");
    return *typed;
  }
  template <class T>
  T get_or(std::string_view name, T otherwise) const {
    const AttributeValue* value = find(name);
    const T* typed = value == nullptr ? nullptr : std::get_if<T>(value);
    return typed == nullptr ? otherwise : *typed;
  }
  bool is_none(std::string_view name) const {
    const AttributeValue* value = find(name);
    return value == nullptr || std::holds_alternative<None>(*value);
  }

  void erase(std::string_view name);

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  bool empty() const { return values_.empty(); }
  /// The same names with identical values.
  friend bool operator==(const Attributes& a, const Attributes& b);

 private:
  std::map<std::string, AttributeValue, std::less<>> values_;
};

std::ostream& operator<<(std::ostream& out, const AttributeValue& value);

}  // namespace janus::graph
