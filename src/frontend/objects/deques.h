// Deques: lists with a class of their own and perhaps a greatest length.
#pragma once

#include <memory>
#include <string>

#include "frontend/values/value.h"

namespace janus::frontend {

/// A method that only deques have; null for other names.
Value deque_method(const std::shared_ptr<Sequence>& deque, const std::string& name);

/// Drops the elements beyond the deque's greatest length, at the left or the right.
void trim_deque(Sequence& deque, bool left);

}  // namespace janus::frontend
