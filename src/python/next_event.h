// Code that runs in other threads of Python, before anything else does there.
#pragma once

#include <span>

#include "python/object.h"
#include "python/version.h"

namespace janus::python {

/// Has `function` called in each of the threads at its next event: before its next instruction,
/// even if it waits in a function of C now, and before the first of one that has not begun. The
/// function ends that by end_events(). A thread that the program traces keeps its trace function,
/// and has its next call or return as its event; since 3.12 so have all, if one of them is traced,
/// and one that waits in code that another thread runs meanwhile has the next line at the latest.
/// Python's lock is held. Raises nothing.
void call_at_next_event(std::span<PyThreadState* const> threads, Py_tracefunc function);

/// Within the function.
int end_events(Py_tracefunc function);

}  // namespace janus::python
