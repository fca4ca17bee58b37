// Objects that only the run meets (RuntimeObject): what is known of their classes, and how the
// graph names objects. The profile says which classes came; what it did not see ends the run.
#pragma once

#include <functional>
#include <utility>

#include "frontend/core/interpreter.h"
#include "graph/attribute.h"

namespace janus::frontend {

/// The number by which nodes name an object.
int64_t number_of(GraphWriter& writer, PyObject* object);
/// Whether the object is exactly of the class.
graph::Value* class_flag(GraphWriter& writer, const RuntimeObject& object, PyTypeObject* type);
/// Whether it is exactly of one of the classes, of which there is at least one.
graph::Value* any_flag(GraphWriter& writer, const RuntimeObject& object, const Classes& classes);
/// The classes as they are known here, and whether they are certain.
std::pair<Classes, bool> classes_here(const InterpreterState& state, const RuntimeObject& object);
/// From here on it is of one of the classes: guarded.
void guard_classes(Interpreter& interpreter, const RuntimeObject& object, const Classes& classes,
                   int fact);
/// The attributes of a node that may fail.
graph::Attributes may_fail(Guards& guards, int fact);

/// The classes that the object is certainly of one of: what is not known is guarded. `fact` is that
/// of the expression that needs to know.
Classes expect_classes(Interpreter& interpreter, const RuntimeObject& object, int fact);

/// Whether the class of the object holds for `holds`: a flag, or known where all seen classes
/// agree.
Value test_classes(Interpreter& interpreter, const RuntimeObject& object,
                   const std::function<bool(PyTypeObject*)>& holds, int fact);

/// The value as one of type object: an object of the run, or a constant; null for what is neither.
graph::Value* object_value(Interpreter& interpreter, const Value& value);

/// The classes that a value may have, as far as the profile knows.
Classes possible_classes(const InterpreterState& state, const Value& value);

}  // namespace janus::frontend
