// Finds the dimension expressions of an operator's results by trying several sizes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/dim.h"

namespace janus::torch {

/// One value for each symbol.
class SymbolChoice {
 public:
  void set(const std::string& name, int64_t value) { values_[name] = value; }
  std::optional<int64_t> find(const std::string& name) const;
  int64_t evaluate(const graph::Dim& dim) const;

 private:
  std::map<std::string, int64_t> values_;
};

class ShapeFit {
 public:
  /// `dims`: of which the results' dimensions may be made.
  explicit ShapeFit(std::vector<graph::Dim> dims);

  /// One where nothing varies, else several.
  const std::vector<SymbolChoice>& choices() const { return choices_; }
  /// One more, with small values for the symbols that are not in `sizes`: numbers such as strides,
  /// of which large ones all give size 1. Nullopt if there are none.
  std::optional<SymbolChoice> small_numbers(const std::vector<graph::Dim>& sizes) const;
  /// In front of the last one.
  void add(SymbolChoice choice) { choices_.insert(choices_.end() - 1, std::move(choice)); }
  /// The shape that has `sizes[k]` under choice k; nullopt if no simple expression has.
  std::optional<graph::Shape> shape(const std::vector<std::vector<int64_t>>& sizes) const;
  /// Whether each dimension is a number or one of `dims`.
  bool takes(const graph::Shape& shape) const;

 private:
  std::optional<graph::Dim> dim(const std::vector<int64_t>& sizes) const;
  bool agrees(const graph::Dim& dim, const std::vector<int64_t>& sizes) const;

  std::vector<graph::Dim> dims_;
  std::vector<SymbolChoice> choices_;
};

}  // namespace janus::torch
