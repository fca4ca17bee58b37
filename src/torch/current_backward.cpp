#include "torch/current_backward.h"

#include <torch/csrc/autograd/graph_task.h>

namespace janus::torch {

namespace autograd = ::torch::autograd;
using autograd::Edge;

namespace {

using Task = autograd::GraphTask::ExecInfo;

/// Whether the engine goes to some nodes only: those for which it has a task that is executed.
bool is_for_some_inputs() {
  const auto* const tasks = autograd::get_current_graph_task_exec_info();
  return tasks != nullptr && !tasks->empty();
}

/// Null: it has none for the node.
const Task* task_of(autograd::Node* node) {
  const auto* const tasks = autograd::get_current_graph_task_exec_info();
  if (tasks == nullptr) return nullptr;
  const auto found = tasks->find(node);
  return found == tasks->end() ? nullptr : &found->second;
}

}  // namespace

bool is_looked_at(const Edge& result) {
  autograd::Node& node = *result.function;
  if (!node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty() ||
      !node.pre_hooks().empty() || !node.post_hooks().empty())
    return true;
  const Task* const task = task_of(&node);
  return task != nullptr && task->captures_ != nullptr;
}

bool is_on_the_way(const Edge& edge) {
  if (!is_for_some_inputs()) return true;
  const Task* const task = task_of(edge.function.get());
  return task != nullptr && task->should_execute();
}

}  // namespace janus::torch
