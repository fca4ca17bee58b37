// The states of random generators, saved before a run draws from them and put back if it is given
// up: that of torch's default CPU generator, and of those generators of Python's and NumPy's that
// the run really draws from.
#pragma once

#include <memory>

#include "execute/library/random_state.h"
#include "python/object.h"

namespace janus::torch {

std::unique_ptr<execute::RandomState> make_random_state();

/// Puts the state of torch's default CPU generator back at its end: what is tried out draws
/// numbers that the program has not drawn.
class KeptGenerator {
 public:
  KeptGenerator();
  ~KeptGenerator();
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Puts generators back into an earlier state while it lives, and then into the one they had.
class EarlierGenerators {
 public:
  explicit EarlierGenerators(execute::RandomState& earlier);
  ~EarlierGenerators();
  EarlierGenerators(const EarlierGenerators&) = delete;
  EarlierGenerators& operator=(const EarlierGenerators&) = delete;

 private:
  std::unique_ptr<execute::RandomState> now_;
};

/// The run of this thread is about to draw from the generator (a random.Random, or NumPy's
/// RandomState or Generator). Throws python::ErrorSet. Python's lock is held.
void save_python_generator(PyObject* generator);

}  // namespace janus::torch
