// Threads of Python whose operators are not noted, while others' are. They may read and write what
// those have pending, so their operators look for it first.
//
// torch's local state of a thread can only be changed by that thread. So each one is given a
// profile function, which does it before anything else runs there, and ends itself.
#pragma once

namespace janus::lazy {

/// A thread's operators are noted from here on. `visit` makes the thread that calls it look for
/// what is pending. Python's lock is held.
void begin_visits(void (*visit)());
/// No longer.
void end_visits();
/// Whether any thread's operators are noted.
bool has_visits();

}  // namespace janus::lazy
