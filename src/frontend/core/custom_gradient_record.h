// Places where the gradient of a run goes through the program's own code, as the interpreter keeps
// them.
#pragma once

#include <functional>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

struct CustomGradient {
  std::vector<graph::Value*> outputs;  ///< what follows sees these
  std::vector<graph::Value*> inputs;   ///< null: no gradient goes there
  bool consumed = false;               ///< a backward() went through it and kept nothing
  bool is_hook = false;                ///< it may be younger than what computed the tensor
  /// Gradients of the inputs from those of the outputs (null where none came); null or None: none.
  std::function<std::vector<Value>(Interpreter&, const std::vector<Value>&)> backward;
};

}  // namespace janus::frontend
