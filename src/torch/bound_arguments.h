// From the bound arguments of a call to a node's operands and attributes.
#pragma once

#include <optional>
#include <string>

#include "frontend/core/torch_services.h"
#include "torch/schema_binding.h"

namespace janus::torch {

/// Sets the operands and attributes of `result`. Gives what is wrong if a node can't have them.
std::optional<std::string> encode(const c10::FunctionSchema& schema, const SchemaBinding& binding,
                                  frontend::ResolvedOperator& result);

/// A constant, a dimension, or a sequence of such numbers as an attribute; nullopt if it is
/// something else.
std::optional<graph::AttributeValue> constant_of(const frontend::OperatorArgument& argument);

}  // namespace janus::torch
