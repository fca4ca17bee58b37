#include "graph_runner.h"

#include "ops/list.h"
#include "ops/reference.h"

namespace janus::trace {

using namespace graph;

namespace {

/// The operators of tests in the order in which the graph runs them, with their results.
std::vector<std::pair<std::string, std::vector<double>>>* executed = nullptr;

std::vector<double> elements(const DenseTensor& tensor) {
  std::vector<double> result;
  for (size_t i = 0; i < tensor.elements.size(); ++i) result.push_back(tensor.at(i));
  return result;
}

DenseTensor combined(const DenseTensor& x, const DenseTensor& y,
                     double (*combine)(double, double)) {
  const size_t left = x.elements.size(), right = y.elements.size();
  DenseTensor result = left < right ? y : x;
  for (size_t i = 0; i < result.elements.size(); ++i)
    result.elements[i].real = combine(x.at(left == 1 ? 0 : i), y.at(right == 1 ? 0 : i));
  return result;
}

/// "test::mix" and "test::both", and additions of sizes that the shape rule does not know to fit.
std::vector<Datum> call_opaque(const ReferenceCall& call) {
  const DenseTensor &a = call.tensor(0), &b = call.tensor(1);
  const std::string& name = call.node.attributes.get<std::string>("operator");
  if (name == "aten::add.Tensor") {
    const bool twice = call.node.attributes.has("alpha");
    return {combined(
        a, b, twice ? [](double x, double y) { return x + 2 * y; } : [](double x, double y) {
          return x + y;
        })};
  }
  std::vector<Datum> results = {combined(a, b, RandomProgram::mix)};
  if (name == "test::both") results.push_back(combined(b, a, RandomProgram::mix));
  executed->emplace_back(name, elements(std::get<DenseTensor>(results[0])));
  return results;
}

const Reference& reference() {
  static const Reference instance = [] {
    Reference result = ops::reference();
    result.functions[&op::opaque] = call_opaque;
    return result;
  }();
  return instance;
}

Datum tensor(const std::vector<double>& values) {
  return DenseTensor::of(DType::f64, {static_cast<int64_t>(values.size())}, values);
}

Datum list(std::vector<Datum> items) {
  return std::make_shared<const DatumList>(DatumList{std::move(items)});
}

class Comparison {
 public:
  Comparison(const TraceGraph& traces, const GeneratedGraph& generated, const ProgramRun& run)
      : traces_(traces), generated_(generated), run_(run), feeding_(traces.nodes()) {}

  std::string run() {
    follow();
    std::vector<Datum> inputs;
    for (const GraphInput& input : generated_.inputs) inputs.push_back(argument(input));
    std::map<std::string, Datum> cells;
    for (CellId cell = 0; cell < 8; ++cell)
      cells[traces_.names().cell(cell)] =
          tensor(RandomProgram::cell_contents(cell, run_.cell_size));
    std::vector<std::pair<std::string, std::vector<double>>> log;
    executed = &log;
    const Outcome outcome = interpret(generated_.graph, inputs, cells, reference());
    if (!outcome.ok()) return cat("the run failed: ", outcome.failure.value_or("a guard"));
    return compare_order(log) + compare_results(outcome) + compare_cells(outcome);
  }

 private:
  void follow() {
    Cursor cursor = traces_.cursor();
    for (const Event& event : run_.trace.events) {
      TORCHJANUS_CHECK(cursor.follow(event), cursor.mismatch());
      nodes_.push_back(cursor.node());
      feeding_.add(cursor, event);
    }
    TORCHJANUS_CHECK(cursor.finish(), cursor.mismatch());
    feeding_.finish(cursor);
  }

  Datum argument(const GraphInput& input) const {
    std::vector<Datum> items;
    switch (input.kind) {
      case GraphInput::Kind::decisions:
        for (const int64_t decision : feeding_.decisions()) items.emplace_back(decision);
        return list(std::move(items));
      case GraphInput::Kind::symbol:
        return feeding_.symbol(input.symbol);
      case GraphInput::Kind::feed:
        for (const uint32_t feed : feeding_.given(input.slot))
          items.push_back(tensor(run_.feeds[feed]));
        break;
      case GraphInput::Kind::number:
        for (const uint32_t number : feeding_.given(input.slot))
          items.emplace_back(run_.numbers[number]);
        break;
    }
    if (input.is_list) return list(std::move(items));
    TORCHJANUS_CHECK(items.size() == 1, "a slot that is always given got ", items.size());
    return items[0];
  }

  std::string compare_order(
      const std::vector<std::pair<std::string, std::vector<double>>>& log) const {
    size_t next = 0;
    for (size_t i = 0; i < run_.trace.events.size(); ++i) {
      const std::string& name = traces_.names().operators[run_.trace.events[i].op].name;
      if (!name.starts_with("test::")) continue;
      if (next == log.size()) return cat("event ", i, " was not executed\n");
      if (log[next].first != name || log[next].second != run_.results[i][0])
        return cat("event ", i, " is ", log[next].first, " in the graph, or has other values\n");
      ++next;
    }
    return next == log.size() ? "" : "the graph executed more operators\n";
  }

  std::string compare_results(const Outcome& outcome) const {
    std::map<std::pair<NodeId, uint32_t>, std::vector<Datum>> expected;
    for (size_t i = 0; i < nodes_.size(); ++i)
      for (uint32_t r = 0; r < run_.results[i].size(); ++r)
        expected[{nodes_[i], r}].push_back(tensor(run_.results[i][r]));
    for (size_t i = 0; i < generated_.results.size(); ++i) {
      const GraphResult& result = generated_.results[i];
      std::vector<Datum>& values = expected[{result.node, result.result}];
      if (!result.is_list && values.size() != 1) return "a certain result is not certain\n";
      const Datum value = result.is_list ? list(values) : values[0];
      if (!identical(value, outcome.results[i]))
        return cat("result ", result.result, " of node ", result.node, " is ", outcome.results[i],
                   ", should be ", value, '\n');
    }
    return {};
  }

  std::string compare_cells(const Outcome& outcome) const {
    for (const auto& [cell, values] : run_.written) {
      const auto found = outcome.committed.find(traces_.names().cell(cell));
      if (found == outcome.committed.end() || !identical(found->second, tensor(values)))
        return cat("cell ", cell, " holds other values\n");
    }
    for (const auto& [name, value] : outcome.committed)
      for (CellId cell = 0; cell < 8; ++cell)
        if (traces_.names().cell(cell) == name && !run_.written.contains(cell) &&
            !identical(value, tensor(RandomProgram::cell_contents(cell, run_.cell_size))))
          return cat("cell ", cell, " was written\n");
    return {};
  }

  const TraceGraph& traces_;
  const GeneratedGraph& generated_;
  const ProgramRun& run_;
  Feeding feeding_;
  std::vector<NodeId> nodes_;  // by event
};

}  // namespace

std::string compare(const TraceGraph& traces, const GeneratedGraph& generated,
                    const ProgramRun& run) {
  return Comparison(traces, generated, run).run();
}

}  // namespace janus::trace
