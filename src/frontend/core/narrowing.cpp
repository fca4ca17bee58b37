#include "frontend/core/narrowing.h"

#include <memory>
#include <optional>

#include "frontend/core/scopes.h"
#include "frontend/values/restart.h"

namespace janus::frontend {

Value narrowed(Scopes& scopes, const Value& value) {
  if (const auto* either = as<Either>(value)) {
    if (const std::optional<bool> outcome = scopes.outcome_of(either->flag))
      return narrowed(scopes, *outcome ? either->if_true : either->if_false);
    scopes.not_narrowed = either->test;
    return value;
  }
  const auto* optional = as<Optional>(value);
  if (optional == nullptr) return value;
  if (const std::optional<bool> is_there = scopes.outcome_of(optional->flag))
    return *is_there ? optional->value
                     : std::make_shared<Known>(python::Object::borrow(Py_None), nullptr);
  scopes.not_narrowed = optional->test;
  return value;
}

void expect_narrowed(const Value& value) {
  if (const auto* optional = as<Optional>(value))
    throw CannotMerge{optional->test, "something is None on one side"};
  if (const auto* either = as<Either>(value)) throw CannotMerge{either->test, either->why};
}

void expect_narrowed(const CallArguments& arguments) {
  for (const Value& value : arguments.positional) expect_narrowed(value);
  for (const auto& [name, value] : arguments.keywords) expect_narrowed(value);
}

void check_merged(const Value& variable) {
  if (const auto* unmerged = as<Unmerged>(variable))
    throw CannotMerge{unmerged->test, unmerged->why, unmerged->in_first_iteration,
                      unmerged->in_sizes};
}

}  // namespace janus::frontend
