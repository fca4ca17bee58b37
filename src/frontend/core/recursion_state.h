// What the rooms before `recursion` have to know of recursive functions: why a generation begins
// anew with more left to the run, and whether a function of the graph is being made.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/core/dimension_table.h"
#include "frontend/values/value.h"

namespace janus::frontend {

class EntryFacts;

/// Thrown to begin the generation anew with more in its Generalisation.
struct Generalise {
  const syntax::Scope* function = nullptr;
  python::Object facts_key = {};            ///< of its code
  std::string run_time = {}, varying = {};  ///< empty: none
  std::string written = {};                 ///< an attribute of objects met at run time
  std::optional<EqualSizes> equal = {};     ///< sizes of the entry that have to be equal
};
/// What earlier attempts of this generation have found out.
struct Generalisation {
  std::set<const syntax::Scope*> recursive;  ///< functions that become functions of the graph
  std::vector<python::Object> facts_keys;    ///< of their code
  /// Paths of objects that are left to the run; "path[*]" stands for all elements.
  std::set<std::string> run_time;
  /// Attributes that the run writes to objects that it meets (runtime_store_log.h).
  std::vector<std::string> written;
  /// Parts of arguments that differ from activation to activation.
  std::set<std::pair<const syntax::Scope*, std::string>> varying;
  /// Whether an unknown size of a pre-existing tensor that equals a varying size is taken for that
  /// size, as for masks kept in attributes.
  bool names_equal_sizes = false;
  /// Sizes of the entry that have one name although they differed in calls before.
  std::set<EqualSizes> equal_sizes;
  /// Whether all sizes of the entry that are equal now have one name.
  bool one_name_a_size = false;
  /// Whether tensors of the entry whose sizes vary are assumed to lie as they do now.
  bool exact_strides = false;

  void add(const Generalise& found);
  /// Whether the test is one of a recursive function.
  bool owns(const TestKey& test) const;
};

/// Thrown where the result of a call is needed and nothing is known of it yet. The side of a branch
/// that needs the result is left out.
struct UnknownResult {
  const void* function;
};

/// The recursive functions of one interpretation; recursion/recursion.h makes them.
class RecursionState {
 public:
  RecursionState(const EntryFacts& facts, const Generalisation& known)
      : facts_(facts), known_(known) {}
  RecursionState(const RecursionState&) = delete;
  RecursionState& operator=(const RecursionState&) = delete;
  virtual ~RecursionState() = default;

  /// Whether a function is being made: what fails then, fails for it.
  virtual bool is_building() const = 0;
  /// Whether the object at the path is left to the run.
  bool is_run_time(const speculate::Source* source) const;
  /// Whether sizes that are equal to one that varies are that one.
  bool names_equal_sizes() const { return known_.names_equal_sizes; }
  bool wants_exact_strides() const { return known_.exact_strides; }
  /// Begins the generation anew with the object left to the run, if it is pre-existing data that
  /// differs from call to call.
  void leave_to_run(const Value& value) const;
  /// Whether the test is one of a recursive function that is interpreted in place.
  bool is_first_activation(const TestKey& test) const;
  /// Whether it is the code of a recursive function.
  bool is_recursive(const Code& code) const;

  /// Whether a loop that needs an unknown result is taken for a loop without iterations, and
  /// whether one was. If not, the side of a branch that it stands in is left out.
  bool leaves_loops_out = true, left_loop_out = false;

 protected:
  const Generalisation& known() const { return known_; }

 private:
  const EntryFacts& facts_;
  const Generalisation& known_;
};

/// Whether the value is data of the program, such as a node of a tree.
bool is_data(const Value& value);
/// The path of an object that existed before the call; null if there is none.
const speculate::Source* path_at_entry(const Value& value);
/// Where the object at the source is found again: an element of a list stands for all of them.
std::string place_of(const speculate::Source* source);

}  // namespace janus::frontend
