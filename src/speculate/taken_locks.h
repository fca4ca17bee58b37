// Locks of the program that a run takes as it begins. Other threads may run while it goes on, and
// must not see, or change, what the lock protects: it is given back behind the run's writes.
#pragma once

#include <span>
#include <vector>

#include "python/object.h"

namespace janus::speculate {

/// The method that gives back such a lock. Where an effect of a graph (generated.h) calls it, the
/// run takes that lock as it begins.
python::Object release_method(PyObject* lock);
bool is_release_method(PyObject* callable);

class TakenLocks {
 public:
  TakenLocks() = default;
  ~TakenLocks();
  TakenLocks(const TakenLocks&) = delete;
  TakenLocks& operator=(const TakenLocks&) = delete;

  /// Takes the lock if that needs no waiting: somebody else may wait for what this thread has.
  bool take(const python::Object& lock);
  /// Gives all of them back, the last one first. Throws python::ErrorSet where somebody else has
  /// done that already, as `with` does at its end.
  void release();

 private:
  std::vector<python::Object> locks_;
};

}  // namespace janus::speculate
