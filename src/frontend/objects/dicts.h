// Methods of dicts: those that the run makes and those that existed before the call. OrderedDict,
// defaultdict and Counter are dicts with a class of their own.
#pragma once

#include <memory>
#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The method of a dict that the run made or that was opened; null if it has none of that name.
Value dict_method(const std::shared_ptr<Dictionary>& dictionary, const std::string& name);

/// The method of a dict that existed before the call, if it does not look at all that the dict
/// holds.
Value real_dict_method(const Value& self, const std::string& name);

/// self.update(*arguments) of a dict, real or made in the run.
void update_dict(Interpreter& interpreter, const Value& self, const CallArguments& arguments);

}  // namespace janus::frontend
