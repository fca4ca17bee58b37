// Names of the graph's dimensions, and what each of them is in the call at hand. Those of the entry
// are known everywhere; those that the run computes, only in a block.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "speculate/facts.h"

namespace janus::frontend {

/// A size of an object of the entry: what was seen of that, and which of its dimensions.
using SizeOfEntry = std::pair<const speculate::ValueFact*, size_t>;
/// Two that are equal in this call, and have to be.
using EqualSizes = std::pair<SizeOfEntry, SizeOfEntry>;

class DimensionTable {
 public:
  DimensionTable() = default;
  DimensionTable(const DimensionTable&) = delete;
  DimensionTable& operator=(const DimensionTable&) = delete;

  /// A name for a size of the entry that varies from call to call: one for all that are equal now
  /// and were so in the calls before. `seen`: what is known of the value whose `dimension` it is,
  /// if anything; it outlives the interpretation.
  graph::Dim entry_dimension(int64_t size, const speculate::ValueFact* seen = nullptr,
                             size_t dimension = 0);
  /// From now on these have one name, whatever they were in the calls before; with `all`, whatever
  /// is equal now.
  void take_as_equal(const std::set<EqualSizes>& sizes, bool all) {
    equal_ = &sizes;
    are_all_equal_ = all;
  }
  /// Whether sizes that are equal now have several names.
  bool has_equal_names() const;
  /// Sizes of the entry that the two names stand for, if they are equal now; nothing where one is
  /// no name of such a size.
  std::optional<EqualSizes> named_apart(const graph::Dim& one, const graph::Dim& other) const;
  /// Whether a size of the entry that is so large now was given a name.
  bool has_entry_dimension(int64_t size) const { return names_of_size_.contains(size); }
  /// A name like the one wanted that no other dimension has, for what is so large now.
  std::string new_symbol(std::string wanted, int64_t value);
  /// A dimension that is known in the block, once Dimensions::give_size() has said there what it
  /// is.
  graph::Dim new_dimension(const graph::Block& block);

  /// What the dimension is in the call at hand; nothing where only the run knows.
  std::optional<int64_t> evaluate(const graph::Dim& dim) const;
  /// The block in which a name is known; null if that is everywhere.
  const graph::Block* block_of(const std::string& symbol) const;
  bool has_run_time_dimensions() const { return !run_time_dimensions_.empty(); }
  /// Whether a size in the type is only known in blocks of which this holds.
  bool is_sized_in(const graph::Type& type,
                   const std::function<bool(const graph::Block*)>& block) const;

 private:
  struct NamedSize {
    std::string symbol;
    std::vector<SizeOfEntry> dimensions;
  };
  bool have_to_be_equal(const SizeOfEntry& one, const SizeOfEntry& other) const;
  std::map<std::string, int64_t, std::less<>> values_;
  std::map<int64_t, std::vector<NamedSize>> names_of_size_;
  size_t named_sizes_ = 0;
  const std::set<EqualSizes>* equal_ = nullptr;
  bool are_all_equal_ = false;
  std::map<std::string, const graph::Block*> run_time_dimensions_;  // and where each is known
};

}  // namespace janus::frontend
