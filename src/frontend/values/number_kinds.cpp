#include "frontend/values/number_kinds.h"

#include "python/integer.h"

namespace janus::frontend {

using graph::Type;

namespace {

int rank_of(Type::Kind kind) {
  return kind == Type::Kind::f64 ? 2 : kind == Type::Kind::i64 ? 1 : 0;
}

}  // namespace

std::optional<Type::Kind> kind_of_number(const Value& value) {
  if (!is_number(value)) return std::nullopt;
  if (const auto* number = as<Number>(value)) return number->type;
  PyObject* object = known_object(value);
  if (PyBool_Check(object)) return Type::Kind::boolean;
  return PyFloat_CheckExact(object) ? Type::Kind::f64 : Type::Kind::i64;
}

std::optional<NumberKinds> kinds_of_numbers(const Value& a, const Value& b) {
  std::optional<NumberKinds> kinds;
  const auto add = [&](const Value& value) {
    const std::optional<Type::Kind> kind = kind_of_number(value);
    if (!kind) return false;
    if (!kinds) kinds = NumberKinds{*kind, *kind};
    if (rank_of(*kind) > rank_of(kinds->high)) {
      if (kinds->high != kinds->low) return false;
      kinds->high = *kind;
    } else if (rank_of(*kind) < rank_of(kinds->low)) {
      if (kinds->high != kinds->low) return false;
      kinds->low = *kind;
    }
    return *kind == kinds->high || *kind == kinds->low;
  };
  for (const Value& side : {a, b}) {
    const auto* either = as<Either>(side);
    const bool fits = either != nullptr ? add(either->if_true) && add(either->if_false) : add(side);
    if (!fits) return std::nullopt;
  }
  return kinds->high != kinds->low ? kinds : std::nullopt;
}

bool is_number(const Value& value) {
  if (as<Number>(value) != nullptr) return true;
  const auto* known = as<Known>(value);
  return known != nullptr &&
         (PyLong_CheckExact(known->object.get()) || PyFloat_CheckExact(known->object.get()) ||
          PyBool_Check(known->object.get()));
}

bool is_flag(const Value& value) {
  const auto* number = as<Number>(value);
  return number != nullptr && number->type == Type::Kind::boolean;
}

std::optional<int64_t> known_integer(const Value& value) {
  PyObject* object = known_object(value);
  if (object == nullptr || !PyLong_CheckExact(object)) return std::nullopt;
  return python::int64_of(object);
}

}  // namespace janus::frontend
