// Subscripts: reading, writing and deleting items, elements and slices of containers and tensors.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// value[key]
Value subscript(Interpreter& interpreter, const Value& value, const Value& key);

/// value[key] = element
void write_subscript(Interpreter& interpreter, const Value& value, const Value& key,
                     const Value& element);

/// del value[key]
void delete_subscript(Interpreter& interpreter, const Value& value, const Value& key);

}  // namespace janus::frontend
