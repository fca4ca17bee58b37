#include "frontend/core/entry_facts.h"

#include "base/options.h"

namespace janus::frontend {

using speculate::Source;
using speculate::ValueFact;
using Level = speculate::ValueFact::Level;

const ValueFact* EntryFacts::path_fact(const std::string& path) const {
  if (facts_ == nullptr) return nullptr;
  auto found = facts_->paths.find(path);
  return found == facts_->paths.end() ? nullptr : &found->second;
}

bool EntryFacts::has_varied(const Source* source) const {
  const ValueFact* seen = path_fact(source->describe());
  return seen != nullptr && seen->level() > Level::value;
}

bool EntryFacts::differs_from_call_to_call(const Source* source) const {
  for (; source != nullptr; source = source->base)
    if (has_varied(source)) return true;
  return false;
}

bool EntryFacts::generalises(std::string_view specialisation) const {
  return call_.general && options().is_disabled(specialisation);
}

bool EntryFacts::is_changed(const Source* source) const {
  return expected_to_change_.contains(source) ||
         (!varying_.empty() && varying_.contains(source->describe()));
}

void EntryFacts::expect_change(const Source* source) { expected_to_change_.insert(source); }

void EntryFacts::note_changed_number(const Source* source) {
  changed_numbers_.insert(source->describe());
}

bool is_handed_over(const Source* source) {
  while (source->kind == Source::Kind::index || source->kind == Source::Kind::item ||
         source->kind == Source::Kind::array_contents)
    source = source->base;
  return source->kind == Source::Kind::argument || source->kind == Source::Kind::keyword ||
         source->kind == Source::Kind::variable;
}

}  // namespace janus::frontend
