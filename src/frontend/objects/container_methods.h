// Methods of containers by their names, and builtin methods that are called with their self
// (`dict.update(d, other)`).
#pragma once

#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The method of a container, for example "append" of a list; null if it has none of that name.
Value container_method(const Frames& frames, const Value& self, const std::string& name);

/// The method as the builtin class has it that the container's class derives from.
Value builtin_method(const Frames& frames, const Value& self, const std::string& name);

/// list *= times: the list itself has its elements so often.
void repeat_list(Interpreter& interpreter, const std::shared_ptr<Sequence>& list,
                 const Value& times);

/// Calls a method of a builtin container that is given with its self (`dict.update`,
/// `list.__getitem__`), or dict.fromkeys; null if the callable is none.
Value call_container_function(Interpreter& interpreter, PyObject* callable,
                              const CallArguments& arguments);

}  // namespace janus::frontend
