#include "frontend/number_kinds.h"

#include <cstring>

#include "frontend/operators.h"

namespace janus::frontend {

using graph::Type;

bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b) || !is_immutable_constant(a)) return false;
  if (PyFloat_CheckExact(a)) {
    double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
      if (!same_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  int equal = PyComplex_CheckExact(a) ? 0 : PyObject_RichCompareBool(a, b, Py_EQ);
  PyErr_Clear();
  return equal == 1;
}

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

std::optional<NumberParts> parts_by_kind(Interpreter& interpreter, const Value& value,
                                         const NumberKinds& kinds) {
  graph::Builder& builder = interpreter.builder();
  if (const auto* either = as<Either>(value)) {
    if (kind_of_number(either->if_true) != kinds.high ||
        kind_of_number(either->if_false) != kinds.low)
      return std::nullopt;
    return NumberParts{either->flag, interpreter.graph_value(either->if_true),
                       interpreter.graph_value(either->if_false)};
  }
  const auto kind = kind_of_number(value);
  if (!kind || (*kind != kinds.high && *kind != kinds.low)) return std::nullopt;
  const bool is_high = *kind == kinds.high;
  const auto nothing = [&](Type::Kind of) {
    return of == Type::Kind::f64   ? builder.constant(0.0)
           : of == Type::Kind::i64 ? builder.constant(int64_t{0})
                                   : builder.constant(false);
  };
  graph::Value* const number = interpreter.graph_value(value);
  return NumberParts{builder.constant(is_high), is_high ? number : nothing(kinds.high),
                     is_high ? nothing(kinds.low) : number};
}

}  // namespace janus::frontend
