#include "bind/co_execution_record.h"

#include <bit>
#include <unordered_map>
#include <vector>

#include "python/lock.h"
#include "python/object.h"
#include "speculate/describe.h"

namespace janus::bind {

namespace {

/// Where a walk over the frames ends (Recording).
thread_local PyFrameObject* last_frame = nullptr;
thread_local bool with_last_frame = false;

/// Iterations whose lines are told after the first ones: each with twice as high a number.
constexpr uint64_t kFirstSample = 3, kLastOfFirstSamples = 6;

/// Whether reports show lines of this file.
bool is_shown(const std::string& file) {
  static auto* const known = new std::unordered_map<std::string, bool>;
  const auto found = known->find(file);
  if (found != known->end()) return found->second;
  bool shown = false;
  try {
    const python::Object ask = python::import_attribute("torchjanus.regions", "is_shown");
    shown = python::call(ask.get(), {python::string(file).get()}).is(Py_True);
  } catch (const python::ErrorSet&) {
    PyErr_Clear();
  }
  known->emplace(file, shown);
  return shown;
}

CoExecutionRecord::Line line_of(PyFrameObject* frame) {
  const auto code = python::Object::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  return {speculate::text_of(reinterpret_cast<PyCodeObject*>(code.get())->co_filename),
          PyFrame_GetLineNumber(frame)};
}

/// The running lines that reports show, the innermost first.
std::vector<CoExecutionRecord::Line> running_lines(size_t most) {
  std::vector<CoExecutionRecord::Line> lines;
  auto frame = python::Object::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && lines.size() < most) {
    auto* const raw = reinterpret_cast<PyFrameObject*>(frame.get());
    if (raw == last_frame && !with_last_frame) break;
    CoExecutionRecord::Line line = line_of(raw);
    if (is_shown(line.first)) lines.push_back(std::move(line));
    if (raw == last_frame) break;
    frame = python::Object::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  return lines;
}

}  // namespace

void CoExecutionRecord::noted() {
  constexpr size_t kMostFrames = 32;
  const python::WithLock lock;
  const python::ErrorScope scope;
  for (Line& line : running_lines(kMostFrames)) ++lines[std::move(line)];
}

void CoExecutionRecord::looked(std::string_view by, double seconds) {
  const python::WithLock lock;
  const python::ErrorScope scope;
  auto lines = running_lines(1);
  if (lines.empty()) lines.emplace_back();
  Looks& all = looks[{std::move(lines[0].first), lines[0].second, std::string(by)}];
  ++all.count;
  all.milliseconds += 1e3 * seconds;
}

void CoExecutionRecord::add(const lazy::Session::Progress& before,
                            const lazy::Session::Progress& after) {
  sum.noted += after.noted - before.noted;
  sum.in_graphs += after.in_graphs - before.in_graphs;
  sum.one_by_one += after.one_by_one - before.one_by_one;
  sum.never_run += after.never_run - before.never_run;
  sum.looks += after.looks - before.looks;
  sum.structures += after.structures - before.structures;
  sum.graphs += after.graphs - before.graphs;
  sum.ahead += after.ahead - before.ahead;
  sum.seconds_ahead += after.seconds_ahead - before.seconds_ahead;
  sum.seconds_waited += after.seconds_waited - before.seconds_waited;
  sum.trace_graphs += after.trace_graphs - before.trace_graphs;
  sum.in_trace_graphs += after.in_trace_graphs - before.in_trace_graphs;
  sum.missed += after.missed - before.missed;
  if (after.trace_graphs != before.trace_graphs) trace_graph = after.trace_graph;
  if (after.missed == before.missed) return;
  for (std::string& each : lazy::Session::of_this_thread().take_missing())
    ++missing[std::move(each)];
}

void CoExecutionRecord::end_iteration(const lazy::Session::Progress& now) {
  ++iterations;
  if (wants_calls) ++sampled;
  pending = now.pending;
  pending_bytes = now.pending_bytes;
  wants_calls = (iterations >= kFirstSample && iterations < kLastOfFirstSamples) ||
                (iterations > kLastOfFirstSamples && std::has_single_bit(iterations));
}

Recording::Recording(CoExecutionRecord& record, PyFrameObject* frame, bool with_frame)
    : around_(lazy::Session::observe(&record)),
      frame_around_(std::exchange(last_frame, frame)),
      with_frame_around_(std::exchange(with_last_frame, with_frame)) {}

Recording::~Recording() {
  lazy::Session::observe(around_);
  last_frame = frame_around_;
  with_last_frame = with_frame_around_;
}

}  // namespace janus::bind
