// Guards, compiled: the steps of all paths in an order in which each comes after its base, with the
// checks of the objects there. What walks it from scratch is in guards.cpp, what remembers the last
// walk in recollection.cpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "speculate/guards.h"
#include "speculate/path.h"
#include "speculate/scratch.h"
#include "speculate/separate_memory.h"

namespace janus::speculate {

struct DimCheck {
  enum class Kind { constant, symbol, expression } kind = Kind::constant;
  int64_t number = 0;  ///< constant: the size; symbol: the least size
  size_t symbol = 0;
};

struct TensorCheck {
  TensorPattern pattern;
  std::vector<DimCheck> dims;
  size_t first_size = 0;  ///< where its sizes stand in the walk's array
};

/// A dimension that is an expression, or a DimAssumption: evaluated once all symbols are bound.
struct Relation {
  graph::Dim left;
  graph::Dim right;
  ptrdiff_t left_size = -1;  ///< if not negative, `left` is this entry of the sizes
  std::string path;
  graph::SourceSpan span;
};

/// What is assumed of each element of a list.
struct ElementCheck {
  ElementPattern::Kind kind = ElementPattern::Kind::integer;
  TensorCheck tensor;  ///< its sizes are those of the element looked at last
  std::vector<ElementCheck> parts;
};

/// An assumption in words: what stands before the object's path, and what behind it.
struct Wording {
  std::string before, after;
  std::string around(const std::string& path) const { return before + path + after; }
  auto operator<=>(const Wording&) const = default;
};

struct Check {
  Assumption::Kind kind = Assumption::Kind::identity;
  ExpectedObject object;
  std::vector<ExpectedObject> keys;
  int64_t number = 0;
  ptrdiff_t symbol = -1;
  TensorCheck tensor;
  std::unique_ptr<ElementCheck> elements;
  const Wording* wording = nullptr;
  graph::SourceSpan span;
};

struct Step {
  PathStep path;
  std::string text;  ///< of the path; only if the key may be gone when it is asked for
  std::vector<Check> checks;
  bool about_value = false;  ///< a number or a tensor's shape is assumed here
};

/// Whether two objects are one.
struct PairCheck {
  uint32_t step = 0, other = 0;
  bool same = false;
  graph::SourceSpan span;
};

/// Objects of which no two are one.
struct DistinctCheck {
  std::vector<uint32_t> steps;
  graph::SourceSpan span;

  /// Two steps that lead to one object.
  std::optional<std::pair<uint32_t, uint32_t>> find_same(PyObject* const* objects) const;
};

/// The tensor's memory is apart from that of others: see separate_memory.h.
struct MemoryCheck {
  uint32_t step = 0;
  bool is_written = false;
  graph::SourceSpan span;
  std::shared_ptr<const ElementPattern> elements;  ///< it is about the tensors in a list
};

/// Two checks whose tensors share memory that one of them is written through; `storage_of` gives
/// that of a check about one tensor.
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

/// What one walk finds beside objects.
struct Walk {
  Walk(size_t sizes, size_t symbols) : sizes(sizes), symbols(symbols), bound(symbols) {}
  Scratch<int64_t, 256> sizes;  ///< of tensors, where TensorCheck::first_size says
  Scratch<int64_t, 32> symbols;
  Scratch<char, 32> bound;
  std::vector<python::Object> owned;  ///< objects that nobody else keeps
  const Check* failed = nullptr;      ///< the one that did not hold, and the step of its object
  uint32_t failed_step = 0;

  /// Whether the symbol is, or now becomes, this number.
  bool bind(size_t symbol, int64_t number) {
    if (bound[symbol] != 0) return symbols[symbol] == number;
    bound[symbol] = 1;
    symbols[symbol] = number;
    return true;
  }
};

/// Whether the check holds for the object; not for those of pairs. Binds symbols in the walk.
bool holds(const Check& check, PyObject* object, Walk& walk);

struct Guards::Tree {
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
  std::set<Wording> wordings;  ///< most are those of many checks
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
  std::string text(uint32_t step) const;  ///< of its path
  std::string text(const PairCheck& pair) const;
};

}  // namespace janus::speculate
