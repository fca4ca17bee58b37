// Name resolution: finds what each name means in each scope of a tree.
#pragma once

#include <string>
#include <vector>

#include "syntax/scope.h"
#include "syntax/tree.h"

namespace janus::syntax {

/// Builds the scopes of a converted tree and hangs them on its nodes.
///
/// `outer` are the (mangled) names that enclosing functions bind: a function's co_freevars. For
/// bare statements it is the variables of the frame they stand in, which count as local; a name
/// that the statements bind is local in any case (at module level too, where nested functions see
/// it as a global).
void analyse_scopes(Tree& tree, const std::vector<std::string>& outer, bool at_module_level);

}  // namespace janus::syntax
