// Attribute reads and writes by Python's look-up order, with guards for every step. This is the
// core of the room: to read an attribute may call a property or descriptor, which reads attributes
// in turn. Reads are in attribute_reads.cpp, writes in attribute_writes.cpp.
#pragma once

#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

// --- reads ---------------------------------------------------------------------------------------

/// getattr(value, name); raises where there is none.
Value attribute(Interpreter& interpreter, const Value& value, const std::string& name);

/// getattr(value, name, null)
Value attribute_or_null(Interpreter& interpreter, const Value& value, const std::string& name);

/// object.__getattribute__(value, name): past the method of that name of the object's class; raises
/// as `attribute` does.
Value own_attribute(Interpreter& interpreter, const Value& value, const std::string& name);

// --- writes --------------------------------------------------------------------------------------

/// setattr(value, name, element)
void write_attribute(Interpreter& interpreter, const Value& value, const std::string& name,
                     const Value& element);

/// delattr(value, name)
void delete_attribute(Interpreter& interpreter, const Value& value, const std::string& name);

/// object.__setattr__(value, name, element), or __delattr__ if the element is null: past the
/// methods of that name of the object's class.
void write_own_attribute(Interpreter& interpreter, const Value& value, const std::string& name,
                         const Value& element);

// --- what classes say ----------------------------------------------------------------------------

/// What looking `name` up on the type of `value` finds (a special method), bound to it; null if
/// there is none.
Value special_method(Interpreter& interpreter, const Value& value, const char* name);

/// The same where the class has the method written in Python; else null.
Value written_method(Interpreter& interpreter, const Value& value, const char* name);
/// Whether there is one, without a call of it in view.
bool has_written_method(const Value& value, const char* name);

/// What the class says of its objects' attribute by Python's general rules, assumed to stay; null
/// if nothing.
PyObject* class_descriptor(Interpreter& interpreter, PyTypeObject* type, const std::string& name);

/// What that gives for an object of exactly this class.
Value bound_class_attribute(Interpreter& interpreter, const Value& self, PyTypeObject* type,
                            const std::string& name);

// --- paths ---------------------------------------------------------------------------------------

/// The path under which parts of the object are reached: the object itself, where it has no path
/// from the entry.
const Source* path_of(GraphWriter& writer, const Known& known);

}  // namespace janus::frontend
