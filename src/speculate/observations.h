// The observed entry values of one function (or run of statements), by path and by kind of object.
// They fill Facts::paths.
//
// Kinds are kept apart (a float32 matrix, a float64 matrix, an int), because a graph for one kind
// does not fit another: two kinds mean two graphs, two shapes of one kind one graph with a symbolic
// dimension. Of plain objects (a tree, a list) only identity is observed, of texts whether there
// are ever new ones. Other objects (modules, flags outside of lists and tuples) are not recorded:
// each value has a graph of its own, up to the limit of the cache.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "speculate/facts.h"

namespace janus::speculate {

class Observations {
 public:
  /// Observations from here on belong to a new call.
  void begin_call();
  /// Joins the object to its fact. True if the fact became more general (not for the first value).
  bool see(const std::string& path, PyObject* object);
  /// Numbers at the path will vary, even if the first calls have not shown it.
  void expect_to_vary(std::string path) { expected_to_vary_.insert(std::move(path)); }
  /// Forgets what was seen, not what is expected.
  void forget();
  /// Adds the fact about objects of the same kind at the path, if there is one. `with_texts`: also
  /// about texts that are ever new.
  void add_fact(const std::string& path, PyObject* object,
                std::map<std::string, ValueFact, std::less<>>& facts, bool with_texts) const;
  /// Whether any fact is more general than one value or shape, or will be, or aliases_vary().
  bool any_varies() const;
  /// Whether some text had so many values that it may have any.
  bool texts_vary() const;
  /// Whether two paths led to one tensor in one call and to two in another.
  bool aliases_vary() const;
  /// The largest count of different values of one number, as far as they are counted.
  size_t most_values() const;

 private:
  using Key = std::pair<std::string, std::string>;  ///< a path, and the kind of object
  bool see_text(const std::string& path, PyObject* text);
  void note_tensor(const Key& key, ValueFact& fact, PyObject* object);

  uint64_t call_ = 0;
  std::map<Key, ValueFact> facts_;
  std::map<const PyObject*, Key> tensors_;  ///< of this call: the first path to each tensor
  std::set<std::pair<Key, Key>> shared_;    ///< pairs that led to one tensor in some call
  std::set<std::string, std::less<>> expected_to_vary_;
  std::map<std::string, std::set<Py_hash_t>, std::less<>> numbers_;
  std::map<std::string, std::set<Py_hash_t>, std::less<>> texts_;
  /// By path without indices: an element that varied, which stands for all elements there.
  std::map<Key, ValueFact> varied_elements_;
};

}  // namespace janus::speculate
