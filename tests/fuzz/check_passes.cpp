// What the fuzzers of passes check: every pass gives a graph that verifies and computes the same,
// as far as the reference interpreter knows the operators.
#include "check_passes.h"

#include <cstdio>
#include <cstdlib>

#include "graph/interpreter.h"
#include "graph/text.h"
#include "ops/list.h"
#include "ops/reference.h"
#include "passes/pipeline/registry.h"
#include "passes/structure/copied.h"

using namespace janus;
using namespace janus::graph;

namespace {

constexpr int64_t most_elements = 500;
constexpr int most_nodes = 1000;

/// Small numbers, different for each element; nullopt for what cannot be made small.
std::optional<Datum> datum_for(const Type& type, int seed) {
  if (type.kind == Type::Kind::boolean) return Datum(seed % 2 == 0);
  if (type.kind == Type::Kind::i64) return Datum(int64_t{3});
  if (type.kind == Type::Kind::f64) return Datum(0.5 * seed);
  if (type.kind == Type::Kind::none) return Datum(None{});
  if (!type.is_tensor() || is_complex(type.dtype)) return std::nullopt;
  std::vector<int64_t> sizes;
  int64_t count = 1;
  for (const Dim& dim : type.shape) {
    const auto size = dim.evaluate([](const std::string&) { return 3; });
    if (!size || *size < 0 || *size > most_elements) return std::nullopt;
    sizes.push_back(*size);
    count *= *size;
    if (count > most_elements) return std::nullopt;
  }
  DenseTensor tensor(type.dtype, sizes);
  for (size_t i = 0; i < tensor.elements.size(); ++i)
    tensor.elements[i] = Number::of(
        0.25 * static_cast<double>((static_cast<int>(i) * 7 + seed) % 13 - 6), type.dtype);
  return tensor;
}

struct Data {
  std::vector<Datum> inputs;
  std::map<std::string, Datum> cells;
};

/// nullopt if the graph is too large to be run for a test: all its values have to be small.
std::optional<Data> data_for(const Graph& graph, bool with_loops) {
  Data data;
  int seed = 1;
  for (const Value* input : graph.inputs()) {
    auto datum = datum_for(input->type, seed++);
    if (!datum) return std::nullopt;
    data.inputs.push_back(std::move(*datum));
  }
  int nodes = 0;
  bool small = true;
  for_each_node(graph.body(), [&](const Node& node) {
    const bool is_loop = node.op == &op::while_ || node.op == &op::function;
    small = small && ++nodes <= most_nodes && (with_loops || !is_loop);
    for (const Value* output : node.outputs) {
      if (output->type.kind == Type::Kind::frame || output->type.kind == Type::Kind::list) continue;
      auto datum = datum_for(output->type, seed++);
      small = small && datum.has_value();
      if (datum && node.op == &op::state)
        data.cells.emplace(node.attributes.get<std::string>("cell"), std::move(*datum));
    }
  });
  return small ? std::optional(std::move(data)) : std::nullopt;
}

std::optional<Outcome> run(const Graph& graph, const Data& data) {
  try {
    return interpret(graph, data.inputs, data.cells, ops::reference());
  } catch (const InternalError&) {
    return std::nullopt;  // an operator that the reference does not know
  }
}

bool same(const Outcome& a, const Outcome& b) {
  if (a.ok() != b.ok() || a.results.size() != b.results.size()) return false;
  for (size_t i = 0; i < a.results.size(); ++i)
    if (!identical(a.results[i], b.results[i])) return false;
  for (const auto cells : {&Outcome::committed, &Outcome::rebound}) {
    if ((a.*cells).size() != (b.*cells).size()) return false;
    for (const auto& [cell, value] : a.*cells)
      if (!(b.*cells).contains(cell) || !identical(value, (b.*cells).at(cell))) return false;
  }
  return true;
}

[[noreturn]] void fail(std::string_view pass, const Graph& before, const std::string& message) {
  std::fputs(cat("pass ", pass, ": ", message, "\non\n", print(before)).c_str(), stderr);
  std::abort();
}

/// The graph after a pass; nullopt if it refuses the graph (an operator has no gradient).
std::optional<Graph> run_pass(std::string_view name, const Graph& graph) {
  try {
    Graph result = passes::find_pass(name)->run(passes::copied(graph));
    verify(result);
    return result;
  } catch (const TypeError&) {
    return std::nullopt;
  } catch (const InternalError& error) {
    fail(name, graph, error.what());
  }
}

}  // namespace

void check_passes(const Graph& graph, bool with_loops) {
  const auto decomposed = run_pass("decompose", graph);
  if (!decomposed) return;
  const auto differentiated = run_pass("differentiate", *decomposed);
  if (!differentiated) return;
  const auto data = data_for(*differentiated, with_loops);
  if (!data) return;
  const auto expected = run(*differentiated, *data);
  for (const passes::NamedPass& pass : passes::all_passes()) {
    const auto result = run_pass(pass.name, *differentiated);
    const auto outcome = expected && result ? run(*result, *data) : std::nullopt;
    if (outcome && !same(*outcome, *expected))
      fail(pass.name, *differentiated, cat("gave\n", print(*result)));
  }
}
