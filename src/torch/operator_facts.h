// What torch's schemas do not say about its operators. These are operators that the graph has no
// operator of its own for, so they have no block, and their names tell them apart.
#pragma once

#include <string_view>

#include "frontend/core/torch_services.h"

namespace janus::torch {

/// By "aten::conj"; everything is false of what is not known.
frontend::OperatorFacts operator_facts(std::string_view name);

}  // namespace janus::torch
