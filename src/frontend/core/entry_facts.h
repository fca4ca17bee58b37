// What earlier calls, and earlier attempts of this generation, have shown of the objects at the
// paths from the entry.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "speculate/facts.h"
#include "speculate/generated.h"
#include "speculate/source.h"

namespace janus::frontend {

class EntryFacts {
 public:
  /// `varying`: paths of numbers that the run itself is known to change.
  EntryFacts(const speculate::Call& call, const std::set<std::string>& varying)
      : call_(call), varying_(varying) {}
  EntryFacts(const EntryFacts&) = delete;
  EntryFacts& operator=(const EntryFacts&) = delete;

  /// The facts of the code that is interpreted, by whose paths what was seen is found.
  void set_entry_facts(speculate::Facts* facts) { facts_ = facts; }
  /// What was seen at the path; null if nothing.
  const speculate::ValueFact* path_fact(const std::string& path) const;
  /// Whether calls found different values at the path.
  bool has_varied(const speculate::Source* source) const;
  /// Whether calls found different objects where the source begins.
  bool differs_from_call_to_call(const speculate::Source* source) const;
  /// Whether numbers and sizes may be inputs although they have not varied yet; see kSwitches.
  bool generalises(std::string_view specialisation) const;

  // --- numbers that change, though the calls so far did not show it
  /// Whether an earlier attempt found that it changes the one at the source, or others do.
  bool is_changed(const speculate::Source* source) const;
  /// Somebody else is known to change it between calls, sooner or later.
  void expect_change(const speculate::Source* source);
  /// It does: if the number was taken for a constant, the run has to be interpreted again.
  void note_changed_number(const speculate::Source* source);
  const std::set<std::string>& changed_numbers() const { return changed_numbers_; }

 private:
  const speculate::Call& call_;
  const std::set<std::string>& varying_;
  speculate::Facts* facts_ = nullptr;
  std::set<std::string> changed_numbers_;
  std::set<const speculate::Source*> expected_to_change_;
};

/// Whether the path ends at something that the caller hands over: an argument or a part of one.
bool is_handed_over(const speculate::Source* source);

}  // namespace janus::frontend
