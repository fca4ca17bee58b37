#include "frontend/values/symbolic_list.h"

#include <algorithm>

#include "frontend/values/restart.h"

namespace janus::frontend {

using graph::Type;

const Rolled* rolled(const Value& value) {
  const auto* sequence = as<Sequence>(value);
  return sequence == nullptr ? nullptr : sequence->elements.rolled().get();
}

std::vector<Type> list_types(const ElementForm& form) {
  if (form.kind != ElementForm::Kind::tuple) return {Type::list(form.type)};
  std::vector<Type> types;
  for (const ElementForm& part : form.parts)
    for (Type& type : list_types(part)) types.push_back(std::move(type));
  return types;
}

bool is_tracked(const ElementForm& form) {
  return form.tracked || std::ranges::any_of(form.parts, is_tracked);
}

void ElementList::fail() const {
  throw CannotMerge{rolled_->test, "the length of a symbolic list has to be known"};
}

}  // namespace janus::frontend
