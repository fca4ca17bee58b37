// The state of a converted function as plain Python data, for reports and tests.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "bind/co_execution.h"
#include "bind/cuts.h"
#include "bind/watch_report.h"
#include "speculate/dispatch.h"

namespace janus::bind {

/// The text as reports have it: also names of files that are no UTF-8 (printable.h).
nanobind::str text(const std::string& string);

/// Adds what became of the calls, each count by its name.
void add_counters(nanobind::dict& dict, const speculate::Counters& counters);
/// Adds "co_execution": its state, why it is eager for good, and what calls take.
void add_co_execution(PyObject* dict, const CoExecution& co_execution);

/// Counters, durations, state and reasons: a new dict, or null with an exception set.
PyObject* stats_of(const speculate::Dispatcher& dispatcher);
/// stats_of, and each graph in the cache: assumptions, marked lines, texts.
PyObject* snapshot_of(const speculate::Dispatcher& dispatcher);
/// Adds the dicts of the `parts` of a cut function to its own dict, and their counters to its
/// counters.
void add_parts(PyObject* dict, const std::vector<python::Object>& parts);
/// Adds the places where a run of statements was cut.
void add_cuts(PyObject* dict, const Cuts& cuts);
/// Replaces what is known of the speed: of a cut region the whole is measured, not its parts.
void add_speed(PyObject* dict, const speculate::AbMeasurement& measurement);
/// Adds the time of a part's runs: as a graph ("as_graph") or in Python ("in_python").
void add_spent(PyObject* dict, const char* how, const Spent& spent);
/// What the watch for entry points has seen: a new dict, or null with an exception set.
PyObject* watch_told(const WatchReport& report);
/// Calls torchjanus.text_report.<function>(object).
PyObject* render(const char* function, PyObject* object);

}  // namespace janus::bind
