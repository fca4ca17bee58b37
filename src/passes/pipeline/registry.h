// The passes by name, for janus-opt and tests.
#pragma once

#include <span>
#include <string_view>

#include "passes/runner/pass.h"

namespace janus::passes {

struct NamedPass {
  std::string_view name;
  graph::Graph (*run)(graph::Graph graph);
};

/// Every pass, and `optimise`: all of them as the compiler runs them.
std::span<const NamedPass> all_passes();

/// Null if no pass has that name.
const NamedPass* find_pass(std::string_view name);

}  // namespace janus::passes
