// The `while` node, and what is known behind it: lengths of lists, whether a first iteration surely
// came, which tensors may be one.
#include <algorithm>

#include "frontend/control/loop.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/operations.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"

namespace janus::frontend {

void Loop::make_node() {
  interpreter_.enter_block(outer_);
  graph::Graph& graph = interpreter_.builder().graph();
  graph::Node* node = graph.new_node(op::while_);
  node->span = span_;
  body_->results = ends_;
  TORCHJANUS_CHECK(
      condition_->parameters.size() == ends_.size() && body_->parameters.size() == ends_.size(),
      "loop: ", ends_.size(), " values for ", body_->parameters.size(), " parameters");
  at_ = nullptr;
  if ((tracks_ || needs_iteration_ || moves_ || hands_on_argument()) && begins_certainly())
    node->attributes.set("minimum", int64_t{1}), begins_ = true;
  else if (moves_)
    fail("after zero iterations a tensor has another layout");
  else if (needs_iteration_ && !interpreter_.recursion().is_building())
    fail("after zero iterations there is no gradient");
  else if (needs_iteration_)
    interpreter_.gradients_vary = true;
  follow_parameters();
  set_state([&](graph::Value* initial) {
    node->inputs.push_back(initial);
    graph::Value* output = graph.new_value(initial->type, initial->name);
    output->definition = node;
    output->index = static_cast<uint32_t>(node->outputs.size());
    node->outputs.push_back(output);
    return output;
  });
  for (auto* block : {&condition_, &body_}) {
    (*block)->parent = node;
    node->blocks.push_back(std::move(*block));
  }
  graph.append(outer_, node);
  interpreter_.scope_nodes[node] = test_;
  finish_lists(*node);
  relate_tensors();
}

void Loop::finish_lists(const graph::Node& node) {
  for (auto& [object, growth] : growth_) {
    auto list = std::make_shared<Rolled>(*object->elements.rolled());
    const auto place = std::find(node.outputs.begin(), node.outputs.end(), list->lists.front());
    const auto index = static_cast<size_t>(place - node.outputs.begin());
    list->undecided = false;
    list->length = length_behind(*object, *node.blocks[1], index);
    object->elements = ElementList(list);
    check_not_written(growth);
    // Older tensors that it may hold now.
    for (const PossibleAlias& alias : growth.memory->possible_aliases)
      if (auto other = alias.tensor.lock())
        other->possible_aliases.add({growth.memory, growth.memory->version});
  }
}

void Loop::check_not_written(const Growth& growth) const {
  for (const PossibleAlias& alias : growth.memory->possible_aliases)
    if (const auto tensor = alias.tensor.lock();
        tensor != nullptr && passages_.contains(tensor.get()))
      fail("it writes a tensor that a list holds");
}

Value Loop::length_behind(const Sequence& sequence, const graph::Block& body, size_t index) {
  Value iterations = parts_.iterations ? parts_.iterations() : nullptr;
  if (iterations == nullptr) return nullptr;
  int64_t pushes = 0;
  const graph::Value* value = body.results[index];
  for (; value->definition != nullptr && value->definition->op == &op::list_push; ++pushes)
    value = value->definition->inputs[0];
  if (value != body.parameters[index]) return nullptr;
  const auto& initial = std::get<Elements>(*before_.objects.find(&sequence));
  Value length = initial.rolled() == nullptr
                     ? interpreter_.integer(static_cast<int64_t>(initial.size()))
                     : initial.rolled()->length;
  if (length == nullptr) return nullptr;
  Value added =
      binary(interpreter_, syntax::Operator::Mult, iterations, interpreter_.integer(pushes));
  return binary(interpreter_, syntax::Operator::Add, length, added);
}

bool Loop::begins_certainly() {
  if (!may_begin_certainly()) return false;
  before_.restore(interpreter_);
  return surely_begins(interpreter_, test_, parts_);
}

bool Loop::hands_on_argument() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [](const CarriedTensor& carried) {
    return std::any_of(carried.roots.begin(), carried.roots.end(),
                       [](const auto& root) { return root->source != nullptr; });
  });
}

bool Loop::may_begin_certainly() const {
  bool is_random = false;
  graph::for_each_node(*condition_, [&](const graph::Node& node) {
    is_random = is_random || node.op->is(graph::Trait::random) || node.op == &op::opaque;
  });
  return !is_random && begins_in_all_runs(interpreter_, test_, parts_);
}

void Loop::follow_parameters() {
  const auto outlives = [&](const std::shared_ptr<Tensor>& root) {
    return root->value == nullptr || before_.objects.find(root.get()) != nullptr;
  };
  for (auto& roots : end_roots_)
    for (size_t next = 0; next < roots.size(); ++next)
      for (size_t i = 0; i < tensors_.size(); ++i) {
        if (tensors_[i].tensor != roots[next]) continue;
        const auto handed_on = end_roots_[i];  // it may be the one that grows
        for (const auto& root : handed_on) {
          const bool is_parameter = std::ranges::any_of(
              tensors_, [&](const CarriedTensor& each) { return each.tensor == root; });
          if ((is_parameter || outlives(root)) && std::ranges::find(roots, root) == roots.end())
            roots.push_back(root);
        }
      }
}

void Loop::relate_tensors() {
  TORCHJANUS_CHECK(tensors_.size() == end_roots_.size(), "loop: tensors without an end");
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (begins_) tensors_[i].roots.clear();
    auto& roots = tensors_[i].roots;
    roots.insert(roots.end(), end_roots_[i].begin(), end_roots_[i].end());
    // What lies in the list of an iteration lies in the one behind the loop.
    for (const auto& [object, growth] : growth_)
      if (std::ranges::find(roots, growth.left) != roots.end()) roots.push_back(growth.memory);
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& tensor = *tensors_[i].tensor;
    tensor.possible_aliases = {};
    relate_to_others(tensors_[i].tensor, tensors_[i].roots, before_.objects);
    for (const auto& root : tensors_[i].roots) {
      if (passages_.contains(root.get())) fail("it writes a tensor that it also hands on");
      relate(tensors_[i].tensor, root);
    }
    for (size_t j = 0; j < i; ++j) {
      if (!share_roots(tensors_[i], tensors_[j])) continue;
      relate(tensors_[i].tensor, tensors_[j].tensor);
      relate(tensors_[j].tensor, tensors_[i].tensor);
    }
  }
  // What needs no gradient outside must not seem to have one through the blocks.
  if (interpreter_.differentiable.empty()) return;
  for (const CarriedTensor& carried : tensors_) detach(*carried.tensor);
  for (const Snapshot::Saved& saved : before_.objects.objects())
    if (auto* tensor = dynamic_cast<Tensor*>(saved.object);
        saved.alive() && tensor != nullptr && passages_.contains(tensor))
      detach(*tensor);
}

void Loop::detach(Tensor& tensor) {
  if (!tensor.requires_grad) tensor.value = op::detach(interpreter_.builder(), {tensor.value});
}

bool Loop::share_roots(const CarriedTensor& a, const CarriedTensor& b) {
  return std::any_of(a.roots.begin(), a.roots.end(), [&](const auto& root) {
    return std::find(b.roots.begin(), b.roots.end(), root) != b.roots.end();
  });
}

}  // namespace janus::frontend
