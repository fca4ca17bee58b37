// The inline cache of guards: where the objects of the last successful walk were found, as words of
// memory. While these words are unchanged, the same objects are reached again, and the assumptions
// about them hold without a check.
//
// A word is the class of an object, the pointer to an instance's dictionary, an item of a list, or
// the version of a dictionary or class. Versions make the cache pay: a dictionary has a new number
// after each change (python/dict_version.h), and a class after each change of it or its bases. So
// one word stands for all entries that were read, and for those that were missing. A word is read
// only after those before it have shown that its object is alive.
//
// Everything else (arguments, objects that are new at each call, shapes of tensors) is walked and
// checked at each call. If a word differs, nothing is concluded: the guards walk all paths, and if
// they hold the cache is filled again. A step that differs again and again is walked from then on.
//
// The cache does not notice deaths: who expects an object is told of its death (see
// Guards::forget).
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "python/dict_version.h"
#include "speculate/guard_tree.h"

namespace janus::speculate {

class InlineCache {
 public:
  explicit InlineCache(const GuardTree& tree);

  /// Whether the guards surely hold; then `captured` has the collected objects. False says nothing.
  bool holds(const Call& call, std::vector<python::Object>& captured);
  /// Fills the cache: the guards held for a call that reached these objects.
  void note(PyObject* const* objects);
  /// Switches the cache off: from now on holds() is false.
  void forget() { is_off_ = true; }
  /// The number of times that holds() was true.
  uint64_t hits() const { return hits_; }

 private:
  /// A word of memory that has not changed since. `place` is read only if all earlier words hold.
  struct VersionCheck {
    const void* place;
    uint64_t mask, expected;
    uint32_t step;       ///< the step that is walked if the word keeps changing
    int32_t dictionary;  ///< the dictionary whose version this is, or negative
  };
  struct Entry {
    uint32_t step;  ///< the step whose key was read
    PyObject* found;
  };
  /// The entries that were read in a dictionary. A change of other entries does not matter.
  struct Dictionary {
    PyObject* object;
    python::DictVersion version;
    std::vector<Entry> entries{};
    std::vector<std::pair<uint32_t, const Check*>> checks{};  ///< checks of which keys exist
  };
  struct Root {
    uint32_t step;
    bool is_expected;  ///< expected to be the same object as at the last call
  };
  struct Recheck {
    uint32_t step;
    const Check* check;
  };

  class Noting;
  void start_over();
  bool find_roots(const Call& call);
  bool check_versions(Walk& walk);
  bool has_changed_elsewhere(VersionCheck& check, Walk& walk);
  bool has_same_entries(const Dictionary& dictionary, Walk& walk) const;
  bool walk_changing(const Call& call, Walk& walk);
  bool check_values(Walk& walk) const;
  bool check_tensors(Walk& walk) const;
  void note_changes(PyObject* const* objects);

  const GuardTree& tree_;
  bool is_off_ = false;
  bool is_known_ = false;  ///< the cache is filled
  bool in_use_ = false;
  uint64_t hits_ = 0, notes_ = 0;
  std::vector<PyObject*> objects_;  ///< by step; borrowed, alive as long as the version checks hold
  std::vector<uint8_t> changes_;    ///< by step: number of times that its object changed
  std::vector<char> is_captured_;   ///< by step: its object is collected
  std::vector<char> is_changing_;   ///< by step: walked at each call
  std::vector<Root> roots_;
  std::vector<VersionCheck> version_checks_;
  std::vector<Dictionary> dictionaries_;
  std::vector<uint32_t> changing_;  ///< steps that are walked
  std::vector<Recheck> rechecks_;
  std::vector<ExpectedTensor> tensors_;
  std::vector<int64_t> numbers_;        ///< sizes and strides of tensors_
  std::vector<const Check*> symbolic_;  ///< checks of tensors that bind symbols
  std::vector<const DistinctCheck*> distinct_;
  std::vector<const PairCheck*> pairs_;        ///< pairs with at least one object that is walked
  std::vector<uint32_t> memory_;               ///< by index in tree.memory: the index in tensors_
  mutable std::vector<const void*> storages_;  ///< of tensors_
};

}  // namespace janus::speculate
