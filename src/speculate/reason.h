// Why something is not in a graph, or why a graph bailed out: the only list of reasons.
// tests/python/runtime/test_reasons.py has a program for each of them.
#pragma once

#include <string>
#include <vector>

#include "graph/source_span.h"
#include "python/object.h"

namespace janus::speculate {

// X(code, "sentence with {} for the details")
// clang-format off
#define TORCHJANUS_REASONS(X)                                                                           \
  /* never converted */                                                                                 \
  X(no_source,            "there is no source of {}")                                                   \
  X(generator,            "{} is a generator or coroutine")                                             \
  X(statement,            "the statement '{}' is not converted yet")                                    \
  X(expression,           "the expression '{}' is not converted yet")                                   \
  X(unknown_callable,     "the call of {} is opaque and may change state")                              \
  X(unsupported_argument, "{}")                                                                         \
  X(heap_write,           "the assignment to {} changes an object that outlives the call")              \
  X(dynamic_control,      "the outcome of the test varies: {}")                                         \
  X(dynamic_value,        "{} varies and is not a number or a tensor")                                  \
  X(unsupported_tensor,   "{}")                                                                         \
  X(shape_mismatch,       "{}")                                                                         \
  X(autograd,             "{}")                                                                         \
  X(hook,                 "{} has a hook that is not converted")                                        \
  X(optimizer,            "{}")                                                                         \
  X(communication,        "{} communicates with other processes")                                       \
  X(limit,                "{}")                                                                         \
  X(no_tensor_work,       "no tensor operation ran in {}")                                              \
  X(would_raise,          "converting this would raise: {}")                                            \
  X(mode_active,          "{} is active")                                                               \
  X(internal_error,       "internal error: {}")                                                         \
  /* a graph was not entered, or bailed out */                                                           \
  X(guard_failed,         "{}")                                                                         \
  X(branch_changed,       "the test '{}' went the other way")                                           \
  X(kind_changed,         "an object has a type that no profiled run has seen")                         \
  X(overflow,             "an integer exceeded 64 bits: {}")                                            \
  X(operation_failed,     "an operator failed: {}")                                                     \
  X(unstable,             "assumptions failed too often: {}")
// clang-format on

enum class ReasonCode {
#define X(code, sentence) code,
  TORCHJANUS_REASONS(X)
#undef X
};

struct Reason {
  ReasonCode code;
  std::string details;
  graph::SourceSpan span;
  /// The number of the refused statement at the top of a run of statements; -1: unknown, or a
  /// function.
  int statement = -1;
  /// The user's function that the converted code calls, directly, and that leads to `span`; null if
  /// the place is in the converted code itself.
  python::Object callee = {};
  /// The module that what was refused calls between its communication, and that can be converted by
  /// itself; null if there is none.
  python::Object module_within = {};

  /// The code as text: "heap_write".
  std::string code_name() const;
  /// The sentence with its details.
  std::string sentence() const;
  /// "train.py:12: [heap_write] the assignment to self.n changes an object that outlives the call"
  std::string describe() const;
};

/// All codes, for the test that each of them is used.
std::vector<std::string> reason_codes();

}  // namespace janus::speculate
