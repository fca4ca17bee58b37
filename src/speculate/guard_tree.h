// The compiled guards of one graph: the steps of all access paths, each behind its base, with the
// checks of the objects there. guard_compiler.cpp makes the tree; inline_cache.cpp caches the last
// walk.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "speculate/generated.h"
#include "speculate/guard_checks.h"
#include "speculate/mismatch.h"
#include "speculate/path.h"
#include "speculate/scratch.h"
#include "speculate/separate_memory.h"

namespace janus::speculate {

/// An equation of a symbolic dimension or of a DimAssumption, checked once all symbols are bound.
struct Relation {
  graph::Dim left;
  graph::Dim right;
  ptrdiff_t left_size = -1;  ///< if not negative, `left` is this entry of the sizes
  std::string path;
  graph::SourceSpan span;
};

struct Step {
  PathStep path;
  /// The path: from the beginning if its key may be dead when it is asked for, else from the first
  /// call on that no graph fits. Making it takes longer than all checks. Guarded by the GIL.
  mutable std::string text;
  std::vector<Check> checks;
  bool about_value = false;  ///< a number or a tensor's shape is assumed here
};

/// Requires that two objects are, or are not, identical.
struct PairCheck {
  uint32_t step = 0, other = 0;
  bool same = false;
  graph::SourceSpan span;
};

/// Requires that all objects are distinct.
struct DistinctCheck {
  std::vector<uint32_t> steps;
  graph::SourceSpan span;

  /// Two steps that lead to the same object.
  std::optional<std::pair<uint32_t, uint32_t>> find_same(PyObject* const* objects) const;
};

/// Requires that the tensor shares memory with no other: see separate_memory.h.
struct MemoryCheck {
  uint32_t step = 0;
  bool is_written = false;
  graph::SourceSpan span;
  std::shared_ptr<const ElementPattern>
      elements;  ///< null unless it is about the tensors in a list
};

/// Two checks whose tensors share memory that the graph writes; `storage_of` gives the storage for
/// a check about one tensor.
template <class StorageOf>
std::optional<std::pair<size_t, size_t>> find_shared_memory(const std::vector<MemoryCheck>& checks,
                                                            PyObject* const* objects,
                                                            StorageOf&& storage_of) {
  size_t count = 0;
  for (const MemoryCheck& each : checks)
    count += each.elements ? count_tensors(*each.elements, objects[each.step]) : 1;
  SeparateMemory separate(count);
  for (size_t i = 0; i < checks.size(); ++i) {
    std::optional<size_t> other;
    const auto add = [&](const void* storage) {
      if (!other) other = separate.add(i, storage, checks[i].is_written);
    };
    if (checks[i].elements == nullptr)
      add(storage_of(i));
    else
      for_each_tensor(*checks[i].elements, objects[checks[i].step],
                      [&](PyObject* tensor) { add(tensor_access().storage_of(tensor)); });
    if (other) return std::pair(i, *other);
  }
  return std::nullopt;
}

struct GuardTree {
  Py_ssize_t argument_count = 0;
  python::Object keyword_names;  ///< null: none
  Environment environment;
  std::vector<Step> steps;
  std::vector<uint32_t> captured;
  std::vector<PairCheck> pairs;
  std::vector<DistinctCheck> distinct;
  std::vector<MemoryCheck> memory;
  std::vector<Relation> relations;
  std::map<std::string, size_t, std::less<>> symbols;
  std::set<Wording> wordings;  ///< shared by many checks
  size_t size_count = 0;

  using Objects = Scratch<PyObject*, 512>;  ///< by step

  bool walk(const Call& call, Objects& objects, Walk& walk,
            std::optional<Mismatch>* mismatch) const;
  std::optional<Mismatch> check_entry(const Call& call, const Environment& found) const;
  std::optional<Mismatch> check_pairs(Objects& objects) const;
  std::optional<Mismatch> check_relations(Walk& walk) const;
  PyObject* reach(uint32_t step, const Call& call, std::vector<python::Object>& owned) const;
  void capture(PyObject* const* objects, std::vector<python::Object>& captured) const;
  std::optional<int64_t> evaluate(const graph::Dim& dim, Walk& walk) const;
  std::string text(uint32_t step) const;              ///< of its path
  const std::string& kept_text(uint32_t step) const;  ///< the same, kept after the first question
  std::string text(const PairCheck& pair) const;
};

}  // namespace janus::speculate
