// What each name means in each scope, by Python's own rules (symtable's answers).
#pragma once

#include <map>
#include <string>
#include <string_view>
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
  /// Bound (or deleted) here: parameters, targets, imports, defs; sorted. Also where `global` or
  /// `nonlocal` makes them variables of another scope: ask kind_of().
  std::vector<std::string> assigned;
  bool has_yield = false;
  bool has_await = false;

  /// What a (mangled) name means here; a name that does not occur is global.
  NameKind kind_of(std::string_view name) const;
};

/// `__x` in class `C` is `_C__x`; everything else stays as it is.
std::string mangle(std::string_view class_name, std::string_view identifier);

}  // namespace janus::syntax
