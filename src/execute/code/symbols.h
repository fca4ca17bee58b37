// Symbolic dimensions of a graph: how a run binds them, and which of them a layout depends on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "execute/code/moving_part.h"
#include "execute/library/library.h"
#include "graph/graph.h"

namespace janus::execute {

/// The values of all symbols in one run.
class SymbolValues {
 public:
  void set(const std::string& name, int64_t value) { values_[name] = value; }
  std::optional<int64_t> find(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    return found->second;
  }
  SymbolLookup lookup() const {
    return [this](const std::string& name) { return find(name); };
  }

 private:
  std::map<std::string, int64_t> values_;
};

class Symbols {
 public:
  Symbols(const graph::Graph& graph, std::span<const std::string> cells);

  /// Reads every symbol from the inputs and cells of a run.
  SymbolValues values(std::span<const Slot> inputs, std::span<const Slot> cells,
                      const Library& library) const;
  /// Indices of number inputs that sizes or attributes depend on.
  const std::vector<size_t>& layout_inputs() const { return layout_inputs_; }
  /// Indices of number inputs that decide nothing but where parts of tensors begin.
  const std::vector<size_t>& moving_inputs() const { return moving_inputs_; }
  /// Those parts. All are of nodes of the body itself.
  const std::vector<MovingPart>& parts() const { return parts_; }
  /// Where the parts begin; nothing if one of them does not lie within its tensor.
  std::optional<std::vector<int64_t>> first_elements(const SymbolValues& values) const;
  /// Whether some symbol may differ between runs of equal layouts (a number input).
  bool varies() const { return varies_; }

 private:
  struct Place {
    std::string name;
    size_t operand = 0;  ///< input, or cell after the inputs
    size_t dimension = 0;
    bool is_number = false;
  };
  void bind(const graph::Type& type, size_t operand);
  void find_layout_inputs(const graph::Graph& graph);
  void find_moving_parts(const graph::Graph& graph, const std::set<std::string>& layout_names);

  std::vector<Place> places_;
  std::set<std::string> bound_;
  std::vector<size_t> layout_inputs_, moving_inputs_;
  std::vector<MovingPart> parts_;
  size_t input_count_ = 0;
  bool varies_ = false;
};

}  // namespace janus::execute
