// Objects of plain classes written in Python that the run makes itself: kept as their attributes
// until they outlive it.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// What the class has under the name, assumed to stay; null: nothing.
PyObject* class_entry(Interpreter& interpreter, PyTypeObject* type, const char* name);

/// Calls a class; null if its objects can't be kept as their attributes.
Value make_instance(Interpreter& interpreter, const Known& type, const CallArguments& arguments);

/// object.__new__(class) and dict.__new__(class), of a plain class; null for others.
Value call_object_new(Interpreter& interpreter, const CallArguments& arguments);
Value call_dict_new(Interpreter& interpreter, const CallArguments& arguments);

/// An object of the class of `object` without attributes, as `copy` makes one before it copies
/// them. Null if the class keeps more than attributes, or has a way of its own to be made or
/// copied; its method `copier` is one.
std::shared_ptr<Instance> uncopied(Interpreter& interpreter, const Value& object,
                                   const char* copier);

/// types.SimpleNamespace(**attributes); null for other arguments.
Value make_namespace(Interpreter& interpreter, const CallArguments& arguments);

/// A comparison where one side is an Instance.
Value compare_instances(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
                        const Value& right);

/// An exception that the program makes; null if the class has its own way of making them.
Value make_exception(Interpreter& interpreter, const Known& type, const CallArguments& arguments);

}  // namespace janus::frontend
