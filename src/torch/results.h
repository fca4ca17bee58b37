// What an ATen overload returns, as the slots of a node's results.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "execute/library/library.h"
#include "graph/type.h"

namespace janus::torch {

/// Puts what an operator returned into the output slots; lists are spread.
class Results {
 public:
  /// `types`: of the node's results, as many as are wanted.
  Results(const execute::Operands& operands, const std::vector<graph::Type>& types)
      : operands_(operands), types_(types) {}

  void put(c10::IValue value);
  /// InternalError if something is missing.
  void check_complete() const;
  /// Throws if one lies in an operand's memory, as where a dropout drops nothing: plans rely on it
  /// that this is so in each run or in none.
  void check_own_memory() const;

 private:
  void put_tensor(at::Tensor tensor);
  void put_number(const c10::IValue& value);

  const execute::Operands& operands_;
  const std::vector<graph::Type>& types_;
  size_t next_ = 0;
};

}  // namespace janus::torch
