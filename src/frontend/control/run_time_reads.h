// Reads of Python's heap by the run: attributes, items and elements of objects that only the run
// meets.
#pragma once

#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// What numbers of the class are in the graph; objects for any other class.
graph::Type number_type(PyTypeObject* type);
/// What values of a place were, as the type of a value of the graph.
graph::Type type_seen(const speculate::ValueFact* seen);
/// What a node that reads the heap gives, as a value of the program.
Value read_value(Interpreter& interpreter, graph::Value* value, const speculate::ValueFact* seen);

/// What is read of Python's heap must not have been changed by the run, which writes at its end.
/// Objects of another class are other objects.
void check_unchanged(Interpreter& interpreter, const Classes& classes);

/// Notes what the attribute, or the item of a dict, is in objects of the class that the call at
/// hand is given: for what no profile saw, such as the code of properties. Runs no code of the
/// program.
void look_at_samples(PyTypeObject* type, const std::string& name, speculate::ValueFact& seen,
                     const speculate::Call& call);
/// The same of the element at `index` of lists or tuples of so many.
void look_at_samples(PyTypeObject* type, Py_ssize_t index, Py_ssize_t count,
                     speculate::ValueFact& seen, const speculate::Call& call);

bool are_dicts(const Classes& classes);
/// dict[key]; `seen`: what such items were, if that is known.
Value dict_item(Interpreter& interpreter, const RuntimeObject& dict, const Value& key,
                const speculate::ValueFact* seen, int fact);
/// Whether the dict has the key.
graph::Value* has_item(Interpreter& interpreter, const RuntimeObject& dict, const Value& key);

}  // namespace janus::frontend
