// Lazy stacks: torch.stack() of a list whose length differs between the activations of a recursion,
// or torch.cat() of a list of rows. The graph has no symbol for the first dimension of the result.
// So the tensor only stands for the list until it is summed over that dimension. The sum is a loop
// over the list. A recursion that asks for anything else of the tensor is refused at the end of the
// interpretation.
#pragma once

#include <map>
#include <memory>

#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

class LazyStacks {
 public:
  /// torch.stack(list)
  Value stacked(Interpreter& interpreter, std::shared_ptr<const Rolled> list);
  /// torch.cat(list) of tensors of one row each
  Value joined(Interpreter& interpreter, std::shared_ptr<const Rolled> list);
  /// A sum or mean over the first dimension of such a tensor; null: it is another call.
  Value call(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments) const;

  /// Removes lazy stacks from the graph. Refuses if one has another use.
  void finish(Interpreter& interpreter) const;

 private:
  struct Rows {
    std::shared_ptr<const Rolled> list;
    bool has_one_row_each = false;  ///< else each element is a row
  };
  Value standing_for(Interpreter& interpreter, Rows rows);
  std::map<const graph::Value*, Rows> lists_;  // by the tensor's value
};

}  // namespace janus::frontend
