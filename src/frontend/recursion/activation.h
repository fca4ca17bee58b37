// One call of a Python function that may turn out to be recursive, with its arguments bound.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "frontend/values/value.h"

namespace janus::frontend {

/// One call of a Python function, its arguments bound.
struct Activation {
  const syntax::Scope* scope;
  const void* environment;  ///< tells apart functions made of the same code
  python::Object facts_key;
  std::string name;
  std::shared_ptr<Variables> variables;
  /// Interprets the body with these variables.
  std::function<Value(const std::shared_ptr<Variables>&)> run;
};

}  // namespace janus::frontend
