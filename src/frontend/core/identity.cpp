#include "frontend/core/identity.h"

#include "frontend/core/assumptions.h"
#include "frontend/core/local_functions.h"
#include "frontend/core/object_kinds.h"

namespace janus::frontend {

EntryObject entry_object_of(const Value& value) {
  if (const auto* tensor = as<Tensor>(value)) return {tensor->object.get(), tensor->source};
  const auto* known = as<Known>(value);
  if (known == nullptr || known->source == nullptr ||
      known->source->kind == Source::Kind::constant ||
      Py_TYPE(known->object.get())->tp_hash != PyBaseObject_Type.tp_hash ||
      (is_identity_object(known->object.get()) && !is_local_function(known->object.get())))
    return {nullptr, nullptr};
  return {known->object.get(), known->source};
}

bool Identities::are_one(Assumptions& assumptions, const EntryObject& one,
                         const EntryObject& other) {
  if (one.object == other.object) {
    assumptions.assume_same_object(one.source, other.source);
    return true;
  }
  // The classes of objects are assumed wherever these are met.
  if (Py_TYPE(one.object) != Py_TYPE(other.object)) return false;
  tell_apart(assumptions, one);
  tell_apart(assumptions, other);
  return false;
}

void Identities::tell_apart(Assumptions& assumptions, const EntryObject& object) {
  const auto [known, added] = told_apart_.try_emplace(object.object, object.source);
  if (!added) return assumptions.assume_same_object(object.source, known->second);
  auto group = groups_.find(Py_TYPE(object.object));
  if (group == groups_.end())
    group = groups_.emplace(Py_TYPE(object.object), assumptions.new_group()).first;
  assumptions.assume(Assumption::Kind::not_same_object, object.source, {}, group->second);
}

}  // namespace janus::frontend
