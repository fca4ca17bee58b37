// What is known of a converted function as plain Python data, for reports and tests.
#pragma once

#include <vector>

#include "bind/cuts.h"
#include "speculate/dispatch.h"

namespace janus::bind {

/// Counters, durations, state and reasons: a new dict, or null with an exception set.
PyObject* stats_of(const speculate::Dispatcher& dispatcher);
/// stats_of, and each graph in the cache: assumptions, marked lines, texts.
PyObject* snapshot_of(const speculate::Dispatcher& dispatcher);
/// Adds to one of those dicts what is known of the `parts` (such dicts) of what is cut, and their
/// counters to its own.
void add_parts(PyObject* dict, const std::vector<python::Object>& parts);
/// Adds where a run of statements was cut.
void add_cuts(PyObject* dict, const Cuts& cuts);
/// Adds what the runs of a part as a graph took.
void add_spent(PyObject* dict, const Spent& spent);
/// Calls torchjanus.report.<function>(object).
PyObject* render(const char* function, PyObject* object);

}  // namespace janus::bind
