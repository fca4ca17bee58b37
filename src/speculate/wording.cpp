// See wording.h.
#include "speculate/wording.h"

#include <utility>

#include "base/check.h"
#include "speculate/describe.h"

namespace janus::speculate {

using Kind = Assumption::Kind;

namespace {

std::string pattern_text(const ElementPattern& pattern) {
  switch (pattern.kind) {
    case ElementPattern::Kind::integer:
      return "int";
    case ElementPattern::Kind::floating:
      return "float";
    case ElementPattern::Kind::boolean:
      return "bool";
    case ElementPattern::Kind::tensor:
      return graph::to_string(graph::Type::tensor(pattern.tensor.dtype, pattern.tensor.dims));
    case ElementPattern::Kind::tuple:
      break;
  }
  std::string text = "(";
  for (const ElementPattern& part : pattern.parts)
    text += (text.size() > 1 ? ", " : "") + pattern_text(part);
  return text + ")";
}

}  // namespace

std::string separate_memory_text(const std::string& path, bool is_written) {
  return cat(path, " shares no memory with ",
             is_written ? "another tensor" : "a tensor that is written");
}

Wording wording_of(const Assumption& a) {
  switch (a.kind) {
    case Kind::identity:
      return {"", cat(" is ", describe_object(a.object.get()))};
    case Kind::exact_type:
      return {"type(", cat(") is ", describe_object(a.object.get()))};
    case Kind::equals:
      return {"", cat(PyLong_CheckExact(a.object.get()) || PyFloat_CheckExact(a.object.get()) ||
                              PyUnicode_CheckExact(a.object.get())
                          ? " == "
                          : " is ",
                      describe_object(a.object.get()))};
    case Kind::length:
      return {"len(", cat(") == ", a.number)};
    case Kind::keys:
      return {"the keys of ", cat(" are ", describe_object(a.object.get()))};
    case Kind::has_key:
      return {"", cat(" has the item ", describe_object(a.object.get()))};
    case Kind::missing_key:
      return {"", cat(" has no item ", describe_object(a.object.get()))};
    case Kind::missing_attribute:
      return {"", cat(" has no class attribute ", describe_object(a.object.get()))};
    case Kind::truth:
      return {"bool(", a.number != 0 ? ") is True" : ") is False"};
    case Kind::integer:
      return {"", a.symbol.empty() ? " is an int" : cat(" is an int, ", a.symbol)};
    case Kind::floating:
      return {"", " is a float"};
    case Kind::boolean:
      return {"", " is a bool"};
    case Kind::no_grad_value:
      return {"", ".grad is None"};
    case Kind::elements:
      return {"", cat(" has ", a.symbol, " elements ", pattern_text(*a.elements))};
    case Kind::same_object:
      return {"", cat(" is ", a.other->describe())};
    case Kind::not_same_object:
      return {"", a.other != nullptr ? cat(" is not ", a.other->describe())
                                     : cat(" is not one of the others of group ", a.number)};
    case Kind::separate_memory:
      return {"", separate_memory_text({}, a.number != 0)};
    case Kind::tensor:
      break;
  }
  std::string text =
      cat(": ", graph::to_string(graph::Type::tensor(a.tensor.dtype, a.tensor.dims)));
  if (a.tensor.requires_grad) text += a.tensor.is_leaf ? ", requires grad" : ", has a grad_fn";
  if (a.tensor.strides) text += ", not contiguous";
  if (a.tensor.any_strides) text += ", of any strides";
  return {"", std::move(text)};
}

std::string describe(const Assumption& assumption) {
  return wording_of(assumption).around(assumption.source->describe());
}

}  // namespace janus::speculate
