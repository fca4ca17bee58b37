// Attributes of objects that are discovered at run time. They are read in the graph, for the
// classes that the profile saw.
#pragma once

#include <memory>
#include <string>

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

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

}  // namespace janus::frontend
