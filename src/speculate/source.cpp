// Interning of sources and their text.
#include "speculate/source.h"

#include <functional>

#include "base/check.h"
#include "speculate/describe.h"

namespace janus::speculate {
namespace {

/// Whether two keys are the same. Names are compared by value, everything else by identity, so that
/// interning never runs the user's __eq__.
bool same_key(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || Py_TYPE(a) != Py_TYPE(b)) return false;
  return equal_constants(a, b);
}

size_t key_hash(PyObject* key) {
  if (key == nullptr) return 0;
  if (PyUnicode_CheckExact(key) || PyLong_CheckExact(key))
    return static_cast<size_t>(PyObject_Hash(key));
  return 1;
}

bool is_root(Source::Kind kind) { return kind <= Source::Kind::constant; }

/// Whether the key identifies the step. That of an argument or closure cell is only its name, for
/// text.
bool key_matters(Source::Kind kind) {
  return kind != Source::Kind::argument && kind != Source::Kind::closure;
}

std::string name_of(PyObject* key) {
  if (key == nullptr) return "?";
  if (PyUnicode_Check(key)) return text_of(key);
  return describe_object(key);
}

}  // namespace

std::string Source::describe() const {
  if (base == nullptr) return describe_step(kind, key.get(), index, {}, false);
  return describe_step(kind, key.get(), index, base->describe(), base->kind == Kind::function);
}

std::string describe_step(Source::Kind kind, PyObject* key, Py_ssize_t index, const std::string& of,
                          bool of_function) {
  using Kind = Source::Kind;
  switch (kind) {
    case Kind::argument:
      return key != nullptr ? name_of(key) : cat("argument ", index);
    case Kind::keyword:
    case Kind::variable:
      return name_of(key);
    case Kind::function:
      return "the function";
    case Kind::constant:
      return describe_object(key);
    case Kind::attribute:
    case Kind::instance_value:
    case Kind::type_attribute:
      return cat(of, ".", name_of(key));
    case Kind::type:
      return cat("type(", of, ")");
    case Kind::item:
      return cat(of, "[", describe_object(key), "]");
    case Kind::index:
      return cat(of, "[", index, "]");
    case Kind::length:
      return length_text(of);
    case Kind::global:
      return of_function ? name_of(key) : cat(of, ".__globals__[", describe_object(key), "]");
    case Kind::closure:
      return key != nullptr ? name_of(key) : cat(of, ".__closure__[", index, "]");
    case Kind::default_value:
      return cat(of, ".__defaults__[", index, "]");
    case Kind::keyword_default:
      return cat(of, ".__kwdefaults__[", describe_object(key), "]");
    case Kind::bound_function:
      return cat(of, ".__func__");
    case Kind::bound_self:
      return cat(of, ".__self__");
    case Kind::code:
      return cat(of, ".__code__");
    case Kind::grad:
      return cat(of, ".grad");
    case Kind::context_value:
      return cat(of, ".get()");
    case Kind::array_contents:
      return cat("torch.tensor(", of, ")");
    case Kind::link_result:
      return cat("the result in ", of);
    case Kind::tensor_item:
      return cat(of, ".item()");
  }
  return of;
}

const Source* SourceTable::root(Source::Kind kind, python::Object key, Py_ssize_t index) {
  TORCHJANUS_CHECK(is_root(kind), "source: a step was given as a root");
  return intern(Source{kind, nullptr, std::move(key), index});
}

const Source* SourceTable::step(Source::Kind kind, const Source* base, python::Object key,
                                Py_ssize_t index) {
  TORCHJANUS_CHECK(!is_root(kind) && base != nullptr, "source: a step needs a base");
  return intern(Source{kind, base, std::move(key), index});
}

const Source* SourceTable::intern(Source source) {
  const bool by_key = key_matters(source.kind);
  const size_t hash =
      static_cast<size_t>(source.kind) ^ (std::hash<const void*>()(source.base) << 1) ^
      (static_cast<size_t>(source.index) << 7) ^ (by_key ? key_hash(source.key.get()) << 3 : 0);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto found = begin; found != end; ++found) {
    const Source* known = found->second;
    if (known->kind == source.kind && known->base == source.base && known->index == source.index &&
        (!by_key || same_key(known->key.get(), source.key.get())))
      return known;
  }
  // Interned, since names are compared and looked up at every call.
  if (source.key && PyUnicode_CheckExact(source.key.get())) {
    PyObject* name = source.key.release();
    PyUnicode_InternInPlace(&name);
    source.key = python::Object::steal(name);
  }
  sources_.push_back(std::move(source));
  by_hash_.emplace(hash, &sources_.back());
  return &sources_.back();
}

}  // namespace janus::speculate
