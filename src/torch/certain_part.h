// The part of a run in which it can't be given up any more: it is not interrupted, and memory that
// runs out there is an error.
#pragma once

namespace janus::torch {

/// From here to the end of the run.
void enter_certain_part();
/// Whether this thread's innermost run is in it.
bool is_certain_part();

/// A run on this thread, which begins outside of that part; the run around it goes on as it was.
class UncertainScope {
 public:
  UncertainScope();
  ~UncertainScope();
  UncertainScope(const UncertainScope&) = delete;
  UncertainScope& operator=(const UncertainScope&) = delete;

 private:
  bool outer_;
};

}  // namespace janus::torch
