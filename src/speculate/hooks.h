// The hooks that instrumented code calls, and the state of profiled runs.
//
// Instrumented code reaches its hooks through a constant: an object of a C class, one for each
// function (or run of statements), that knows its facts. Its methods return what they are given, so
// the code computes the same. They record only while a profiled run is active in the thread, since
// functions that the run created may outlive it.
//
//   value(fact, x) → x                     x is the result at that node
//   callee(fact, function_fact, f) → f     or the instrumented copy of f; the code then calls that
//   taken(fact[, also]), not_taken(...)    → True, False: a test went that way
//   test(fact, x) → bool                   the truth of x, taken once
//   and_operand(fact, x), or_operand(...)  → bool; an x that decides the whole is set aside
//   kept() → x                             the x that was set aside last
//   loop(fact, iterable, also) → iterable  whose iterator counts
//   enter(fact)                            a `while` begins
//   again(fact, also), done(fact, also)    → True, False: its test; `also` is the loop
#pragma once

#include <string>
#include <vector>

#include "python/object.h"
#include "speculate/facts.h"

namespace janus::speculate {

/// The names of the hooks, as methods in instrumented code.
namespace hook {
inline constexpr const char* value = "value";
inline constexpr const char* callee = "callee";
inline constexpr const char* test = "test";
inline constexpr const char* taken = "taken";
inline constexpr const char* not_taken = "not_taken";
inline constexpr const char* and_operand = "and_operand";
inline constexpr const char* or_operand = "or_operand";
inline constexpr const char* kept = "kept";
inline constexpr const char* loop = "loop";
inline constexpr const char* enter = "enter";
inline constexpr const char* again = "again";
inline constexpr const char* done = "done";
}  // namespace hook

/// An object with these methods that records into `facts`, which the ProfileStore owns.
python::Object make_hooks(Facts& facts);

/// A profiled run of this thread, while it lives. Runs nest.
class ProfileRun {
 public:
  ProfileRun() { begin(); }
  ~ProfileRun() { end(); }
  ProfileRun(const ProfileRun&) = delete;
  ProfileRun& operator=(const ProfileRun&) = delete;

  /// In pairs, for runs that are no C++ scope (a region's enter() and leave()).
  static void begin();
  static void end();
  static bool active();  ///< in this thread
  /// The number of tensors that profiled runs have seen. It grows while a run does tensor work.
  static uint64_t tensors_seen();
};

/// Calls the instrumented copy of the function (or bound method). Results, effects, exceptions and
/// tracebacks are those of the plain call. Records facts of the function and of all Python
/// functions that it calls. A function without a copy (no source, generators) is called as it is.
/// The recursion limit may be reached one call earlier, since hooks are calls too. Throws
/// python::ErrorSet with the program's exception.
python::Object profiled_call(PyObject* function, PyObject* const* arguments, Py_ssize_t count,
                             PyObject* keyword_names);

/// How profiled runs treat callables that are no plain functions; all members are optional.
struct CalleePolicy {
  /// The Python function behind a converted function, borrowed; null for any other object. The run
  /// then profiles that function.
  PyObject* (*unwrap)(PyObject* callable) = nullptr;
  /// Whether a function needs no facts, since graphs have it as an operator. It is called as it is.
  bool (*skip)(PyObject* function) = nullptr;
};
/// Called once at start-up. Imports what profiling needs of the standard library: a later import,
/// while a static variable is initialised, might let another thread run that waits for it.
void prepare_profiling(CalleePolicy policy);

/// The Python function behind a converted function, borrowed; null if the object is none.
PyObject* function_of_converted(PyObject* callable);

}  // namespace janus::speculate
