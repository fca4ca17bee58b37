// Name resolution: decides the meaning of each name in each scope of a tree.
#pragma once

#include <string>
#include <vector>

#include "syntax/scope.h"
#include "syntax/tree.h"

namespace janus::syntax {

/// Builds the scopes of a converted tree and attaches them to its nodes.
///
/// `outer`: the (mangled) names that enclosing functions bind, a function's co_freevars. For bare
/// statements: the variables of their frame, which count as local. A name that the statements bind
/// is local in any case, also at module level, where nested functions see it as a global.
void analyse_scopes(Tree& tree, const std::vector<std::string>& outer, bool at_module_level);

}  // namespace janus::syntax
