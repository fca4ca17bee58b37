// Attribute reads and writes, by Python's look-up order, with guards for every step.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// getattr(value, name); raises where there is none.
Value attribute(Interpreter& interpreter, const Value& value, const std::string& name);
/// getattr(value, name, null)
Value attribute_or_null(Interpreter& interpreter, const Value& value, const std::string& name);
/// object.__getattribute__(value, name): past the method of that name of the object's class; raises
/// as `attribute` does.
Value own_attribute(Interpreter& interpreter, const Value& value, const std::string& name);
void write_attribute(Interpreter& interpreter, const Value& value, const std::string& name,
                     const Value& element);
void delete_attribute(Interpreter& interpreter, const Value& value, const std::string& name);

/// object.__setattr__(value, name, element), or __delattr__ if the element is null: past the
/// methods of that name of the object's class.
void write_own_attribute(Interpreter& interpreter, const Value& value, const std::string& name,
                         const Value& element);

/// The path under which parts of the object are reached: itself, where it has none from the entry.
const Source* path_of(Interpreter& interpreter, const Known& known);

/// What the class says of its objects' attribute (by Python's general rules), assumed to stay; null
/// if nothing. And what that gives for an object of exactly this class.
PyObject* class_descriptor(Interpreter& interpreter, PyTypeObject* type, const std::string& name);
Value bound_class_attribute(Interpreter& interpreter, const Value& self, PyTypeObject* type,
                            const std::string& name);

/// What looking `name` up on the type of `value` finds (a special method), bound to it; null if
/// there is none.
Value special_method(Interpreter& interpreter, const Value& value, const char* name);
/// The same where the class has the method written in Python; else null.
Value written_method(Interpreter& interpreter, const Value& value, const char* name);

}  // namespace janus::frontend
