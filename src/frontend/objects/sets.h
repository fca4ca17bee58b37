// The elements of sets: those that the run makes and those that existed before the call. An element
// is a constant, or an object that is equal to nothing but itself.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The value as a set keeps it and looks for it.
Value set_element(Interpreter& interpreter, const Value& value);

/// Whether the element is among the elements of a set.
bool holds(Interpreter& interpreter, const std::vector<Value>& elements, const Value& element);

/// Whether the value is a set, and whether it is a frozenset.
bool is_set(const Value& value);
bool is_frozen(const Value& value);

/// The elements of a set, or those that a set of the value's elements has, in no certain order.
std::vector<Value> unordered_elements(Interpreter& interpreter, const Value& value);

/// The elements in Python's order; refuses where that is not known.
std::vector<Value> set_elements(Interpreter& interpreter, const SetValue& set);

/// The number of elements of a set that existed before the call.
int64_t set_length(Interpreter& interpreter, const Known& known);

/// Removes the element, if it is there.
void remove_element(Interpreter& interpreter, std::vector<Value>& elements, const Value& element);

}  // namespace janus::frontend
