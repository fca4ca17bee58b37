// What instrumented code calls, and the state of profile runs.
//
// Instrumented code reaches its hooks through a constant: an object of a C class, one for each
// function (or run of statements), that knows where the facts are kept. Its methods give back what
// they are given, so that the code computes what it would have computed; they record only while a
// profile run is active in the thread, for functions that the run created may outlive it.
//
//   value(fact, x) → x                     x is the result at that node
//   callee(fact, function_fact, f) → f     or the instrumented copy of f; the code then calls that
//   taken(fact[, also]), not_taken(...)    → True, False: a test went that way
//   test(fact, x) → bool                   the truth of x, taken once
//   and_operand(fact, x), or_operand(...)  → bool; an x that decides the whole is put aside
//   kept() → x                             what was put aside last
//   loop(fact, iterable, also) → iterable  whose iterator counts
//   enter(fact)                            a `while` begins
//   again(fact, also), done(fact, also)    → True, False: its test; `also` is the loop
#pragma once

#include <string>
#include <vector>

#include "python/object.h"
#include "speculate/facts.h"

namespace janus::speculate {

/// The names of the hooks' methods, as instrumented code spells them.
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

/// An object with those methods that records into `facts` (of the process's ProfileStore).
python::Object make_hooks(Facts& facts);

/// A profile run of this thread, for as long as it lives. Runs nest.
class ProfileRun {
 public:
  ProfileRun() { begin(); }
  ~ProfileRun() { end(); }
  ProfileRun(const ProfileRun&) = delete;
  ProfileRun& operator=(const ProfileRun&) = delete;

  /// For callers whose run is no C++ block (a region's enter() and leave()); in pairs.
  static void begin();
  static void end();
  static bool active();  ///< in this thread
  /// How many values that profile runs have seen were tensors: grows while one does tensor work.
  static uint64_t tensors_seen();
};

/// Calls the function (or bound method) with its instrumented copy in place of it: exactly the
/// results, effects, exceptions and tracebacks of the plain call, and facts of it and of all Python
/// functions that it calls. Where there is no copy (no source, generators) it is just called. The
/// recursion limit may be met one call earlier, since hooks are calls too.
/// Throws python::ErrorSet with the program's exception.
python::Object profiled_call(PyObject* function, PyObject* const* arguments, Py_ssize_t count,
                             PyObject* keyword_names);

/// How profile runs treat callables that are not plain functions of the program; all optional.
struct CalleePolicy {
  /// The Python function behind a callable object of ours (a converted function), borrowed; null if
  /// it is none. The run then profiles into that function.
  PyObject* (*unwrap)(PyObject* callable) = nullptr;
  /// Functions that need no facts (the graph has them as operators): called as they are.
  bool (*skip)(PyObject* function) = nullptr;
};
/// To be called once at start-up. It imports what profiling needs of the standard library: an
/// import later, while some static variable is being made, might let another thread run and wait
/// for it.
void prepare_profiling(CalleePolicy policy);

/// The Python function behind a converted function, borrowed; null if the object is none.
PyObject* function_of_converted(PyObject* callable);

}  // namespace janus::speculate
