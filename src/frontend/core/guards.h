// Tests that the graph makes while it runs: one side is followed, and a guard ends the run where
// the other would have been taken. What an outcome says of an object's class is kept with it.
#pragma once

#include <cstdint>
#include <map>

#include "frontend/core/frames.h"
#include "frontend/core/graph_writer.h"
#include "frontend/core/interpreter_state.h"
#include "frontend/core/scopes.h"
#include "frontend/values/value.h"

namespace janus::frontend {

/// What a flag says of an object.
struct ClassTest {
  const graph::Value* object = nullptr;
  Classes yes, no;
  bool yes_is_certain = true, no_is_certain = true;
};

class Guards {
 public:
  Guards(InterpreterState& state, GraphWriter& writer, Scopes& scopes, Frames& frames)
      : state_(state), writer_(writer), scopes_(scopes), frames_(frames) {}
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;

  /// Follows one side of a test that the graph computes, and guards it.
  bool follow(graph::Value* test, const python::Object& example, int fact_number);
  /// Which side that would be, where no example says it.
  bool expected_outcome(int fact_number) const;
  /// The number of a test of what was seen at the fact, for nodes that may fail.
  int64_t kinds_test(int fact_number);
  /// Ends the run unless the flag holds: that what comes is of the kinds seen at the fact.
  void guard_kinds(graph::Value* flag, int fact_number);

  // --- objects that only the run meets (frontend/core/run_time_objects.h)
  std::map<const graph::Value*, ClassTest> class_tests;
  /// Notes what the side of a branch on the flag knows.
  void learn_classes(const graph::Value* flag, bool outcome);
  /// The opposite, which says the opposite of the object.
  graph::Value* negated_flag(graph::Value* flag);

 private:
  InterpreterState& state_;
  GraphWriter& writer_;
  Scopes& scopes_;
  Frames& frames_;
};

}  // namespace janus::frontend
