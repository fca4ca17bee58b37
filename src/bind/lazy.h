// Lazy execution, for the Python package.
#pragma once

#include <nanobind/nanobind.h>

#include "lazy/family_graph.h"

namespace janus::bind {

void bind_lazy(nanobind::module_& module);

/// What the graph of a family is made of.
void add_form(nanobind::dict& dict, const lazy::FamilyGraph::Form& form);

}  // namespace janus::bind
