// What operators, conversions and calls of Python's functions share about numbers that the graph
// computes.
#pragma once

#include <initializer_list>
#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// int(x), float(x), bool(x) of a number that the graph computes.
Value convert_number(Interpreter& interpreter, const Value& number, graph::Type::Kind kind);

/// The int that a member of an enumeration of ints is, if its class leaves the methods to int; any
/// other value as it is.
Value plain_number(Interpreter& interpreter, const Value& value,
                   std::initializer_list<std::string> methods);

/// Where the program handles what an operation of numbers raises, that it raises in the call at
/// hand, or does not, is a test that is followed: with other numbers it may go the other way.
void follow_raising(Interpreter& interpreter, const Value& flag, bool raises);

}  // namespace janus::frontend
