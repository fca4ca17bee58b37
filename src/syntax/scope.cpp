// See scope.h.
#include "syntax/scope.h"

namespace janus::syntax {

NameKind Scope::kind_of(std::string_view name) const {
  const auto found = names.find(name);
  return found == names.end() ? NameKind::global : found->second;
}

std::string mangle(std::string_view class_name, std::string_view identifier) {
  const auto as_it_is = std::string(identifier);
  if (class_name.empty() || !identifier.starts_with("__") || identifier.ends_with("__") ||
      identifier.find('.') != std::string_view::npos)
    return as_it_is;
  const size_t start = class_name.find_first_not_of('_');
  if (start == std::string_view::npos) return as_it_is;
  return "_" + std::string(class_name.substr(start)) + as_it_is;
}

}  // namespace janus::syntax
