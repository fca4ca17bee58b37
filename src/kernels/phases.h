// A kernel with sums as several nests, one after the other over the whole space, for spaces whose
// rows are too few to be shared out among threads, or too long for the cache.
//
// Stage by stage (see emit.cpp): one nest adds up parts of all rows, in groups that only the sizes
// decide, so that neither do the threads change a sum; another adds the groups up and computes what
// there is once for each row. The last nest computes what is stored at each point, element by
// element. What one nest tells the next has an element for each row, and lies in scratch memory.
// Everything that may take the place of an operand is written when all sums have been read.
#pragma once

#include <memory>
#include <mutex>

#include "kernels/arguments.h"
#include "kernels/compiled_nest.h"
#include "kernels/loop_nest.h"
#include "kernels/space.h"

namespace janus::kernels {

class Phases {
 public:
  /// The nest must outlive it.
  explicit Phases(const LoopNest& nest);
  ~Phases();

  /// Whether a run over this space goes faster so. Asks only for sizes and strides.
  bool suit(const Space& space) const;
  void run(const Arguments& arguments) const;
  /// Makes the code for such arguments, or looks for it; whether all of it is there.
  bool prepare(const Arguments& arguments, Making making) const;

 private:
  class Plan;
  const Plan& plan() const;

  const LoopNest& nest_;
  bool possible_ = false;
  mutable std::once_flag planned_;
  mutable std::unique_ptr<const Plan> plan_;
};

}  // namespace janus::kernels
