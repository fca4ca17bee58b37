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
  const SizeOfEntry one{seen, dimension};
  const auto has_to_be = [&](const NamedSize& name) {
    return std::ranges::any_of(name.dimensions,
                               [&](const auto& other) { return have_to_be_equal(one, other); });
  };
  const auto fits = [&](const NamedSize& name) {
    return seen == nullptr || are_all_equal_ ||
           std::ranges::none_of(name.dimensions, [&](const auto& other) {
             return ValueFact::have_differed(*seen, dimension, *other.first, other.second);
           });
  };
  std::vector<NamedSize>& names = names_of_size_[size];
  auto name = std::ranges::find_if(names, has_to_be);
  if (name == names.end()) name = std::ranges::find_if(names, fits);
  if (name == names.end())
    name = names.insert(
        names.end(), {.symbol = new_symbol(symbol_name(named_sizes_++), size), .dimensions = {}});
  if (seen != nullptr) name->dimensions.emplace_back(seen, dimension);
  return Dim::symbol(name->symbol);
}

bool DimensionTable::has_equal_names() const {
  return std::ranges::any_of(names_of_size_,
                             [](const auto& size) { return size.second.size() > 1; });
}

bool DimensionTable::have_to_be_equal(const SizeOfEntry& one, const SizeOfEntry& other) const {
  return equal_ != nullptr && (equal_->contains({one, other}) || equal_->contains({other, one}));
}

std::optional<EqualSizes> DimensionTable::named_apart(const Dim& one, const Dim& other) const {
  const std::optional<int64_t> size = evaluate(one);
  if (!size || one == other || evaluate(other) != size) return std::nullopt;
  const auto names = names_of_size_.find(*size);
  if (names == names_of_size_.end()) return std::nullopt;
  const auto named = [&](const Dim& dim) -> const SizeOfEntry* {
    for (const NamedSize& name : names->second)
      if (Dim::symbol(name.symbol) == dim && !name.dimensions.empty())
        return &name.dimensions.front();
    return nullptr;
  };
  const SizeOfEntry *first = named(one), *second = named(other);
  if (first == nullptr || second == nullptr || have_to_be_equal(*first, *second))
    return std::nullopt;
  return EqualSizes{*first, *second};
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
