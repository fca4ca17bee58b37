// Candidates are the operands' dimensions, sums and products of two of them, and either with a
// number; they must agree with what the operator gave under every choice of sizes.
#include "torch/shape_fit.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"

namespace janus::torch {

using graph::Dim;
using graph::Shape;

namespace {

// Symbols get even numbers far from each other, so that no two expressions agree by chance and
// halves exist.
constexpr std::array<int64_t, 3> first_values{12, 20, 36};
constexpr std::array<int64_t, 3> distances{22, 34, 58};

std::set<std::string> symbols_of(const std::vector<Dim>& dims) {
  std::set<std::string> names;
  for (const Dim& dim : dims) {
    if (dim.is_constant()) continue;
    for (std::string& name : dim.symbols()) names.insert(std::move(name));
  }
  return names;
}

}  // namespace

std::optional<int64_t> SymbolChoice::find(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

int64_t SymbolChoice::evaluate(const Dim& dim) const {
  const auto value = dim.evaluate([this](const std::string& name) { return find(name); });
  TORCHJANUS_CHECK(value, "resolve: ", graph::to_string(dim), " has no value");
  return *value;
}

ShapeFit::ShapeFit(std::vector<Dim> dims) : dims_(std::move(dims)) {
  const std::set<std::string> names = symbols_of(dims_);
  const size_t count = names.empty() ? 1 : first_values.size();
  for (size_t k = 0; k < count; ++k) {
    SymbolChoice choice;
    int64_t value = first_values[k];
    for (const std::string& name : names) {
      choice.set(name, value);
      value += distances[k];
    }
    choices_.push_back(std::move(choice));
  }
}

std::optional<SymbolChoice> ShapeFit::small_numbers(const std::vector<Dim>& sizes) const {
  const std::set<std::string> of_sizes = symbols_of(sizes);
  SymbolChoice choice = choices_.front();
  int64_t value = 0;
  for (const std::string& name : symbols_of(dims_))
    if (!of_sizes.contains(name)) choice.set(name, value += 2);
  return value == 0 ? std::nullopt : std::optional(std::move(choice));
}

bool ShapeFit::takes(const Shape& shape) const {
  return std::ranges::all_of(shape, [this](const Dim& dim) {
    return dim.is_constant() || std::ranges::find(dims_, dim) != dims_.end();
  });
}

std::optional<Shape> ShapeFit::shape(const std::vector<std::vector<int64_t>>& sizes) const {
  Shape shape;
  for (size_t d = 0; d < sizes.front().size(); ++d) {
    std::vector<int64_t> values;
    for (const std::vector<int64_t>& one : sizes) {
      if (one.size() != sizes.front().size()) return std::nullopt;
      values.push_back(one[d]);
    }
    const auto found = dim(values);
    if (!found) return std::nullopt;
    shape.push_back(*found);
  }
  return shape;
}

bool ShapeFit::agrees(const Dim& dim, const std::vector<int64_t>& sizes) const {
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto value =
        dim.evaluate([&](const std::string& name) { return choices_[k].find(name); });
    if (value != sizes[k]) return false;
  }
  return true;
}

std::optional<Dim> ShapeFit::dim(const std::vector<int64_t>& sizes) const {
  const auto same = [&](int64_t size) { return size == sizes.front(); };
  if (std::all_of(sizes.begin(), sizes.end(), same)) return Dim(sizes.front());
  std::vector<Dim> candidates = dims_;
  for (size_t a = 0; a < dims_.size(); ++a) {
    for (size_t b = a; b < dims_.size(); ++b) {
      candidates.push_back(dims_[a] + dims_[b]);
      candidates.push_back(dims_[a] * dims_[b]);
      candidates.push_back(graph::minimum(dims_[a], dims_[b]));
    }
  }
  for (const Dim& candidate : candidates) {
    if (candidate.is_constant()) continue;
    if (agrees(candidate, sizes)) return candidate;
    const int64_t first = choices_.front().evaluate(candidate);
    // One more or less, a multiple, a fraction.
    const Dim shifted = candidate + Dim(sizes.front() - first);
    if (agrees(shifted, sizes)) return shifted;
    if (first > 0 && sizes.front() % first == 0) {
      const Dim multiple = candidate * Dim(sizes.front() / first);
      if (agrees(multiple, sizes)) return multiple;
    }
    for (const int64_t divisor : {2, 3, 4, 8}) {
      const Dim fraction = graph::floor_divide(candidate, Dim(divisor));
      if (agrees(fraction, sizes)) return fraction;
      const Dim rounded_up = graph::floor_divide(candidate + Dim(divisor - 1), Dim(divisor));
      if (agrees(rounded_up, sizes)) return rounded_up;
      const Dim halved = graph::floor_divide(candidate, Dim(divisor)) + Dim(1);
      if (agrees(halved, sizes)) return halved;
    }
  }
  return std::nullopt;
}

}  // namespace janus::torch
