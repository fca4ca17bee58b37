// Remembers what overloads give for which arguments.
//
// Trying an overload takes milliseconds where torch works out shapes in Python (recurrent layers,
// for instance), and unrolled programs ask the same again and again.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/core/torch_services.h"

namespace janus::torch {

class ResolvedMemo {
 public:
  /// Completes an operator whose attributes and operands are set, if the same was asked before.
  bool recall(frontend::ResolvedOperator& asked) const;
  void note(const frontend::ResolvedOperator& resolved);

 private:
  struct Remembered {
    frontend::ResolvedOperator resolved;  ///< without what belongs to one call
    std::vector<int> same_as;             ///< by result: index of the operand, or -1
  };
  std::unordered_map<std::string, Remembered> remembered_;
};

}  // namespace janus::torch
