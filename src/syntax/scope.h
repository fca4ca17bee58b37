// What each name means in each scope, by Python's own rules (symtable's answers).
#pragma once

#include <map>
#include <string>
#include <vector>

namespace janus::syntax {

enum class NameKind {
  local,   ///< a local variable that no nested function uses
  cell,    ///< a local variable that a nested function uses
  free,    ///< a variable of an enclosing function
  global,  ///< a global or a builtin (explicit `global` or never assigned here)
};

/// One function, lambda, comprehension, class body, or the bare statements of a script.
struct Scope {
  enum class Kind { function, lambda, comprehension, class_, statements };
  Kind kind = Kind::function;
  Scope* parent = nullptr;
  std::map<std::string, NameKind, std::less<>>
      names;                            ///< every name that occurs; mangled (`_C__x`)
  std::vector<std::string> parameters;  ///< in order of the code object's varnames
  std::vector<std::string> assigned;    ///< bound here: parameters, targets, imports, defs; sorted
  bool has_yield = false;
  bool has_await = false;
};

}  // namespace janus::syntax
