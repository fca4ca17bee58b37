#include "frontend/core/scopes.h"

#include <algorithm>

#include "base/check.h"
#include "ops/list.h"

namespace janus::frontend {

// --- those that are open ------------------------------------------------------------------------

void Scopes::begin_scope(Scope& scope) {
  open_scopes_.push_back(&scope);
  ++scope_count_;
  set_suspect(scope.test());
}

void Scopes::end_scope(Scope& scope) {
  TORCHJANUS_CHECK(!open_scopes_.empty() && open_scopes_.back() == &scope,
                   "branches and loops end out of order");
  open_scopes_.pop_back();
  set_suspect(open_scopes_.empty() ? scope.test() : open_scopes_.back()->test());
}

void Scopes::abandon_scopes(const Scope& scope) {
  while (open_scopes_.back() != &scope) open_scopes_.pop_back();
  set_suspect(scope.test());
}

void Scopes::set_suspect(const TestKey* test) {
  suspect_ = test == nullptr ? std::nullopt : std::optional(*test);
}

bool Scopes::only_branches_since(size_t count) const {
  return std::all_of(open_scopes_.begin() + static_cast<std::ptrdiff_t>(count), open_scopes_.end(),
                     [](const Scope* scope) { return scope->is_branch(); });
}

bool Scopes::is_open(const graph::Block* block) const {
  if (writer_.is_body(block)) return true;
  for (const Scope* scope : open_scopes_)
    if (scope->is_inside(block)) return true;
  return false;
}

bool Scopes::may_come_again(const Tensor& tensor) {
  const graph::Block* here = writer_.block();
  auto scope = std::find_if(open_scopes_.rbegin(), open_scopes_.rend(),
                            [&](const Scope* each) { return each->is_inside(here); });
  if (scope == open_scopes_.rend() && !writer_.is_body(here)) scope = open_scopes_.rbegin();
  return std::any_of(scope, open_scopes_.rend(),
                     [&](const Scope* each) { return each->keeps(tensor); });
}

void Scopes::existed_before(Changeable& object) {
  for (Scope* scope : open_scopes_) scope->add_entry_object(object);
}

// --- what is followed ---------------------------------------------------------------------------

const CannotMerge* Scopes::followed(const TestKey& test) const {
  for (const CannotMerge& each : followed_)
    if (each.test == test && !each.in_first_iteration && !each.in_sizes) return &each;
  return nullptr;
}

bool Scopes::takes_first_iteration(const TestKey& test) const {
  return std::ranges::any_of(followed_, [&](const CannotMerge& each) {
    return each.test == test && each.in_first_iteration;
  });
}

bool Scopes::leaves_sizes(const TestKey& test) const {
  return std::ranges::any_of(
      followed_, [&](const CannotMerge& each) { return each.test == test && each.in_sizes; });
}

// --- flags --------------------------------------------------------------------------------------

void Scopes::note_guarded(const graph::Value* flag, bool outcome) {
  guarded_.try_emplace(flag, Guarded{writer_.block(), outcome});
}

std::optional<bool> Scopes::outcome_of(const graph::Value* flag) const {
  bool negated = false;
  for (;;) {
    for (const Scope* scope : open_scopes_)
      if (const auto outcome = scope->outcome(flag)) return *outcome != negated;
    if (auto known = guarded_.find(flag); known != guarded_.end() && is_open(known->second.block))
      return known->second.outcome != negated;
    if (flag->definition == nullptr || flag->definition->op != &op::scalar_not) return std::nullopt;
    flag = flag->definition->inputs[0];
    negated = !negated;
  }
}

}  // namespace janus::frontend
