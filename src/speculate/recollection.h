// What guards met the last time they held, as places in memory: where those are as they were, the
// same objects are reached again, and what was assumed of them holds without being looked at.
//
// A place is a word: the class of an object, the pointer to an instance's dictionary, an item of a
// list, the version of a dictionary or of a class. Versions are what makes this pay: CPython gives
// a dictionary a number of its own at each change, and a class at each change of it or its bases,
// so one word stands for all the entries that were read and for those that were missing. A word is
// only looked at when those before it have shown that the object it lies in is alive.
//
// What can't be told in this way (arguments, objects that are new at each call, shapes of tensors)
// is walked and checked at each call. When a word differs nothing is concluded: the guards walk
// everything, and if they hold it is noted anew; what differs again and again is walked from then
// on.
//
// Death is not looked for here: whoever expects an object is told of its death (see
// Guards::forget).
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "speculate/guard_tree.h"

namespace janus::speculate {

class Recollection {
 public:
  explicit Recollection(const GuardTree& tree);

  /// Whether the guards hold for certain; `captured` has the objects asked for then. False says
  /// nothing.
  bool holds(const Call& call, std::vector<python::Object>& captured);
  /// The guards held for a call that led to these objects.
  void note(PyObject* const* objects);
  /// From now on holds() is false.
  void forget() { is_off_ = true; }
  /// How often holds() was true.
  uint64_t hits() const { return hits_; }

 private:
  /// `place` is not read before all earlier ones were as expected.
  struct Witness {
    const void* place;
    uint64_t mask, expected;
    uint32_t step;       ///< which is looked at anew if this one keeps changing
    int32_t dictionary;  ///< the one whose version this is, or negative
  };
  struct Entry {
    uint32_t step;  ///< whose key it is
    PyObject* found;
  };
  /// What was read in a dictionary. Where it changed, but not in these entries, all is well.
  struct Dictionary {
    PyObject* object;
    std::vector<Entry> entries;
    std::vector<std::pair<uint32_t, const Check*>> checks;  ///< about which keys there are
  };
  struct Root {
    uint32_t step;
    bool is_expected;  ///< to be the same object as at the last call
  };
  struct Recheck {
    uint32_t step;
    const Check* check;
  };

  class Noting;
  void start_over();
  bool find_roots(const Call& call);
  bool see_witnesses(Walk& walk);
  bool has_same_entries(Dictionary& dictionary, Walk& walk) const;
  bool walk_changing(const Call& call, Walk& walk);
  bool check_values(Walk& walk) const;
  bool check_tensors(Walk& walk) const;
  void note_changes(PyObject* const* objects);

  const GuardTree& tree_;
  bool is_off_ = false;
  bool is_known_ = false;  ///< there is something noted
  bool in_use_ = false;
  uint64_t hits_ = 0, notes_ = 0;
  std::vector<PyObject*> objects_;  ///< by step; borrowed, alive as the witnesses show
  std::vector<uint8_t> changes_;    ///< by step: how often its object was another one
  std::vector<char> is_captured_;   ///< by step: its object itself is needed
  std::vector<char> is_changing_;   ///< by step: walked at each call
  std::vector<Root> roots_;
  std::vector<Witness> witnesses_;
  std::vector<Dictionary> dictionaries_;
  std::vector<uint32_t> changing_;  ///< steps to be walked
  std::vector<Recheck> rechecks_;
  std::vector<ExpectedTensor> tensors_;
  std::vector<int64_t> numbers_;        ///< sizes and strides of tensors_
  std::vector<const Check*> symbolic_;  ///< checks of tensors that bind symbols
  std::vector<const DistinctCheck*> distinct_;
  std::vector<const PairCheck*> pairs_;        ///< of which one object at least is walked
  std::vector<uint32_t> memory_;               ///< by index in tree.memory: the index in tensors_
  mutable std::vector<const void*> storages_;  ///< of tensors_
};

}  // namespace janus::speculate
