// Metadata properties and special attributes of tensors, as `shape`, `requires_grad` and `grad`.
#pragma once

#include <memory>
#include <string>

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// Metadata property or special attribute of a tensor; null: an ordinary method or unknown.
Value tensor_property(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                      const std::string& name);

/// False: it is no such property.
bool write_tensor_property(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                           const std::string& name, const Value& value);

}  // namespace janus::frontend
