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

void Dimensions::expect_one_name(const Dim& one, const Dim& other) const {
  if (const std::optional<EqualSizes> sizes = table_.named_apart(one, other))
    throw Generalise{.equal = sizes};
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

namespace {

/// A number that the graph computes, as one that it finds and a constant.
struct Sum {
  const graph::Value* number;
  int64_t constant = 0;
};

std::optional<int64_t> constant_int(const graph::Value& value) {
  if (value.definition == nullptr || value.definition->op != &op::constant) return std::nullopt;
  const int64_t* number = std::get_if<int64_t>(value.definition->attributes.find("value"));
  return number == nullptr ? std::nullopt : std::optional(*number);
}

Sum as_sum(const graph::Value* value) {
  Sum sum{value};
  for (;;) {
    const graph::Node* node = sum.number->definition;
    const bool adds = node != nullptr && node->op == &op::scalar_add;
    if (!adds && (node == nullptr || node->op != &op::scalar_sub)) return sum;
    if (const auto second = constant_int(*node->inputs[1])) {
      sum = {node->inputs[0], sum.constant + (adds ? *second : -*second)};
    } else if (const auto first = constant_int(*node->inputs[0]); first && adds) {
      sum = {node->inputs[1], sum.constant + *first};
    } else {
      return sum;
    }
  }
}

}  // namespace

/// A size that differs from a known one by a constant is called so: of `n` and `n + 1` it shows
/// then that they fit together.
std::optional<Dim> Dimensions::sum_of_sizes(const graph::Value& size) {
  const Sum wanted = as_sum(&size);
  for (const auto& [value, sizes] : run_time_sizes_) {
    const Sum known = as_sum(value);
    if (known.number != wanted.number || !value->type.is_number()) continue;
    for (const auto& [dim, block] : sizes) {
      if (block != writer_.block() && !scopes_.is_open(block)) continue;
      const Dim sum = dim + Dim(wanted.constant - known.constant);
      if (sum.lower_bound().value_or(0) >= 1) return sum;
    }
  }
  return std::nullopt;
}

std::optional<Dim> Dimensions::run_time_dimension(graph::Value* size) {
  if (auto known = run_time_size([&](const graph::Value* other) { return other == size; }))
    return known;
  if (auto sum = sum_of_sizes(*size)) return sum;
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
