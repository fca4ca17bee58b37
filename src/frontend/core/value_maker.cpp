#include "frontend/core/value_maker.h"

#include <memory>
#include <optional>

#include "base/check.h"
#include "frontend/values/unnamed_sizes.h"
#include "python/integer.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

Value ValueMaker::constant(Object object) {
  if (!object) frames_.refuse_raised();
  return std::make_shared<Known>(std::move(object), nullptr);
}

Value ValueMaker::string(const std::string& text) {
  return constant(Object::steal(
      PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()))));
}

Value ValueMaker::dimension(const graph::Dim& dim) {
  if (dim.is_constant()) return integer(dim.value());
  if (is_unnamed(dim))
    frames_.refuse(ReasonCode::dynamic_value, "the length of a list that only an activation knows");
  auto number = std::make_shared<Number>(Type::Kind::i64);
  number->dim = dim;
  if (std::optional<int64_t> now = table_.evaluate(dim))
    number->example = Object::steal(PyLong_FromLongLong(*now));
  return number;
}

Value ValueMaker::number(graph::Value* value, Object example) {
  auto number = std::make_shared<Number>(value->type.kind);
  number->value = value;
  number->example = std::move(example);
  return number;
}

graph::Value* ValueMaker::graph_value(const Value& value) {
  graph::Builder& builder = writer_.builder();
  if (const auto* known = as<Known>(value)) {
    PyObject* object = known->object.get();
    if (PyBool_Check(object)) return builder.constant(object == Py_True);
    if (PyFloat_CheckExact(object)) return builder.constant(PyFloat_AS_DOUBLE(object));
    if (PyLong_CheckExact(object)) {
      const std::optional<int64_t> number = python::int64_of(object);
      if (!number) frames_.refuse(ReasonCode::dynamic_value, "an int of more than 64 bits");
      return builder.constant(*number);
    }
    frames_.refuse(ReasonCode::dynamic_value, "a number of an unexpected class");
  }
  auto* number = as<Number>(value);
  TORCHJANUS_CHECK(number != nullptr, "graph_value: not a number");
  if (number->value == nullptr) number->value = dimensions_.dimension_value(*number->dim);
  return number->value;
}

}  // namespace janus::frontend
