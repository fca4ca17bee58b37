#include "frontend/core/dimensions.h"

#include <algorithm>

#include "ops/list.h"
#include "speculate/test_number.h"

namespace janus::frontend {

using graph::Dim;
using graph::Type;

graph::Value* Dimensions::dimension_value(const Dim& dim) {
  if (dim.is_constant()) return writer_.builder().constant(dim.value());
  std::string key = graph::to_string(dim);
  auto input = values_.find(key);
  if (input != values_.end()) return input->second;
  const std::vector<std::string> symbols = dim.symbols();
  const bool is_of_block = std::ranges::any_of(symbols, [&](const std::string& symbol) {
    const graph::Block* block = table_.block_of(symbol);
    return block != nullptr && !writer_.is_body(block);
  });
  if (is_of_block) return op::size(writer_.builder(), {}, {{"of", graph::AttributeValue(dim)}});
  graph::Value*& value = of_formulas_[key];
  if (value == nullptr) {
    graph::Builder root = writer_.root_builder();
    value = op::size(root, {}, {{"of", graph::AttributeValue(dim)}});
  }
  return value;
}

void Dimensions::give_dimension(const Dim& dim, const Source* source) {
  const std::string name = graph::to_string(dim);
  graph::Value*& input = values_[name];
  if (input == nullptr) input = writer_.add_input(Type::i64(), source, name);
}

void Dimensions::give_dimensions(const Type& tensor, const Source* source) {
  if (std::all_of(tensor.shape.begin(), tensor.shape.end(),
                  [](const Dim& dim) { return dim.is_constant(); }))
    return;
  writer_.add_input(tensor, source);
}

// --- sizes that the run computes ----------------------------------------------------------------

std::optional<Dim> Dimensions::run_time_dimension(graph::Value* size) {
  if (auto known = run_time_size([&](const graph::Value* other) { return other == size; }))
    return known;
  graph::Builder& builder = writer_.builder();
  const bool is_in_body = writer_.is_body(writer_.block());
  if (attached_.recursion().is_building() || (call_.keeps_sizes && !is_in_body))
    return std::nullopt;
  if (!is_in_body) {
    // What was less in some run may be so in each, as a list that grows from iteration to iteration
    // is.
    if (!guards_.expected_outcome(speculate::kUncounted)) return std::nullopt;
    guards_.follow(op::scalar_ge(builder, {size, builder.constant(int64_t{2})}),
                   python::boolean(true), speculate::kUncounted);
  }
  const Dim dimension = table_.new_dimension(*writer_.block());
  give_size(dimension, size);
  note_run_time_size(size, dimension);
  return dimension;
}

void Dimensions::give_size(const Dim& dimension, graph::Value* size) {
  const std::string name = graph::to_string(dimension);
  values_[name] = op::dimension(writer_.builder(), {size}, {{"symbol", name}});
}

std::optional<Dim> Dimensions::run_time_size(const std::function<bool(const graph::Value*)>& of) {
  const graph::Block* here = writer_.block();
  for (const auto& [value, sizes] : run_time_sizes_)
    for (const auto& [size, block] : sizes)
      if ((block == here || scopes_.is_open(block)) && of(value)) return size;
  return std::nullopt;
}

void Dimensions::note_run_time_size(const graph::Value* of, const Dim& size) {
  run_time_sizes_[of].push_back({size, writer_.block()});
}

}  // namespace janus::frontend
