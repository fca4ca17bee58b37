// The assumptions under which the graph stands for the program: each is recorded once, with the
// line that needed it, and becomes a guard of the entry.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "frontend/core/frames.h"
#include "frontend/core/graph_writer.h"
#include "frontend/values/value.h"

namespace janus::frontend {

using speculate::Assumption;

class Assumptions {
 public:
  Assumptions(GraphWriter& writer, const Frames& frames) : writer_(writer), frames_(frames) {}
  Assumptions(const Assumptions&) = delete;
  Assumptions& operator=(const Assumptions&) = delete;

  void assume(Assumption assumption);
  void assume(Assumption::Kind kind, const Source* source, python::Object object = {},
              int64_t number = 0);
  /// That the object at the value's source is still this very object. No-op without a source.
  void assume_identity(const Known& known);
  /// That the two paths lead to one object, or that they do not. No-op if they are one path, or
  /// either is null.
  void assume_same_object(const Source* one, const Source* other, bool same = true);
  /// Records that two dimensions, equal in this call, must be so at each entry.
  void assume_equal(const graph::Dim& left, const graph::Dim& right);
  /// A number for objects of which no two are one.
  int64_t new_group() { return next_group_++; }

 private:
  GraphWriter& writer_;
  const Frames& frames_;
  std::set<std::string> assumed_;  // keys of assumptions made
  int64_t next_group_ = 0;
};

}  // namespace janus::frontend
