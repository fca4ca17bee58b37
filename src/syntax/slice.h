// Parts of a run of statements: trees that share the nodes of the whole, and so its facts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syntax/tree.h"

namespace janus::syntax {

/// The statements begin .. end-1 of a run of statements. `assigned`: the (mangled) names that they
/// bind. Keeps `whole` alive.
std::shared_ptr<const Tree> slice(const std::shared_ptr<const Tree>& whole, size_t begin,
                                  size_t end, std::vector<std::string> assigned);

}  // namespace janus::syntax
