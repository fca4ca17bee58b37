// Attributes of what the run itself makes: tensors, containers, functions, methods, iterators; and
// of super(). Where such an object has no attribute of the name, the functions give null.
#pragma once

#include <memory>
#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

Value super_attribute(Interpreter& interpreter, const Super& super, const std::string& name);

Value tensor_attribute(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                       const std::string& name);

/// Stores an attribute of a pre-existing tensor in the tensor's own dictionary. A null value
/// deletes it.
void write_tensor_attribute(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                            const std::string& name, const Value& value);

/// An attribute of a container, function, method or iterator of the run.
Value virtual_attribute(Interpreter& interpreter, const Value& value, const std::string& name);

/// A method of a virtual object's class that is written in Python (named tuples have such).
Value class_method(Interpreter& interpreter, const Value& value, const std::string& name);

}  // namespace janus::frontend
