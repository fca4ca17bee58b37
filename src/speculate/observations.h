// What the entry values of one function (or run of statements) have been, by path and by kind of
// object: the source of Facts::paths.
//
// Kinds are kept apart (a float32 matrix, a float64 matrix, an int) because a graph for one kind
// says nothing about another: two kinds mean two graphs, two shapes of one kind mean one graph with
// a varying dimension. Of plain objects (a tree, a list) it is known whether it was always the same
// one. Others (modules, strings, flags but for those in lists and tuples) are not recorded at all:
// each of their values has a graph of its own, up to the cache's limit.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "speculate/facts.h"

namespace janus::speculate {

class Observations {
 public:
  /// What is seen from here on is of one more call.
  void begin_call();
  /// Joins; true if that made the fact more general than it was (not for the first value).
  bool see(const std::string& path, PyObject* object);
  /// Adds the fact about objects of this object's kind at the path, if there is one.
  void add_fact(const std::string& path, PyObject* object,
                std::map<std::string, ValueFact, std::less<>>& facts) const;
  /// Whether any fact is more general than one value or shape, or aliases_vary().
  bool any_varies() const;
  /// Whether two paths led to one tensor in some call and to two in another.
  bool aliases_vary() const;
  /// How many values were seen of the number that had most, as far as they are counted.
  size_t most_values() const;

 private:
  using Key = std::pair<std::string, std::string>;  ///< a path, and the kind of object
  void note_tensor(const Key& key, ValueFact& fact, PyObject* object);

  uint64_t call_ = 0;
  std::map<Key, ValueFact> facts_;
  std::map<const PyObject*, Key> tensors_;  ///< of this call, by identity: the first path to each
  std::set<std::pair<Key, Key>> shared_;    ///< that led to one tensor in some call
  std::map<std::string, std::set<Py_hash_t>, std::less<>> numbers_;
  /// By path with all indices left out: of an element that varied, which stands for all alike.
  std::map<Key, ValueFact> varied_elements_;
};

}  // namespace janus::speculate
