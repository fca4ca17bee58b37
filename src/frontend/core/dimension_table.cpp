#include "frontend/core/dimension_table.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/check.h"
#include "graph/run_time_symbols.h"

namespace janus::frontend {

using graph::Dim;
using speculate::ValueFact;

namespace {

std::string symbol_name(size_t index) {
  static constexpr std::string_view letters[] = {"B", "T", "S", "N", "M", "K", "L", "P"};
  return index < std::size(letters) ? std::string(letters[index]) : cat("D", index);
}

}  // namespace

Dim DimensionTable::entry_dimension(int64_t size, const ValueFact* seen, size_t dimension) {
  // Varying dimensions of the same size share a symbol: operators need to know that they fit. If
  // they were equal by chance, the entry check fails and the next graph names them apart.
  const auto fits = [&](const NamedSize& name) {
    return seen == nullptr || std::ranges::none_of(name.dimensions, [&](const auto& other) {
             return ValueFact::have_differed(*seen, dimension, *other.first, other.second);
           });
  };
  std::vector<NamedSize>& names = names_of_size_[size];
  auto name = std::ranges::find_if(names, fits);
  if (name == names.end())
    name = names.insert(
        names.end(), {.symbol = new_symbol(symbol_name(named_sizes_++), size), .dimensions = {}});
  if (seen != nullptr) name->dimensions.emplace_back(seen, dimension);
  return Dim::symbol(name->symbol);
}

std::string DimensionTable::new_symbol(std::string wanted, int64_t value) {
  while (values_.contains(wanted)) wanted += '_';
  values_[wanted] = value;
  return wanted;
}

Dim DimensionTable::new_dimension(const graph::Block& block) {
  const std::string name = new_symbol(cat("L", run_time_dimensions_.size()), 0);
  run_time_dimensions_.emplace(name, &block);
  return Dim::symbol(name);
}

std::optional<int64_t> DimensionTable::evaluate(const Dim& dim) const {
  return dim.evaluate([&](const std::string& name) -> std::optional<int64_t> {
    auto found = values_.find(name);
    return found == values_.end() || run_time_dimensions_.contains(name)
               ? std::nullopt
               : std::optional(found->second);
  });
}

const graph::Block* DimensionTable::block_of(const std::string& symbol) const {
  const auto known = run_time_dimensions_.find(symbol);
  return known == run_time_dimensions_.end() ? nullptr : known->second;
}

bool DimensionTable::is_sized_in(const graph::Type& type,
                                 const std::function<bool(const graph::Block*)>& block) const {
  return std::ranges::any_of(run_time_dimensions_, [&](const auto& dimension) {
    return block(dimension.second) && graph::mentions(type, dimension.first);
  });
}

}  // namespace janus::frontend
