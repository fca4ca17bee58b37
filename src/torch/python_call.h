// Binds nodes that call functions of Python's library (ops/python.cpp).
#pragma once

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// Null if the node is no such call.
std::unique_ptr<execute::Operation> bind_python_call(const graph::Node& node);

}  // namespace janus::torch
