#include "lazy/compiled_segment.h"

#include <algorithm>
#include <utility>

#include "lazy/segment_values.h"
#include "torch/tensor.h"

namespace janus::lazy {

using execute::Slot;

CompiledSegment::CompiledSegment(SegmentGraph made)
    : made_(std::move(made)), compiling_(std::move(made_.graph), std::move(made_.shown)) {}

bool CompiledSegment::is_ready() {
  if (program_ != nullptr) return true;
  program_ = compiling_.take_if_done();
  if (program_ != nullptr)
    for (const std::string& name : program_->cells())
      cells_.push_back(&*std::ranges::find(made_.cells, name, &SegmentGraph::Cell::name));
  return program_ != nullptr;
}

CompiledSegment::Run CompiledSegment::prepare(const Segment& segment,
                                              const std::vector<c10::Scalar>& numbers) const {
  const auto tensor = [&](size_t storage, const Geometry& geometry, int64_t offset) {
    return torch::slot_of(tensor_of(segment, storage, geometry, offset));
  };
  Run run;
  for (const SegmentGraph::Input& each : made_.inputs)
    run.inputs.push_back(each.is_number ? slot_of(numbers[each.number])
                                        : tensor(each.storage, each.geometry, each.offset));
  for (const SegmentGraph::Cell* each : cells_)
    run.cells.push_back(tensor(each->storage, each->geometry, each->offset));
  run.results.resize(made_.results.size());
  return run;
}

void CompiledSegment::run(Run& run) const {
  run.has_failed = !has_run(*program_, run.inputs, run.cells, run.results, run.rebound);
}

void CompiledSegment::install(const Segment& segment, Run run) const {
  for (size_t i = 0; i < run.results.size(); ++i)
    lazy::install(segment, made_.results[i], made_.shapes[i],
                  torch::tensor_of(std::move(run.results[i])));
}

}  // namespace janus::lazy
