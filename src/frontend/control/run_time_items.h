// Lists, tuples, dicts, texts and numbers that only the run meets: their elements, lengths, truth
// and identity.
#pragma once

#include <functional>
#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// left is right, where one is an object of the run.
Value run_time_identity(Interpreter& interpreter, const Value& left, const Value& right);

/// object == constant, of a text or an int; null if such objects are compared in another way.
Value run_time_equality(Interpreter& interpreter, const RuntimeObject& object,
                        const Value& constant);

/// Whether it is true: a flag.
Value run_time_truth(Interpreter& interpreter, const RuntimeObject& object);

/// len(object) of a list or tuple
Value run_time_length(Interpreter& interpreter, const RuntimeObject& object, int fact);

/// object[position] of a list or tuple, object[key] of a dict; `seen`: what such elements were.
Value run_time_item(Interpreter& interpreter, const RuntimeObject& object, const Value& position,
                    const speculate::ValueFact* seen, int fact);

/// list[position] of a long pre-existing list or tuple of the program's objects, such as trees,
/// where only the run knows the position: an object of the run. Null for any other list, whose
/// element is known.
Value varying_item(Interpreter& interpreter, const Known& list, const Value& position, int fact);

/// list[start:stop] of such a list, where only the run knows a bound: as many elements as in the
/// call at hand. Null as of varying_item().
Value varying_part(Interpreter& interpreter, const Known& list, const Value& key, int fact);

/// What gives the elements of such a list at positions that the run draws; its length is assumed.
/// Null as of varying_item().
std::function<Value(const Value& position)> varying_elements(Interpreter& interpreter,
                                                             const Known& list);

/// The elements of a list or tuple of exactly so many.
std::vector<Value> run_time_elements(Interpreter& interpreter, const RuntimeObject& object,
                                     size_t count);

/// key in object, a dict
Value run_time_contains(Interpreter& interpreter, const RuntimeObject& object, const Value& key);

/// The number that the value is if it is certainly one that the run met; else the value itself.
Value run_time_number(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
