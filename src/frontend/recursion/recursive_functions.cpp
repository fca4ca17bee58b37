#include "frontend/recursion/recursive_functions.h"

#include <algorithm>

#include "graph/functions.h"

namespace janus::frontend {

bool RecursiveFunctions::is_building() const {
  return std::ranges::any_of(functions_,
                             [](const auto& function) { return function->is_building; });
}

RecursiveFunction& RecursiveFunctions::add(std::unique_ptr<RecursiveFunction> function) {
  return *functions_.emplace_back(std::move(function));
}

void RecursiveFunctions::forget_after(size_t count) {
  auto& nodes = writer_.output().graph.body().nodes;
  for (size_t i = count; i < functions_.size(); ++i)
    std::erase_if(nodes, [&](const graph::Node* node) {
      return graph::is_function(*node) && graph::function_name(*node) == functions_[i]->name;
    });
  functions_.resize(count);
}

}  // namespace janus::frontend
