// Objects of plain classes written in Python that the run makes itself: kept as their attributes
// until they outlive it.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Calls a class; null if its objects can't be kept as their attributes.
Value make_instance(Interpreter& interpreter, const Known& type, const CallArguments& arguments);

/// What a class's `__new__`, a function of the program, gives for the class and the arguments.
Value call_constructor(Interpreter& interpreter, const Known& type, PyObject* constructor,
                       const CallArguments& arguments);

/// object.__new__(class), dict.__new__(class) and list.__new__(class), of a plain class; null for
/// others.
Value call_object_new(Interpreter& interpreter, const CallArguments& arguments);
Value call_dict_new(Interpreter& interpreter, const CallArguments& arguments);
Value call_list_new(Interpreter& interpreter, const CallArguments& arguments);

/// types.SimpleNamespace(**attributes); null for other arguments.
Value make_namespace(Interpreter& interpreter, const CallArguments& arguments);

/// A comparison where one side is an Instance.
Value compare_instances(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
                        const Value& right);

/// An exception that the program makes; null if the class has its own way of making them.
Value make_exception(Interpreter& interpreter, const Known& type, const CallArguments& arguments);

}  // namespace janus::frontend
