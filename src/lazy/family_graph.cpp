#include "lazy/family_graph.h"

#include <algorithm>

#include "base/check.h"
#include "base/options.h"
#include "execute/values/container.h"
#include "lazy/call_node.h"
#include "lazy/segment_values.h"
#include "torch/tensor.h"

namespace janus::lazy {

using execute::Slot;
using trace::GraphInput;

namespace {

/// Locations say in which layer a call is, not at which line.
constexpr trace::TraceGraph::Options kNoLoops{.folds = false};
/// Operators of a graph whose generation takes a second.
constexpr size_t kMostOperators = 1500;

}  // namespace

FamilyGraph::FamilyGraph(std::span<const RecordedSegment> segments,
                         const StorageIdentities& identities, CallForms& forms,
                         const VaryingScalars& varying, bool sizes_vary)
    : forms_(forms),
      cells_(segments, identities),
      operators_(names_, varying, sizes_vary),
      traces_(names_, kNoLoops) {
  for (size_t i = 0; i <= cells_.size(); ++i) names_.locations[i] = "";
  for (size_t i = 0; i < cells_.size(); ++i) names_.cells[i] = cells_[i].name();
  std::vector<trace::Trace> all;
  for (const RecordedSegment& segment : segments)
    all.push_back(trace_of(segment, cells_, forms_, operators_, names_).trace);
  operators_.close();
  traces_.merge_all(std::move(all));
  if (traces_.nodes().nodes.size() > kMostOperators)
    throw NotInGraph("its segments have too little in common");
  auto made = trace::to_graph(traces_, &operators_);
  if (const auto* refusal = std::get_if<trace::Refusal>(&made)) throw NotInGraph(refusal->reason);
  auto& generated = std::get<trace::GeneratedGraph>(made);
  inputs_ = std::move(generated.inputs);
  results_ = std::move(generated.results);
  count(segments.size());
  cursor_.emplace(traces_.nodes(), names_);
  feeding_.emplace(traces_.nodes());
  compiling_.emplace(std::move(generated.graph), std::vector<execute::ShownResult>());
  log("speculate",
      cat("a family's graph of ", segments.size(), " traces and ", form_.operators, " operators"));
}

void FamilyGraph::count(size_t traces) {
  form_.traces = traces;
  const trace::Nodes& nodes = traces_.nodes();
  form_.operators = nodes.nodes.size();
  form_.feeds = nodes.slots.size();
  form_.symbols = static_cast<size_t>(nodes.symbol_count);
  form_.branches = nodes.levels[0].first.size() > 1 ? 1 : 0;
  for (const trace::Node& node : nodes.nodes) {
    form_.branches += node.children.size() > 1 ? 1 : 0;
    form_.fetches += static_cast<size_t>(std::ranges::count(node.fetched, true));
  }
}

bool FamilyGraph::is_ready() {
  if (program_ != nullptr) return true;
  program_ = compiling_->take_if_done();
  if (program_ == nullptr) return false;
  for (const std::string& name : program_->cells())
    for (size_t i = 0; i < cells_.size(); ++i)
      if (cells_[i].name() == name) program_cells_.push_back(i);
  return true;
}

bool FamilyGraph::follow(const RecordedSegment& segment, std::string& missing) {
  try {
    followed_ = trace_of(segment, cells_, forms_, operators_, names_);
  } catch (const NotInGraph& error) {
    missing = error.what();
    return false;
  }
  missing = followed_.unknown;
  if (!missing.empty()) return false;
  if (follow_events()) return true;
  const size_t at = cursor_->iteration().event();
  missing = at < followed_.trace.events.size()
                ? names_.operators[followed_.trace.events[at].op].name
                : cursor_->mismatch();
  log("speculate", "a family of segments misses: " + cursor_->mismatch());
  return false;
}

bool FamilyGraph::follow_events() {
  cursor_->begin();
  feeding_->begin();
  for (const trace::Event& event : followed_.trace.events) {
    if (!cursor_->follow(event)) return false;
    feeding_->add(*cursor_, event);
  }
  if (!cursor_->finish()) return false;
  feeding_->finish(*cursor_);
  return std::ranges::all_of(followed_.trace.fetches, [&](const trace::Fetch& fetch) {
    return cursor_->fetch(fetch.event, fetch.result);
  });
}

// ---- Running ----------------------------------------------------------------------------------

bool FamilyGraph::run(const Segment& segment) {
  std::vector<Slot> inputs, cells, results(results_.size()), rebound;
  for (const GraphInput& each : inputs_) inputs.push_back(input(each, segment));
  for (const size_t each : program_cells_) cells.push_back(cell(each, segment));
  if (!has_run(*program_, inputs, cells, results, rebound)) return false;
  give_results(results, segment);
  return true;
}

Slot FamilyGraph::input(const GraphInput& input, const Segment& segment) const {
  std::vector<Slot> items;
  switch (input.kind) {
    case GraphInput::Kind::decisions:
      for (const int64_t decision : feeding_->decisions()) items.push_back(Slot::of(decision));
      return execute::make_list(std::move(items));
    case GraphInput::Kind::symbol:
      return Slot::of(feeding_->symbol(input.symbol));
    case GraphInput::Kind::feed:
    case GraphInput::Kind::number:
      break;
  }
  const std::vector<uint32_t>& numbers = feeding_->given(input.slot);
  if (!input.is_list) return given(input, numbers.front(), segment);
  for (const uint32_t number : numbers) items.push_back(given(input, number, segment));
  return execute::make_list(std::move(items));
}

Slot FamilyGraph::given(const GraphInput& input, uint32_t number, const Segment& segment) const {
  if (input.kind == GraphInput::Kind::number) return slot_of(followed_.numbers[number]);
  const SegmentTrace::Feed& feed = followed_.feeds[number];
  return torch::slot_of(tensor_of(segment, feed.storage, feed.geometry, feed.offset));
}

/// A cell that this segment does not use is none of its business: a tensor that nobody sees stands
/// for it.
Slot FamilyGraph::cell(size_t number, const Segment& segment) const {
  const FamilyCells::Cell& cell = cells_[number];
  const auto used = followed_.cells.find(number);
  if (used != followed_.cells.end())
    return torch::slot_of(tensor_of(segment, used->second, cell.geometry, cell.offset));
  return torch::slot_of(at::empty_strided(cell.geometry.sizes, cell.geometry.strides,
                                          at::device(at::kCPU).dtype(cell.geometry.dtype)));
}

/// New storages get their contents first: a result may still be in the memory of a storage that is
/// written then.
void FamilyGraph::give_results(std::span<Slot> results, const Segment& segment) const {
  MadeValues made = values_of(results);
  for (const trace::Fetch& each : followed_.trace.fetches)
    ++made.at({each.event, each.result}).uses;
  const auto value_of = [&](size_t final) -> MadeValue& {
    const trace::Fetch& fetch = followed_.trace.fetches[final];
    return made.at({fetch.event, fetch.result});
  };
  for (size_t i = 0; i < followed_.finals.size(); ++i) {
    const SegmentTrace::Final& final = followed_.finals[i];
    if (!segment.storages[final.storage].is_made) continue;
    MadeValue& value = value_of(i);
    install(segment, final.storage, final.geometry,
            value.uses == 1 ? std::move(value.tensor) : value.tensor);
  }
  for (auto& [fetch, value] : made)
    if (value.tensor.defined() && value.tensor.storage().use_count() > 1)
      value.tensor = value.tensor.clone();
  for (size_t i = 0; i < followed_.finals.size(); ++i) {
    const auto& [storage, geometry, offset] = followed_.finals[i];
    if (segment.storages[storage].is_made) continue;
    tensor_of(segment, storage, geometry, offset).copy_(value_of(i).tensor);
  }
}

FamilyGraph::MadeValues FamilyGraph::values_of(std::span<Slot> results) const {
  MadeValues made;
  for (size_t i = 0; i < results.size(); ++i) {
    const trace::GraphResult& result = results_[i];
    const auto event = cursor_->iteration().latest(result.node);
    if (!event) continue;
    const Slot slot = result.is_list ? execute::last_item(results[i]) : std::move(results[i]);
    results[i].clear();
    made[{*event, result.result}].tensor = torch::tensor_of(slot);
  }
  return made;
}

}  // namespace janus::lazy
