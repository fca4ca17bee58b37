// Objects that only the run meets (RuntimeObject): what they are is tested in the graph, what they
// hold is read there. The profile says which classes came, and of which kind an attribute was; what
// it did not see ends the run.
#pragma once

#include <functional>

#include "frontend/interpreter.h"

namespace janus::frontend {

/// The object at `source` as an input of the graph; its class is an assumption.
Value entry_object(Interpreter& interpreter, PyObject* object, const Source* source);

/// The classes that the object is certainly of one of: what is not known is guarded. `fact` is that
/// of the expression that needs to know.
Classes expect_classes(Interpreter& interpreter, const RuntimeObject& object, int fact);
/// Whether the class of the object holds for `holds`: a flag, or known where all seen classes
/// agree.
Value test_classes(Interpreter& interpreter, const RuntimeObject& object,
                   const std::function<bool(PyTypeObject*)>& holds, int fact);

/// object.name; null if no class that was seen has it. `fact`: of the expression.
Value run_time_attribute(Interpreter& interpreter, const std::shared_ptr<RuntimeObject>& object,
                         const std::string& name, int fact);
/// hasattr(object, name), where only the objects themselves have such: a flag.
graph::Value* run_time_has_attribute(Interpreter& interpreter, const RuntimeObject& object,
                                     const std::string& name);
/// object.name = value
void write_run_time_attribute(Interpreter& interpreter,
                              const std::shared_ptr<RuntimeObject>& object, const std::string& name,
                              const Value& value);
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
/// list[position] of a long list or tuple of before the call that holds objects of the program,
/// such as trees, where only the run knows the position: an object of the run. Null for any other
/// list, whose element is known.
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

/// The value as one of type object: an object of the run, or a constant; null for what is neither.
graph::Value* object_value(Interpreter& interpreter, const Value& value);
/// The classes that a value may have, as far as the profile knows.
Classes possible_classes(Interpreter& interpreter, const Value& value);
Classes united(Classes classes, const Classes& more);

}  // namespace janus::frontend
