// A call of a function of the graph: hands over the arguments with what the function changes
// outside, and puts together again what it gives. Tensors that come out may share memory with what
// went in.
#pragma once

#include <memory>
#include <vector>

#include "frontend/recursion/recursive_function.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

class RecursiveCall {
 public:
  RecursiveCall(Interpreter& interpreter, RecursiveFunction& function)
      : interpreter_(interpreter), function_(function) {}
  /// Appends the `call` node; the value that it gives.
  Value run(Passed arguments);

 private:
  void take_places();
  void take_lists();
  void add_flags();
  std::shared_ptr<const Rolled> given_list(const GrowingList& growth);
  graph::Value* next_result(const graph::Type& type);
  void give_lists();
  void relate(const Passed& result) const;

  Interpreter& interpreter_;
  RecursiveFunction& function_;
  Passed operands_;
  std::vector<graph::Type> types_;  // of the results
  graph::Node* node_ = nullptr;
  size_t next_ = 0;
};

}  // namespace janus::frontend
