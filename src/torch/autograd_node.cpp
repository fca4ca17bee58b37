// The C++ autograd node behind the results of a converted function: it keeps what the backward
// graph needs and runs it when backward() reaches it.
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "execute/container.h"
#include "graph/rewriter.h"
#include "torch/gradient_graph.h"
#include "torch/parts.h"
#include "torch/random_state.h"
#include "torch/tensor.h"

namespace janus::torch {

namespace autograd = ::torch::autograd;
using autograd::Edge;
using autograd::variable_list;
using execute::Slot;

namespace {

/// A value kept from the forward run: a tensor that autograd checks for changes, a number, or a
/// frame of such values.
class Kept {
 public:
  /// `is_checked`: autograd raises if it is changed before it is used.
  Kept(const Slot& slot, bool is_output, bool is_checked = true) {
    if (slot.is_tensor() && is_checked) {
      tensor_ = autograd::SavedVariable(tensor_of(slot), is_output);
      is_tensor_ = true;
    } else {
      plain_ = slot;
    }
  }

  Slot get(const c10::intrusive_ptr<autograd::Node>& saved_for) const {
    TORCH_CHECK(!is_released_, autograd::ERR_BACKWARD_TWICE);
    return is_tensor_ ? slot_of(tensor_.unpack(saved_for)) : plain_;
  }
  /// Whether it takes Python's lock to copy or to drop it.
  bool is_pythons() const {
    return plain_.kind() == Slot::Kind::object || plain_.kind() == Slot::Kind::container;
  }
  void release() {
    if (is_tensor_) tensor_.reset_data();
    is_released_ = plain_.kind() == Slot::Kind::container || plain_.is_tensor();
    if (is_released_) plain_.clear();
  }

 private:
  autograd::SavedVariable tensor_;
  Slot plain_;
  bool is_tensor_ = false, is_released_ = false;
};

void attach_node(const std::shared_ptr<GradientGraph>& gradient_graph, std::span<const Slot> inputs,
                 std::span<const std::string> cell_names, std::span<const Slot> cells,
                 std::span<Slot> results);

class GraphBackward final : public autograd::Node {
 public:
  GraphBackward(std::shared_ptr<GradientGraph> gradient_graph, autograd::edge_list edges)
      : Node(std::move(edges)), gradient_graph_(std::move(gradient_graph)) {}

  /// The engine, which has not got Python's lock, may be the last to refer to it.
  ~GraphBackward() override {
    const auto lock = lock_python();
    for (auto* all : {&saved_, &unrepeatable_, &inputs_, &cells_}) all->clear();
  }

  std::string name() const override { return gradient_graph_->results().front().grad_fn_name; }

  /// Keeps what backward needs. The results have this node as their grad_fn by now.
  void keep(std::span<const Slot> inputs, std::span<const std::string> cell_names,
            std::span<const Slot> cells, std::span<const Slot> results) {
    const auto& differentiable = gradient_graph_->results();
    for (size_t index : gradient_graph_->saved_results()) {
      const bool is_output = std::any_of(differentiable.begin(), differentiable.end(),
                                         [&](const auto& result) { return result.index == index; });
      saved_.emplace_back(results[index], is_output);
    }
    for (const size_t index : gradient_graph_->unrepeatable_results())
      unrepeatable_.emplace_back(results[index], false);
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs_.emplace_back(inputs[i], false, !gradient_graph_->is_written(i));
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].is_empty()) continue;
      cell_names_.push_back(cell_names[i]);
      cells_.emplace_back(cells[i], false);
    }
  }

  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard lock(mutex_);
    const auto python = lock_python();
    const std::vector<bool> given = complete(gradients);
    variable_list made =
        c10::GradMode::is_enabled() ? apply_differentiably(gradients) : run_backward(gradients);
    // What only results without a gradient lead to has none, as in eager.
    for (size_t i = 0; i < made.size(); ++i) {
      bool is_reached = false;
      for (size_t r = 0; r < given.size(); ++r)
        is_reached |= given[r] && gradient_graph_->reaches(r, i);
      if (!is_reached) made[i] = at::Tensor();
    }
    return made;
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    const auto python = lock_python();
    for (auto* all : {&saved_, &unrepeatable_, &inputs_, &cells_}) {
      for (Kept& kept : *all) kept.release();
    }
  }

 private:
  /// Puts zeros where a result has no gradient; gives which have one.
  std::vector<bool> complete(variable_list& gradients) const {
    std::vector<bool> given;
    for (size_t i = 0; i < gradients.size(); ++i) {
      given.push_back(gradients[i].defined());
      if (!given.back()) gradients[i] = input_metadata(i).zeros_like();
    }
    return given;
  }

  /// Holds Python's lock where objects of Python's are kept.
  std::unique_ptr<WithGil> lock_python() const {
    const auto is_pythons = [](const std::vector<Kept>& all) {
      return std::any_of(all.begin(), all.end(),
                         [](const Kept& kept) { return kept.is_pythons(); });
    };
    std::unique_ptr<WithGil> lock;
    if ((is_pythons(inputs_) || is_pythons(saved_) || is_pythons(unrepeatable_)) &&
        Py_IsInitialized() != 0)
      lock = std::make_unique<WithGil>();
    return lock;
  }

  std::vector<Slot> unpacked(const std::vector<Kept>& all) {
    std::vector<Slot> slots;
    for (const Kept& kept : all) slots.push_back(kept.get(getptr()));
    return slots;
  }

  static void add(std::vector<Slot>& slots, const variable_list& gradients) {
    for (const at::Tensor& gradient : gradients) slots.push_back(slot_of(in_memory(gradient)));
  }

  static void run(execute::Program& program, std::span<const Slot> inputs,
                  std::span<const Slot> cells, std::span<Slot> results) {
    if (const auto failure = program.run(inputs, cells, results, {})) {
      TORCH_CHECK(false, failure->message.empty() ? "backward failed" : failure->message);
    }
  }

  variable_list taken(std::span<Slot> results) const {
    variable_list tensors;
    for (size_t i = 0; i < num_outputs(); ++i) {
      tensors.push_back(next_edge(i).is_valid() ? tensor_of(results[i]) : at::Tensor());
    }
    return tensors;
  }

  variable_list run_backward(const variable_list& gradients) {
    std::vector<Slot> inputs = unpacked(saved_);
    add(inputs, gradients);
    execute::Program& program = gradient_graph_->backward();
    std::vector<Slot> results(program.graph().results().size());
    run(program, inputs, {}, results);
    return taken(results);
  }

  /// create_graph: computes everything again from the inputs, as a function of them and of the
  /// incoming gradients that has an autograd node of its own.
  variable_list apply_differentiably(const variable_list& gradients) {
    unpacked(saved_);  // raises what eager raises if they were changed or freed
    std::vector<Slot> inputs = unpacked(inputs_);
    const std::vector<Slot> unrepeatable = unpacked(unrepeatable_);
    inputs.insert(inputs.end(), unrepeatable.begin(), unrepeatable.end());
    add(inputs, gradients);
    const std::shared_ptr<GradientGraph> again(gradient_graph_, &gradient_graph_->recomputed());
    execute::Program& program = again->program();
    std::vector<Slot> cells;
    for (const std::string& name : program.cells()) {
      const auto found = std::find(cell_names_.begin(), cell_names_.end(), name);
      TORCHJANUS_CHECK(found != cell_names_.end(), "backward: cell ", name, " was not kept");
      cells.push_back(cells_[static_cast<size_t>(found - cell_names_.begin())].get(getptr()));
    }
    std::vector<Slot> results(again->result_count());
    run(program, inputs, cells, results);
    attach_node(again, inputs, program.cells(), cells, results);
    return taken(results);
  }

  std::shared_ptr<GradientGraph> gradient_graph_;
  std::mutex mutex_;
  std::vector<Kept> saved_, unrepeatable_, inputs_, cells_;
  std::vector<std::string> cell_names_;
};

/// Gives one of several results the name of its own grad_fn: passes the gradient on.
class ResultBackward final : public autograd::Node {
 public:
  ResultBackward(std::string name, Edge next)
      : Node(autograd::edge_list{std::move(next)}), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  variable_list apply(variable_list&& gradients) override { return std::move(gradients); }

 private:
  std::string name_;
};

/// The grad_fn of a result whose backward has run, inside the graph, and freed what it needs.
class ConsumedBackward final : public autograd::Node {
 public:
  explicit ConsumedBackward(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  variable_list apply(variable_list&&) override {
    TORCH_CHECK(false, autograd::ERR_BACKWARD_TWICE);
  }

 private:
  std::string name_;
};

Edge edge_of(const Slot& slot) {
  if (!slot.is_tensor()) return {};
  const at::Tensor tensor = tensor_of(slot);
  return tensor.requires_grad() ? autograd::impl::gradient_edge(tensor) : Edge();
}

void attach_node(const std::shared_ptr<GradientGraph>& gradient_graph, std::span<const Slot> inputs,
                 std::span<const std::string> cell_names, std::span<const Slot> cells,
                 std::span<Slot> results) {
  autograd::edge_list edges;
  for (size_t input : gradient_graph->inputs()) edges.push_back(edge_of(inputs[input]));
  for (const std::string& name : gradient_graph->cells()) {
    const auto found = std::find(cell_names.begin(), cell_names.end(), name);
    const auto index = static_cast<size_t>(found - cell_names.begin());
    edges.push_back(found == cell_names.end() ? Edge() : edge_of(cells[index]));
  }
  const auto node = c10::make_intrusive<GraphBackward>(gradient_graph, std::move(edges));
  const auto& differentiable = gradient_graph->results();
  const bool one_name = std::all_of(
      differentiable.begin(), differentiable.end(),
      [&](const auto& r) { return r.grad_fn_name == differentiable.front().grad_fn_name; });
  for (const GradientGraph::Result& result : differentiable) {
    at::Tensor tensor = tensor_of(results[result.index]);
    Edge edge(node, node->add_input_metadata(tensor));
    if (!one_name) {
      const auto named = c10::make_intrusive<ResultBackward>(result.grad_fn_name, std::move(edge));
      edge = Edge(named, named->add_input_metadata(tensor));
    }
    autograd::impl::set_gradient_edge(tensor, std::move(edge));
  }
  node->keep(inputs, cell_names, cells, results);
}

/// Gives results a grad_fn whose backward has run. Nodes of results that are gone are taken again.
class Consumed {
 public:
  explicit Consumed(GradientGraph::Result result) : result_(std::move(result)) {}

  void mark(std::span<const Slot> results) {
    if (!result_.name_numbers) return mark(results[result_.index], result_.grad_fn_name);
    Slot numbers = results[*result_.name_numbers];
    for (Slot rest = results[result_.index]; execute::list_size(rest) > 0;
         rest = execute::without_last(rest), numbers = execute::without_last(numbers))
      mark(execute::last_item(rest),
           result_.names[static_cast<size_t>(execute::last_item(numbers).i64())]);
  }

 private:
  using NodePointer = c10::intrusive_ptr<ConsumedBackward>;

  void mark(const Slot& slot, const std::string& name) {
    if (!slot.is_tensor()) {
      for (Slot rest = slot; execute::list_size(rest) > 0; rest = execute::without_last(rest))
        mark(execute::last_item(rest), name);
      return;
    }
    const at::Tensor tensor = tensor_of(slot);
    autograd::impl::set_gradient_edge(tensor, Edge(node_for(tensor, name), 0));
  }

  NodePointer node_for(const at::Tensor& tensor, const std::string& name) {
    NodePointer& oldest = spare_[next_++ % spare_.size()];
    if (is_free(oldest) && fits(*oldest, tensor) && oldest->name() == name) return oldest;
    oldest = c10::make_intrusive<ConsumedBackward>(name);
    oldest->add_input_metadata(tensor);
    return oldest;
  }

  /// Whether nobody else has it, nor left anything on it.
  static bool is_free(const NodePointer& node) {
    return node && node.use_count() == 1 && node->pyobj_slot()->load_pyobj() == nullptr &&
           node->pre_hooks().empty() && node->post_hooks().empty() &&
           node->tensor_pre_hooks().empty() && node->retains_grad_hooks().empty();
  }

  static bool fits(const ConsumedBackward& node, const at::Tensor& tensor) {
    const autograd::InputMetadata& metadata = node.input_metadata(0);
    return metadata.is_same_shape(tensor) && metadata.dtype() == tensor.dtype();
  }

  GradientGraph::Result result_;
  std::array<NodePointer, 3> spare_;  // the last result is alive while the next one is made
  size_t next_ = 0;
};

class GraphDifferentiable final : public speculate::Differentiable {
 public:
  /// `plain`: the graph itself where no result can be differentiated any more.
  GraphDifferentiable(std::shared_ptr<GradientGraph> gradient_graph,
                      std::optional<graph::Graph> plain,
                      const std::vector<GradientGraph::Result>& consumed)
      : gradient_graph_(std::move(gradient_graph)),
        plain_(std::move(plain)),
        plain_results_(plain_ ? plain_->results().size() : 0),
        consumed_(consumed.begin(), consumed.end()) {}

  graph::Graph take_forward() override {
    return gradient_graph_ ? gradient_graph_->take_forward() : std::move(*plain_);
  }
  size_t result_count() const override {
    return gradient_graph_ ? gradient_graph_->result_count() : plain_results_;
  }
  void attach(std::span<const Slot> inputs, std::span<const std::string> cell_names,
              std::span<const Slot> cells, std::span<Slot> results) override {
    for (Consumed& each : consumed_) each.mark(results);
    if (gradient_graph_) attach_node(gradient_graph_, inputs, cell_names, cells, results);
  }

 private:
  std::shared_ptr<GradientGraph> gradient_graph_;
  std::optional<graph::Graph> plain_;
  size_t plain_results_;
  std::vector<Consumed> consumed_;
};

/// A copy of a graph, node by node.
graph::Graph copy_of(const graph::Graph& graph) {
  graph::Rewriter rewriter(graph);
  rewriter.run([](const graph::Node&) { return false; });
  return rewriter.finish();
}

/// Inputs that are the tensor of a cell too, which the graph writes.
std::set<size_t> written_inputs(const speculate::Generated& generated) {
  std::set<size_t> written;
  for (size_t i = 0; i < generated.inputs.size(); ++i)
    for (const auto& cell : generated.cells)
      if (cell.kind == speculate::CellBinding::Kind::tensor &&
          cell.source == generated.inputs[i].source)
        written.insert(i);
  return written;
}

class GraphDifferentiation final : public speculate::Differentiation {
 public:
  std::unique_ptr<speculate::Differentiable> prepare(
      const speculate::Generated& generated) override {
    std::vector<GradientGraph::Result> live, consumed;
    for (const auto& result : generated.differentiable_results) {
      (result.consumed ? consumed : live)
          .push_back({result.result, result.grad_fn_name, result.name_numbers, result.names});
    }
    if (live.empty()) {
      return std::make_unique<GraphDifferentiable>(nullptr, copy_of(generated.graph), consumed);
    }
    auto gradient_graph = std::make_shared<GradientGraph>(
        copy_of(generated.graph), std::move(live), generated.differentiable_inputs,
        generated.differentiable_cells, written_inputs(generated));
    return std::make_unique<GraphDifferentiable>(std::move(gradient_graph), std::nullopt, consumed);
  }
};

}  // namespace

speculate::Differentiation& differentiation() {
  static GraphDifferentiation instance;
  return instance;
}

}  // namespace janus::torch
