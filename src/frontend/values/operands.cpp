#include "frontend/values/operands.h"

#include "frontend/values/constants.h"
#include "python/integer.h"

namespace janus::frontend {

using graph::Dim;
using python::Object;
using syntax::CompareOperator;

bool is_constant(const Value& value) {
  const auto* known = as<Known>(value);
  return known != nullptr && is_immutable_constant(known->object.get());
}

bool is_string(const Value& value) {
  if (const auto* deferred = as<Deferred>(value))
    return deferred->type.is(reinterpret_cast<PyObject*>(&PyUnicode_Type));
  const auto* known = as<Known>(value);
  return known != nullptr && PyUnicode_CheckExact(known->object.get());
}

Object example_of(const Value& value) {
  if (const auto* number = as<Number>(value)) return number->example;
  return as<Known>(value)->object;
}

std::optional<Dim> dim_of(const Value& value) {
  if (const auto* number = as<Number>(value)) return number->dim;
  PyObject* object = as<Known>(value)->object.get();
  if (!PyLong_CheckExact(object)) return std::nullopt;
  return python::int64_of(object);
}

const char* comparison_method(CompareOperator op) {
  switch (op) {
    case CompareOperator::Eq:
      return "__eq__";
    case CompareOperator::NotEq:
      return "__ne__";
    case CompareOperator::Lt:
      return "__lt__";
    case CompareOperator::LtE:
      return "__le__";
    case CompareOperator::Gt:
      return "__gt__";
    default:
      return "__ge__";
  }
}

syntax::CompareOperator reflected(CompareOperator op) {
  switch (op) {
    case CompareOperator::Lt:
      return CompareOperator::Gt;
    case CompareOperator::LtE:
      return CompareOperator::GtE;
    case CompareOperator::Gt:
      return CompareOperator::Lt;
    case CompareOperator::GtE:
      return CompareOperator::LtE;
    default:
      return op;
  }
}

}  // namespace janus::frontend
