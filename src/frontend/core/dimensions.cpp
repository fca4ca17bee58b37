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

/// A number that the graph computes as another one and a constant.
struct Sum {
  graph::Value* number = nullptr;
  int64_t constant = 0;
};

std::optional<int64_t> constant_int(const graph::Value& value) {
  if (value.definition == nullptr || value.definition->op != &op::constant) return std::nullopt;
  const int64_t* number = std::get_if<int64_t>(value.definition->attributes.find("value"));
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<Sum> as_sum(const graph::Value& value) {
  const graph::Node* node = value.definition;
  if (node == nullptr || (node->op != &op::scalar_add && node->op != &op::scalar_sub))
    return std::nullopt;
  graph::Value *first = node->inputs[0], *second = node->inputs[1];
  if (first->type != Type::i64() || second->type != Type::i64()) return std::nullopt;
  if (const auto number = constant_int(*second))
    return Sum{first, node->op == &op::scalar_add ? *number : -*number};
  const auto number = constant_int(*first);
  if (number && node->op == &op::scalar_add) return Sum{second, *number};
  return std::nullopt;
}

}  // namespace

/// A size that is another one and a constant is called so: of `n` and `n + 1` it shows then that
/// they fit together. What is less than the other one has a name of its own, until that has one.
std::optional<Dim> Dimensions::sum_of_sizes(const graph::Value& size) {
  const std::optional<Sum> sum = as_sum(size);
  if (!sum) return std::nullopt;
  std::optional<Dim> known =
      run_time_size([&](const graph::Value* other) { return other == sum->number; });
  if (!known && sum->constant > 0) known = run_time_dimension(sum->number);
  if (!known) return std::nullopt;
  const Dim dim = *known + Dim(sum->constant);
  return dim.lower_bound().value_or(0) >= 1 ? std::optional(dim) : std::nullopt;
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
