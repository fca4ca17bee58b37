#include "bind/snapshot.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <string>

#include "base/policy.h"
#include "base/printable.h"
#include "bind/lazy.h"
#include "execute/program/exchange_times.h"

namespace nb = nanobind;

namespace janus::bind {

nb::str text(const std::string& string) {
  const std::string shown = printable(string);
  return nb::str(shown.data(), shown.size());
}

namespace {

using speculate::Dispatcher;

const char* name_of(Dispatcher::State state) {
  switch (state) {
    case Dispatcher::State::profiling:
      return "profiling";
    case Dispatcher::State::compiling:
      return "compiling";
    case Dispatcher::State::graph:
      return "graph";
    case Dispatcher::State::imperative:
      return "imperative";
    case Dispatcher::State::cut:
      return "cut";
  }
  return "?";
}

const char* name_of(speculate::LineMark::Kind kind) {
  using Kind = speculate::LineMark::Kind;
  switch (kind) {
    case Kind::graph:
      return "graph";
    case Kind::assumed:
      return "assumed";
    case Kind::constant:
      return "constant";
    case Kind::effect:
      return "effect";
  }
  return "?";
}

void add_place(nb::dict& dict, const graph::SourceSpan& span) {
  dict["file"] = span.known() ? nb::object(text(*span.file)) : nb::none();
  dict["line"] = span.line;
}

nb::dict reason_dict(const Dispatcher::Noted& noted) {
  nb::dict dict;
  dict["code"] = text(noted.reason.code_name());
  dict["sentence"] = text(noted.reason.sentence());
  add_place(dict, noted.reason.span);
  dict["count"] = noted.count;
  return dict;
}

nb::dict duration_dict(const speculate::Durations& durations) {
  nb::dict dict;
  dict["profiling"] = durations.profiling;
  dict["generating"] = durations.generating;
  dict["optimising"] = durations.optimising;
  dict["compiling"] = durations.compiling;
  dict["running"] = durations.running;
  return dict;
}

nb::dict spent_dict(uint64_t runs, double milliseconds) {
  nb::dict dict;
  dict["runs"] = runs;
  dict["milliseconds"] = milliseconds;
  return dict;
}
nb::dict spent_dict(const Spent& spent) { return spent_dict(spent.runs, spent.milliseconds); }

nb::object speed_dict(const speculate::AbMeasurement& measurement) {
  const auto speed = measurement.speed();
  if (!speed) return nb::none();
  nb::dict dict;
  dict["as_graph"] = speed->with_graphs;
  dict["in_python"] = speed->without;
  dict["by_turns"] = speed->by_turns;
  dict["decided"] = measurement.test().is_over();
  return dict;
}

nb::dict line_dict(const speculate::LineMark& mark) {
  nb::dict dict;
  add_place(dict, mark.span);
  dict["end_line"] = mark.span.end_line;
  dict["kind"] = name_of(mark.kind);
  dict["note"] = text(mark.note);
  return dict;
}

nb::dict entry_dict(const speculate::Entry& entry) {
  nb::dict dict;
  dict["hits"] = entry.hits;
  dict["misses"] = entry.misses;
  dict["aborts"] = entry.aborts;
  nb::list assumptions, lines;
  for (const std::string& each : entry.guards().describe()) assumptions.append(text(each));
  for (const speculate::LineMark& each : entry.lines()) lines.append(line_dict(each));
  dict["assumptions"] = assumptions;
  dict["lines"] = lines;
  dict["generated"] = text(entry.generated_text());
  dict["optimised"] = text(entry.optimised_text());
  dict["program_seconds"] = entry.timing().seconds;
  dict["program_started"] = entry.timing().started;
  dict["program"] = text(entry.program_text());
  return dict;
}

/// None: it is not on account.
nb::object conversion_dict(const speculate::RegionAccount& account) {
  const auto run = account.told();
  if (!run) return nb::none();
  nb::dict dict;
  dict["spent"] = run->spent;
  dict["saved"] = run->saved;
  dict["passed"] = run->passed;
  return dict;
}

/// Of the graph that ran most often of those with collectives; None: none was timed.
nb::object communication_dict(const Dispatcher& dispatcher) {
  execute::ExchangeTimes times;
  uint64_t most = 0;
  for (const auto& entry : dispatcher.entries()) {
    if (entry->program() == nullptr || entry->hits <= most) continue;
    const execute::ExchangeTimes found = execute::exchange_times(*entry->program());
    if (found.collectives == 0) continue;
    times = found;
    most = entry->hits;
  }
  if (most == 0) return nb::none();
  nb::dict dict;
  dict["collectives"] = times.collectives;
  dict["overlapped_milliseconds"] = 1e3 * times.overlapped;
  dict["exposed_milliseconds"] = 1e3 * times.exposed;
  return dict;
}

nb::dict stats_dict(const Dispatcher& dispatcher) {
  nb::dict dict;
  const speculate::Counters& counters = dispatcher.counters();
  dict["name"] = text(dispatcher.name());
  dict["file"] = text(dispatcher.file());
  dict["line"] = dispatcher.line();
  dict["state"] = name_of(dispatcher.state());
  add_counters(dict, counters);
  dict["profile_runs"] = dispatcher.profile_runs();
  dict["passed"] = counters.passed;
  dict["holds_graphs"] = dispatcher.holds_graphs();
  dict["speed"] = speed_dict(dispatcher.measurement());
  dict["in_python"] = spent_dict(dispatcher.in_python().runs, dispatcher.in_python().milliseconds);
  dict["graphs"] = dispatcher.entries().size();
  size_t backward_parts = 0, exchanged_buckets = 0;
  for (const auto& entry : dispatcher.entries()) {
    backward_parts = std::max(backward_parts, entry->backward_parts());
    exchanged_buckets = std::max(exchanged_buckets, entry->exchanged_buckets());
  }
  dict["backward_parts"] = backward_parts;
  dict["exchanged_buckets"] = exchanged_buckets;
  dict["communication"] = communication_dict(dispatcher);
  dict["compiling"] = dispatcher.is_compiling();
  dict["milliseconds"] = duration_dict(dispatcher.durations());
  dict["conversion"] = conversion_dict(dispatcher.account);
  nb::list reasons;
  for (const Dispatcher::Noted& each : dispatcher.reasons()) reasons.append(reason_dict(each));
  dict["reasons"] = reasons;
  return dict;
}

/// Turns nanobind's exceptions into a Python exception that is set.
template <class Make>
PyObject* guarded(Make&& make) {
  try {
    return make().release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const python::ErrorSet&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

nb::dict cut_dict(const Cuts& cuts, const Cuts::Cut& cut) {
  nb::dict dict;
  const graph::SourceSpan place = cuts.place_of(cut);
  dict["line"] = place.line;
  dict["end_line"] = place.end_line;
  dict["code"] = text(cut.reason.code_name());
  dict["sentence"] = text(cut.reason.sentence());
  nb::dict reason;
  add_place(reason, cut.reason.span);
  dict["reason"] = reason;
  if (cut.statement >= 0)
    dict["in_python"] = spent_dict(cuts.in_python(static_cast<size_t>(cut.statement)));
  return dict;
}

nb::dict trace_graph_dict(const CoExecutionRecord& record) {
  nb::dict dict;
  dict["graphs"] = record.sum.trace_graphs;
  dict["calls"] = record.sum.in_trace_graphs;
  dict["misses"] = record.sum.missed;
  add_form(dict, record.trace_graph);
  nb::dict missing;
  for (const auto& [what, count] : record.missing) missing[text(what)] = count;
  dict["missing"] = missing;
  return dict;
}

void add_record(nb::dict& dict, const CoExecutionRecord& record) {
  dict["iterations"] = record.iterations;
  dict["noted"] = record.sum.noted;
  dict["in_graphs"] = record.sum.in_graphs;
  dict["one_by_one"] = record.sum.one_by_one;
  dict["never_run"] = record.sum.never_run;
  dict["segments"] = record.sum.structures;
  dict["graphs"] = record.sum.graphs;
  dict["ahead"] = record.sum.ahead;
  dict["milliseconds_ahead"] = 1e3 * record.sum.seconds_ahead;
  dict["milliseconds_waited"] = 1e3 * record.sum.seconds_waited;
  nb::dict pending;
  pending["operators"] = record.pending;
  pending["bytes"] = record.pending_bytes;
  dict["pending"] = pending;
  dict["trace_graph"] = trace_graph_dict(record);
  nb::list looks, lines;
  for (const auto& [where, look] : record.looks) {
    nb::dict each;
    each["file"] = text(std::get<0>(where));
    each["line"] = std::get<1>(where);
    each["by"] = text(std::get<2>(where));
    each["count"] = look.count;
    each["milliseconds"] = look.milliseconds;
    looks.append(each);
  }
  for (const auto& [line, noted] : record.lines) {
    nb::dict each;
    each["file"] = text(line.first);
    each["line"] = line.second;
    each["operators"] = noted;
    lines.append(each);
  }
  dict["looks"] = looks;
  dict["sampled"] = record.sampled;
  dict["lines"] = lines;
}

nb::dict seen_function_dict(const WatchReport::Function& function) {
  nb::dict dict;
  dict["name"] = text(function.name);
  dict["file"] = text(function.file);
  dict["module"] = text(function.module);
  dict["line"] = function.line;
  dict["why_not"] = text(function.why_not);
  return dict;
}

nb::dict watch_dict(const WatchReport& report) {
  nb::dict dict;
  dict["seconds"] = report.seconds;
  dict["seconds_before"] = policy::kBeforeWatching / 1e3;
  dict["windows"] = report.windows;
  dict["events"] = report.events;
  dict["tensor_calls"] = report.tensor_calls;
  dict["blocked"] = report.blocked;
  dict["over_budget"] = report.over_budget;
  nb::list functions;
  for (const WatchReport::Function& each : report.functions)
    functions.append(seen_function_dict(each));
  dict["functions"] = functions;
  dict["error"] = text(report.error);
  return dict;
}

}  // namespace

void add_counters(nb::dict& dict, const speculate::Counters& counters) {
  dict["calls"] = counters.calls;
  dict["hits"] = counters.hits;
  dict["misses"] = counters.misses;
  dict["aborts"] = counters.aborts;
  dict["relaxations"] = counters.relaxations;
  dict["generated"] = counters.generated;
  dict["bypassed"] = counters.bypassed;
  dict["retired"] = counters.retired;
  dict["profiled"] = counters.profiled;
}

PyObject* watch_told(const WatchReport& report) {
  return guarded([&] { return watch_dict(report); });
}

PyObject* stats_of(const Dispatcher& dispatcher) {
  return guarded([&] { return stats_dict(dispatcher); });
}

PyObject* snapshot_of(const Dispatcher& dispatcher) {
  return guarded([&] {
    nb::dict dict = stats_dict(dispatcher);
    nb::list graphs;
    for (const auto& entry : dispatcher.entries()) graphs.append(entry_dict(*entry));
    dict["cache"] = graphs;
    return dict;
  });
}

void add_cuts(PyObject* dict, const Cuts& cuts) {
  nb::list made;
  for (const Cuts::Cut& each : cuts.cuts()) made.append(cut_dict(cuts, each));
  nb::borrow<nb::dict>(dict)["cuts"] = made;
}

void add_parts(PyObject* dict, const std::vector<python::Object>& parts) {
  nb::dict whole = nb::borrow<nb::dict>(dict);
  nb::list all;
  for (const python::Object& each : parts) {
    const nb::dict part = nb::borrow<nb::dict>(each.get());
    all.append(part);
    for (const char* counter :
         {"hits", "misses", "aborts", "relaxations", "generated", "bypassed", "retired", "graphs"})
      whole[counter] = nb::cast<uint64_t>(whole[counter]) + nb::cast<uint64_t>(part[counter]);
    if (nb::cast<bool>(part["compiling"])) whole["compiling"] = true;
  }
  whole["parts"] = all;
}

void add_co_execution(PyObject* dict, const CoExecution& co_execution) {
  nb::dict told;
  told["state"] = std::string(co_execution.state());
  told["why_not"] = std::string(co_execution.why_not());
  told["is_loop"] = co_execution.kind() == CoExecution::Kind::loop;
  told["eager_milliseconds"] = co_execution.eager_milliseconds();
  told["lazy_milliseconds"] = co_execution.lazy_milliseconds();
  add_record(told, co_execution.record());
  nb::borrow<nb::dict>(dict)["co_execution"] = told;
}

void add_speed(PyObject* dict, const speculate::AbMeasurement& measurement) {
  nb::borrow<nb::dict>(dict)["speed"] = speed_dict(measurement);
}

void add_spent(PyObject* dict, const char* how, const Spent& spent) {
  nb::borrow<nb::dict>(dict)[how] = spent_dict(spent);
}

PyObject* render(const char* function, PyObject* object) {
  return guarded([&] {
    return nb::module_::import_("torchjanus.text_report").attr(function)(nb::handle(object));
  });
}

}  // namespace janus::bind
