// Handlers of signals must not run in Python code that is ours.
#pragma once

#include <signal.h>

#include <vector>

#include "python/object.h"

namespace janus::python {

/// While this exists, a signal for which the program has a handler in Python is noted. Afterwards
/// it is raised once more, so that the handler runs in the program's own code, which gets what it
/// raises. So does it get what handlers raise that were due already. On other threads than the main
/// one, which never run handlers, this does nothing.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  struct Held {
    int number;
    Object handler;
    struct sigaction action;  ///< the system's, which has flags of its own
  };
  Object set_or_take_errors(int number, PyObject* handler);
  void take_error();

  std::vector<Held> held_;
  std::vector<Object> raised_;
};

}  // namespace janus::python
