// sum() as CPython computes it: ints first, then floats, then whatever else there is. Of floats
// some versions keep account of what additions round away (version.h), and add that at the end.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// A sum of floats, and what its additions rounded away so far.
struct FloatSum {
  Value total, lost;
};
FloatSum float_sum(Interpreter& interpreter, const Value& start);
FloatSum added(Interpreter& interpreter, const FloatSum& sum, const Value& number);
/// With what was lost, unless that is infinite or none.
Value whole(Interpreter& interpreter, const FloatSum& sum);

class PythonSum {
 public:
  PythonSum(Interpreter& interpreter, const Value& start);
  void add(const Value& element);
  /// Of the elements so far.
  Value value() const;

 private:
  enum class Phase { ints, floats, others };

  Interpreter& interpreter_;
  Phase phase_ = Phase::others;
  FloatSum sum_;
};

}  // namespace janus::frontend
