#include "trace/size_expression.h"

#include <set>

#include "trace/nodes.h"

namespace janus::trace {

using graph::Dim;

namespace {

/// What `solve` gives for each trace that shows the size, if it is the same in all of them.
template <class Solve>
std::optional<int64_t> same_in_all(const SizeColumn& sizes, const Solve& solve) {
  std::optional<int64_t> found;
  for (size_t trace = 0; trace < sizes.size(); ++trace) {
    if (sizes[trace] == kAbsent) continue;
    const std::optional<int64_t> here = solve(trace);
    if (!here || (found && *found != *here)) return std::nullopt;
    found = here;
  }
  return found;
}

/// The whole number that the product has to be multiplied by.
std::optional<int64_t> factor(int64_t size, int64_t product) {
  if (product <= 0 || size % product != 0) return std::nullopt;
  return size / product;
}

bool shows(const SizeColumn& symbol, size_t trace) { return symbol[trace] != kAbsent; }

std::optional<Dim> as_multiple(const SizeColumn& sizes, const SizeColumn& one, const Dim& dim) {
  const auto found = same_in_all(sizes, [&](size_t trace) -> std::optional<int64_t> {
    return shows(one, trace) ? factor(sizes[trace], one[trace]) : std::nullopt;
  });
  if (!found) return std::nullopt;
  return dim * Dim(*found);
}

/// A symbol times a number, and a number added. Two values are on a line with any symbol's.
std::optional<Dim> as_linear(const SizeColumn& sizes, const SizeColumn& one, const Dim& dim) {
  std::set<int64_t> values;
  size_t first = sizes.size(), other = sizes.size();
  for (size_t trace = 0; trace < sizes.size(); ++trace) {
    if (sizes[trace] == kAbsent) continue;
    if (!shows(one, trace)) return std::nullopt;
    if (first == sizes.size()) first = trace;
    if (one[trace] != one[first]) other = trace;
    values.insert(one[trace]);
  }
  if (values.size() < 3) return std::nullopt;
  const int64_t run = one[other] - one[first];
  if ((sizes[other] - sizes[first]) % run != 0) return std::nullopt;
  const int64_t slope = (sizes[other] - sizes[first]) / run;
  const auto rest = same_in_all(
      sizes, [&](size_t trace) { return std::optional(sizes[trace] - slope * one[trace]); });
  if (!rest) return std::nullopt;
  return dim * Dim(slope) + Dim(*rest);
}

std::optional<Dim> as_sum(const SizeColumn& sizes, const SizeColumn& one, const Dim& dim) {
  const auto found = same_in_all(sizes, [&](size_t trace) -> std::optional<int64_t> {
    return shows(one, trace) ? std::optional(sizes[trace] - one[trace]) : std::nullopt;
  });
  if (!found) return std::nullopt;
  return dim + Dim(*found);
}

/// As of windows that move by 2, 4, 8, ...
std::optional<Dim> as_quotient(const SizeColumn& sizes, const SizeColumn& one, const Dim& dim) {
  constexpr int64_t kLargestDivisor = 64;
  for (int64_t divisor = 2; divisor <= kLargestDivisor; divisor *= 2)
    for (int64_t added = 0; added < divisor; ++added) {
      const auto rest = same_in_all(sizes, [&](size_t trace) -> std::optional<int64_t> {
        if (!shows(one, trace)) return std::nullopt;
        return sizes[trace] - (one[trace] + added) / divisor;
      });
      if (rest) return floor_divide(dim + Dim(added), Dim(divisor)) + Dim(*rest);
    }
  return std::nullopt;
}

}  // namespace

std::optional<Dim> expression_for(const SizeColumn& sizes, std::span<const SizeColumn> symbols) {
  const auto named = [](size_t symbol) {
    return Dim::symbol(symbol_name(static_cast<int32_t>(symbol)));
  };
  for (size_t i = 0; i < symbols.size(); ++i)
    if (auto found = as_multiple(sizes, symbols[i], named(i))) return found;
  for (size_t i = 0; i < symbols.size(); ++i)
    for (size_t k = i; k < symbols.size(); ++k) {
      SizeColumn product(sizes.size(), kAbsent);
      for (size_t trace = 0; trace < sizes.size(); ++trace)
        if (shows(symbols[i], trace) && shows(symbols[k], trace))
          product[trace] = symbols[i][trace] * symbols[k][trace];
      if (auto found = as_multiple(sizes, product, named(i) * named(k))) return found;
    }
  for (size_t i = 0; i < symbols.size(); ++i)
    if (auto found = as_sum(sizes, symbols[i], named(i))) return found;
  for (size_t i = 0; i < symbols.size(); ++i)
    if (auto found = as_linear(sizes, symbols[i], named(i))) return found;
  for (size_t i = 0; i < symbols.size(); ++i)
    if (auto found = as_quotient(sizes, symbols[i], named(i))) return found;
  return std::nullopt;
}

}  // namespace janus::trace
