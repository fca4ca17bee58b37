// What to keep of the first call of a kind, which runs at once.
#pragma once

#include <ATen/core/stack.h>

#include <memory>
#include <vector>

#include "lazy/event.h"

namespace janus::lazy {

/// Made before the call runs, finished afterwards.
class NewKind {
 public:
  NewKind(const OperatorRule& rule, const CallParts& parts, const at::Stack& stack);
  /// The results lie on the stack.
  std::unique_ptr<CallKind> with_results(const at::Stack& stack) &&;

 private:
  std::unique_ptr<CallKind> kind_;
  bool integers_in_;
  bool may_overflow_;
  std::vector<at::Tensor> operands_;  ///< also keeps what the operator is given
};

}  // namespace janus::lazy
