// Virtual lists, tuples, dicts, sets and slices: building, reading, iterating, methods.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// iter(value); refuses what is not iterable at generation time.
std::shared_ptr<Iterator> iterate(Interpreter& interpreter, const Value& value);
/// Whether a real list or dict holds anything, which is all that is assumed; nothing for others.
std::optional<bool> container_truth(Interpreter& interpreter, const Value& value);
/// len(value) as a number.
Value length_of(Interpreter& interpreter, const Value& value);

/// value[key], value[key] = element, del value[key]
Value subscript(Interpreter& interpreter, const Value& value, const Value& key);
void write_subscript(Interpreter& interpreter, const Value& value, const Value& key,
                     const Value& element);
void delete_subscript(Interpreter& interpreter, const Value& value, const Value& key);

/// element in container, and whether that is so: known, or followed.
Value membership(Interpreter& interpreter, const Value& container, const Value& element);
bool contains(Interpreter& interpreter, const Value& container, const Value& element);

/// A method of a container, e.g. "append" of a list: null if there is none of that name.
Value container_method(Interpreter& interpreter, const Value& self, const std::string& name);
/// The same, as the builtin class that it derives from has it.
Value builtin_method(Interpreter& interpreter, const Value& self, const std::string& name);

/// The Python object that a virtual value stands for, if all its parts are known constants.
python::Object folded(Interpreter& interpreter, const Value& value);
/// The known, hashable object that a value is as a key; refuses graph values.
python::Object key_object(Interpreter& interpreter, const Value& value);

/// A method of a builtin container, given with its self (`dict.update`, `list.__getitem__`), or
/// dict.fromkeys; null if the callable is none.
Value call_container_function(Interpreter& interpreter, PyObject* callable,
                              const CallArguments& arguments);

// --- operators of sets (sets.cpp); null where they are none
Value set_binary(Interpreter& interpreter, syntax::Operator op, const Value& left,
                 const Value& right);
Value set_binary_in_place(Interpreter& interpreter, syntax::Operator op, const Value& left,
                          const Value& right);
Value set_compare(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
                  const Value& right);

/// Implements opened() of core/operations.h.
Value open_container(Interpreter& interpreter, const Value& value);

/// Implements elements_of() of core/operations.h.
std::vector<Value> list_elements(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
