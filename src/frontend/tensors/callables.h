// Torch's operators as Python sees them: which callable means which operator of the graph, and how
// Python's arguments become operands and attributes.
#pragma once

#include <span>
#include <string_view>

#include "frontend/core/interpreter.h"
#include "graph/op.h"

namespace janus::frontend {

/// Calls a torch builtin or function that means an operator; null if it means none that fits.
Value call_operator(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments);

/// Calls an operator found by its Python name ("Tensor.add", "matmul").
Value call_named(Interpreter& interpreter, std::string_view python_name,
                 const CallArguments& arguments);
/// The same of operands in order, by an operator that gives one tensor.
std::shared_ptr<Tensor> tensor_by(Interpreter& interpreter, std::string_view python_name,
                                  std::vector<Value> operands);
/// A new tensor of these sizes whose elements are all `number`.
Value full(Interpreter& interpreter, std::vector<Value> sizes, const Value& number,
           graph::DType dtype);

}  // namespace janus::frontend
