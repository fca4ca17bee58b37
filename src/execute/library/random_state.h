// The state of the random generator: kept before a run and put back where the run is given up.
#pragma once

#include <memory>

namespace janus::execute {

/// The state of the random generator as it was, to put it back.
class RandomState {
 public:
  virtual ~RandomState() = default;
  virtual void save() = 0;
  virtual void restore() = 0;
  virtual std::unique_ptr<RandomState> copy() const = 0;
};

}  // namespace janus::execute
