#include "frontend/core/entry_numbers.h"

#include <memory>
#include <string>
#include <utility>

#include "python/integer.h"

namespace janus::frontend {

using graph::Dim;
using graph::Type;
using python::Object;

Value EntryNumbers::wrap_number(PyObject* object, const Source* source) {
  const bool general = facts_.generalises("specialise_numbers") &&
                       (PyFloat_CheckExact(object) || is_handed_over(source));
  bool varies = general || facts_.has_varied(source) || facts_.is_changed(source);
  if (varies && PyLong_CheckExact(object)) varies = python::int64_of(object).has_value();
  if (varies) return number_input(object, source);
  assumptions_.assume(Assumption::Kind::equals, source, Object::borrow(object));
  return std::make_shared<Known>(Object::borrow(object), source);
}

Value EntryNumbers::flag_input(PyObject* object, const Source* source) {
  assumptions_.assume(Assumption::Kind::boolean, source);
  return maker_.number(writer_.add_input(Type::boolean(), source), Object::borrow(object));
}

Value EntryNumbers::number_input(PyObject* object, const Source* source) {
  const bool is_int = PyLong_CheckExact(object);
  auto number = std::make_shared<Number>(is_int ? Type::Kind::i64 : Type::Kind::f64);
  std::string name = graph_name(source);
  Assumption assumption;
  assumption.source = source;
  if (is_int) {
    for (char& c : name)
      if (c == '.') c = '_';
    name = table_.new_symbol(std::move(name), PyLong_AsLongLong(object));
    assumption.kind = Assumption::Kind::integer;
    assumption.symbol = name;
    number->dim = Dim::symbol(name, /*any_integer=*/true);
  } else {
    assumption.kind = Assumption::Kind::floating;
  }
  assumptions_.assume(std::move(assumption));
  number->value = writer_.add_input(is_int ? Type::i64() : Type::f64(), source, name);
  if (is_int) dimensions_.note_value(name, number->value);
  number->example = Object::borrow(object);
  number->source = source;
  return number;
}

}  // namespace janus::frontend
