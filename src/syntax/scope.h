// The meaning of each name in each scope, by Python's rules (the answers of symtable).
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
  /// Names that are bound or deleted here: parameters, targets, imports, defs; sorted. `global` and
  /// `nonlocal` may make them variables of another scope: ask kind_of().
  std::vector<std::string> assigned;
  bool has_yield = false;
  bool has_await = false;

  /// The kind of a (mangled) name; one that does not occur is global.
  NameKind kind_of(std::string_view name) const;
};

/// `__x` in class `C` is `_C__x`; everything else stays as it is.
std::string mangle(std::string_view class_name, std::string_view identifier);

}  // namespace janus::syntax
