// Containers that the run makes.
#pragma once

#include <memory>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

Value make_tuple(std::vector<Value> elements);

Value make_list(std::vector<Value> elements);

/// Iteration over the elements of a container held by value.
std::shared_ptr<Iterator> iterate_elements(std::vector<Value> elements);

/// An empty dict of the class (null: dict), made in the run.
std::shared_ptr<Dictionary> made_dict(python::Object type);

}  // namespace janus::frontend
