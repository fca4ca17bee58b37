// Processes that train together give their gradients to each other between backward and update, and
// keep equal parameters as long as each computes the same update of them. They begin to run it as a
// graph at different steps, so there the graph has to compute what eager does, sums as well. A
// graph that computes gradients itself has those of its own process alone.
#include "frontend/autograd/shared_updates.h"

#include <algorithm>
#include <set>

#include "frontend/core/torch_objects.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Node;
using python::Object;
using speculate::Assumption;
using speculate::CellBinding;
using speculate::Source;

namespace {

using Names = std::set<std::string, std::less<>>;

/// Cells of gradients: what stands in .grad, and that it stands there.
Names gradient_cells(const speculate::Generated& generated) {
  Names names;
  for (const CellBinding& cell : generated.cells)
    if (cell.kind == CellBinding::Kind::grad || cell.source->kind == Source::Kind::grad)
      names.insert(cell.name);
  return names;
}

/// Cells of tensors that require a gradient.
Names leaf_cells(const speculate::Generated& generated) {
  std::set<const Source*> leaves;
  for (const Assumption& assumption : generated.assumptions)
    if (assumption.kind == Assumption::Kind::tensor && assumption.tensor.requires_grad)
      leaves.insert(assumption.source);
  Names names;
  for (const CellBinding& cell : generated.cells)
    if (leaves.contains(cell.source)) names.insert(cell.name);
  return names;
}

bool updates_parameters(const speculate::Generated& generated) {
  if (!generated.differentiable_results.empty()) return false;
  const Names gradients = gradient_cells(generated), leaves = leaf_cells(generated);
  bool updates = false, differentiates = false;
  graph::for_each_node(generated.graph.body(), [&](const Node& node) {
    differentiates |= node.op == &op::gradient;
    const graph::AttributeValue* cell = node.attributes.find("cell");
    if (cell == nullptr) return;
    const auto& name = std::get<std::string>(*cell);
    updates |= gradients.contains(name) || (node.op != &op::state && leaves.contains(name));
  });
  return updates && !differentiates;
}

/// Whether there is anything but what is computed element by element, in the order of memory.
bool may_add_up(const graph::Graph& graph) {
  static const std::set<const graph::OpDef*> others = {&op::state, &op::commit, &op::rebind,
                                                       &op::detach};
  bool found = false;
  graph::for_each_node(graph.body(), [&](const Node& node) {
    const bool takes_tensor = std::ranges::any_of(
        node.inputs, [](const graph::Value* input) { return input->type.is_tensor(); });
    found |= takes_tensor && !node.op->is(graph::Trait::elementwise) && !others.contains(node.op);
  });
  return found;
}

}  // namespace

bool is_shared_update(Interpreter& interpreter) {
  const speculate::Generated& generated = interpreter.output();
  return updates_parameters(generated) && may_add_up(generated.graph) &&
         is_in_process_group(interpreter);
}

bool is_in_process_group(Interpreter& interpreter) {
  static PyObject* const groups = imported("torch.distributed.group");
  if (groups == nullptr) return false;  // torch was built without
  const Object name = Object::steal(PyUnicode_InternFromString("WORLD"));
  const Object world = interpreter.must(PyObject_GetAttr(groups, name.get()));
  const Source* source = interpreter.sources().step(
      Source::Kind::attribute,
      interpreter.sources().root(Source::Kind::constant, Object::borrow(groups)), name);
  const bool is_member = !world.is(Py_None);
  if (is_member)
    interpreter.assume(Assumption::Kind::exact_type, source,
                       Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(world.get()))));
  else
    interpreter.assume(Assumption::Kind::identity, source, world);
  return is_member;
}

}  // namespace janus::frontend
