// Gives the results of a run their grad_fn: attach_node of graph_backward.h.
#include "torch/graph_backward.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/options.h"
#include "torch/divided_backward.h"
#include "torch/process_group.h"
#include "torch/reducer.h"
#include "torch/result_backward.h"
#include "torch/tensor.h"

namespace janus::torch {

namespace autograd = ::torch::autograd;
using autograd::Edge;
using execute::Slot;

namespace {

/// Whether a gradient of one of the results can come to that input or cell.
bool is_reached(const GradientGraph& graph, size_t target) {
  for (size_t result = 0; result < graph.results().size(); ++result)
    if (graph.reaches(result, target)) return true;
  return false;
}

/// By result, whether it requires a gradient.
std::vector<bool> requires_gradient(const GradientGraph& graph, const autograd::edge_list& edges,
                                    const IfItDepends& if_it_depends) {
  std::vector<bool> result(graph.results().size(), true);
  for (size_t r = 0; r < if_it_depends.size(); ++r) {
    if (!if_it_depends[r]) continue;
    result[r] = false;
    for (size_t target = 0; target < edges.size(); ++target)
      if (edges[target].is_valid() && graph.reaches(r, target)) result[r] = true;
  }
  return result;
}

/// Whether the leaf at the edge, or the node that adds to its .grad, has hooks.
bool has_hooks(const Edge& edge) {
  if (!edge.is_valid()) return false;
  autograd::Node& node = *edge.function;
  return !node.tensor_pre_hooks().empty() || !node.pre_hooks().empty() ||
         !node.post_hooks().empty() || node.tensor_post_acc_grad_hooks() != nullptr;
}

/// The engine comes first to what was made last: a node before each edge brings them in order.
void put_in_order(autograd::edge_list& edges, std::span<const size_t> order) {
  for (size_t i = order.size(); i-- > 0;) {
    Edge& edge = edges[order[i]];
    if (!edge.is_valid()) continue;
    const autograd::InputMetadata& metadata = edge.function->input_metadata(edge.input_nr);
    const auto before = make_node<ResultBackward>("LeafBackward", edge);
    const uint32_t number = before->add_input_metadata(
        metadata.options(), metadata.shape_as_dim_vector(), metadata.is_tensor_subclass(),
        metadata.is_nested_tensor(), metadata.grad_dtype());
    edge = Edge(before, number);
  }
}

Edge edge_of(const Slot& slot) {
  if (!slot.is_tensor()) return {};
  const at::Tensor tensor = tensor_of(slot);
  return tensor.requires_grad() ? autograd::impl::gradient_edge(tensor) : Edge();
}

/// Where the gradients of the differentiable inputs and cells go.
autograd::edge_list edges_of(const GradientGraph& graph, std::span<const Slot> inputs,
                             std::span<const std::string> cell_names, std::span<const Slot> cells) {
  autograd::edge_list edges;
  for (size_t input : graph.inputs()) edges.push_back(edge_of(inputs[input]));
  for (const std::string& name : graph.cells()) {
    const auto found = std::find(cell_names.begin(), cell_names.end(), name);
    const auto index = static_cast<size_t>(found - cell_names.begin());
    edges.push_back(found == cell_names.end() ? Edge() : edge_of(cells[index]));
  }
  for (size_t i = 0; i < edges.size(); ++i)
    if (!is_reached(graph, i)) edges[i] = Edge();
  return edges;
}

/// Whether the tensor is one that the run was given, as a gradient may be the seed itself.
bool is_given(const at::Tensor& tensor, std::span<const Slot> inputs) {
  return std::ranges::any_of(inputs, [&](const Slot& input) {
    return input.is_tensor() && tensor_of(input).is_same(tensor);
  });
}

/// The node that adds to a leaf's gradient; null if the edge leads elsewhere.
const autograd::AccumulateGrad* accumulator_at(const Edge& edge) {
  return dynamic_cast<const autograd::AccumulateGrad*>(edge.function.get());
}

/// Whether somebody waits there for gradients that are complete, as DistributedDataParallel does.
bool is_waited_for(const Edge& edge) {
  const auto* const accumulator = accumulator_at(edge);
  return accumulator != nullptr && !accumulator->post_hooks().empty();
}

/// The buckets in which the wrapper that Python is calling sends gradients; empty: there is none,
/// or it does not say.
passes::BucketNumbers numbers_of_buckets(const autograd::edge_list& edges) {
  c10d::Reducer* reducer = nullptr;
  try {
    reducer = reducer_of_call();
  } catch (const python::ErrorSet&) {
    PyErr_Clear();
  }
  if (reducer == nullptr) return {};
  const auto numbers = bucket_numbers(*reducer);
  passes::BucketNumbers result(edges.size());
  for (size_t i = 0; i < edges.size(); ++i) {
    const autograd::AccumulateGrad* const accumulator = accumulator_at(edges[i]);
    if (accumulator == nullptr) continue;
    const auto found = numbers.find(accumulator->variable.unsafeGetTensorImpl());
    if (found != numbers.end()) result[i] = found->second;
  }
  if (std::ranges::none_of(result, [](const auto& number) { return number.has_value(); }))
    return {};
  return result;
}

/// Whether the backward run is given in parts to those who wait for gradients.
bool divide(const BackwardWays& ways, const autograd::edge_list& edges) {
  if (ways.apart || ways.order.empty() || options().is_disabled(kBucketedBackwardSwitch.name))
    return false;
  const bool is_wanted = std::ranges::any_of(edges, is_waited_for) && trains_with_others();
  if (forced_part_bytes == 0 && !is_wanted) return false;
  std::vector<bool> leaves;
  for (const Edge& edge : edges) leaves.push_back(accumulator_at(edge) != nullptr);
  // Python is asked before: whoever waits for the division may hold its lock.
  const auto numbers =
      ways.whole->is_divided() ? passes::BucketNumbers() : numbers_of_buckets(edges);
  ways.whole->divide(ways.order, leaves, numbers);
  return !ways.whole->parts().empty();
}

/// A node for each part but the first, of which the one before leads to the next. Of `edges` it
/// leaves those of the first part and the one to the second.
std::vector<NodePointer<BucketBackward>> make_chain(const BackwardWays& ways, bool hooked,
                                                    autograd::edge_list& edges) {
  const auto& parts = ways.whole->parts();
  std::vector<NodePointer<BucketBackward>> chain;
  const auto edges_of_part = [&](size_t part) {
    autograd::edge_list own;
    for (const size_t target : parts[part].targets) own.push_back(edges[target]);
    if (hooked) {  // made behind the later parts, so that the engine comes here first
      std::vector<size_t> as_they_are(own.size());
      std::iota(as_they_are.begin(), as_they_are.end(), size_t{0});
      put_in_order(own, as_they_are);
    }
    if (!chain.empty()) own.emplace_back(chain.back(), 0);
    return own;
  };
  for (size_t part = parts.size() - 1; part > 0; --part)
    chain.push_back(make_node<BucketBackward>(ways.whole, part, edges_of_part(part)));
  edges = edges_of_part(0);
  return chain;
}

}  // namespace

void attach_node(const BackwardWays& ways, std::span<const Slot> inputs,
                 std::span<const std::string> cell_names, std::span<const Slot> cells,
                 std::span<Slot> results, const std::shared_ptr<execute::Findings>& findings,
                 const IfItDepends& if_it_depends) {
  autograd::edge_list edges = edges_of(*ways.whole, inputs, cell_names, cells);
  // Hooks may do anything: they are called in eager's order.
  const bool hooked = std::ranges::any_of(edges, has_hooks);
  const std::vector<bool> is_due = requires_gradient(*ways.whole, edges, if_it_depends);
  std::vector<bool> wanted;
  for (const Edge& edge : edges) wanted.push_back(edge.is_valid());
  std::vector<NodePointer<BucketBackward>> chain;
  if (divide(ways, edges))
    chain = make_chain(ways, hooked, edges);
  else if (hooked)
    put_in_order(edges, ways.order);
  if (ways.apart) {
    for (const size_t cut : ways.apart->cuts()) {
      edges.push_back(edge_of(results[cut]));
      wanted.push_back(edges.back().is_valid());
    }
  }
  const auto node =
      make_node<GraphBackward>(ways, std::move(wanted), std::move(edges), std::move(chain));
  const auto& differentiable = ways.whole->results();
  for (size_t r = 0; r < differentiable.size(); ++r) {
    const GradientGraph::Result& result = differentiable[r];
    at::Tensor tensor = tensor_of(results[result.index]);
    const uint32_t number = node->add_input_metadata(tensor);
    if (!is_due[r]) continue;
    if (!if_it_depends.empty() && (is_given(tensor, inputs) || is_given(tensor, cells))) {
      if (if_it_depends[r]) continue;  // eager gives the seed, too
      tensor = tensor.detach();
      results[result.index] = slot_of(tensor);
    }
    Edge edge(node, number);
    // Of several each has its own, also for hooks: those of a result that backward() does not come
    // to are not called.
    if (differentiable.size() > 1) {
      const auto named = make_node<ResultBackward>(result.grad_fn_name, std::move(edge));
      node->name_result(number, named);
      edge = Edge(named, named->add_input_metadata(tensor));
    }
    autograd::impl::set_gradient_edge(tensor, std::move(edge));
  }
  node->keep(inputs, cell_names, cells, results, findings);
}

}  // namespace janus::torch
