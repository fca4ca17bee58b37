// A call of one of torch's operators as torch itself needs to know it, to find the overload, the
// results and the name of the autograd node.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/core/interpreter.h"
#include "frontend/core/torch_services.h"

namespace janus::frontend {

/// Arguments of the call as torch needs to know them, with the graph value of each operand.
class DescribedArguments {
 public:
  explicit DescribedArguments(Interpreter& interpreter) : interpreter_(interpreter) {}

  bool add_all(const CallArguments& arguments);
  const Value& source_of(const OperatorArgument* argument) const { return sources_.at(argument); }

  std::vector<OperatorArgument> list;

 private:
  bool describe(const Value& value, OperatorArgument& argument);
  void remember(const OperatorArgument& argument, const Value& value);

  Interpreter& interpreter_;
  std::map<const OperatorArgument*, Value> sources_;
};

/// The call as grad_fn_name() of TorchServices takes it; null if an argument can't be described.
std::shared_ptr<const ProducingCall> describe_call(Interpreter& interpreter, PyObject* callable,
                                                   const CallArguments& arguments, size_t result);

}  // namespace janus::frontend
