// The C++ autograd node behind the results of a converted function: it keeps what the backward
// graph needs and runs it when backward() reaches it.
#include <ATen/LegacyBatchedTensorImpl.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <ranges>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/options.h"
#include "base/policy.h"
#include "execute/library/findings.h"
#include "execute/values/container.h"
#include "passes/gradient/reachable.h"
#include "passes/lowering/decompose.h"
#include "passes/reach/gradient_edges.h"
#include "passes/reach/reachability.h"
#include "passes/structure/copied.h"
#include "python/lock.h"
#include "speculate/object_heap.h"
#include "torch/divided_backward.h"
#include "torch/gradient_graph.h"
#include "torch/interception_keys.h"
#include "torch/kept.h"
#include "torch/leaf_order.h"
#include "torch/parts.h"
#include "torch/process_group.h"
#include "torch/random_state.h"
#include "torch/reducer.h"
#include "torch/tensor.h"
#include "torch/version.h"

namespace janus::torch {

namespace autograd = ::torch::autograd;
using autograd::Edge;
using autograd::variable_list;
using execute::Slot;

namespace {

/// How the gradient of some results is computed: through all that the run computed, up to what it
/// was given; or, where other results lie on the way, only up to those, which hand it on. The
/// latter only where somebody looks at the gradient of one of them, or another gradient comes to
/// it, as what both ways need of the run would be computed twice.
struct Ways {
  std::shared_ptr<GradientGraph> whole;
  std::shared_ptr<GradientGraph> apart;  ///< null: no result lies on the way
  /// In which eager would come to the differentiable inputs and cells, by index.
  std::vector<size_t> order = {};
};

void attach_node(const Ways& ways, std::span<const Slot> inputs,
                 std::span<const std::string> cell_names, std::span<const Slot> cells,
                 std::span<Slot> results, const std::shared_ptr<execute::Findings>& findings);

/// Whether anybody asks for the gradient that comes to a result: by hooks, or autograd.grad.
bool is_looked_at(const Edge& result) {
  autograd::Node& node = *result.function;
  if (!node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty() ||
      !node.pre_hooks().empty() || !node.post_hooks().empty())
    return true;
  const auto* tasks = autograd::get_current_graph_task_exec_info();
  if (tasks == nullptr) return false;
  const auto found = tasks->find(&node);
  return found != tasks->end() && found->second.captures_ != nullptr;
}

/// Whether the backward() at hand goes there: it may be for some inputs only.
bool is_on_the_way(const Edge& edge) {
  const auto* tasks = autograd::get_current_graph_task_exec_info();
  if (tasks == nullptr || tasks->empty()) return true;
  const auto found = tasks->find(edge.function.get());
  return found != tasks->end() && found->second.should_execute();
}

/// The grad_fn of gradients that can't be differentiated.
class SecondBackward final : public autograd::Node {
 public:
  explicit SecondBackward(autograd::edge_list edges) : Node(std::move(edges)) {}
  std::string name() const override { return "SecondBackward"; }
  variable_list apply(variable_list&&) override {
    TORCH_CHECK(false, "torchjanus: an operator has no second gradient");
  }
};

/// The same memory; a node that keeps its result so does not keep itself.
Slot without_grad_fn(const Slot& slot) {
  return slot.is_tensor() ? slot_of(tensor_of(slot).detach()) : slot;
}

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

class GraphBackward final : public autograd::Node {
 public:
  /// `wanted`: which targets have an edge, its own or one of the chain's.
  GraphBackward(const Ways& ways, std::vector<bool> wanted, autograd::edge_list edges,
                std::vector<NodePointer<BucketBackward>> chain)
      : Node(std::move(edges)),
        whole_(ways.whole),
        apart_(ways.apart),
        wanted_(std::move(wanted)),
        is_divided_(!chain.empty()),
        chain_(std::move(chain)) {}

  /// The engine, which has not got Python's lock, may be the last to refer to it.
  ~GraphBackward() override {
    const auto lock = lock_python();
    for (auto* all : kept()) all->clear();
    whole_.unchecked.clear();
    apart_.unchecked.clear();
    findings_.reset();
  }

  std::string name() const override { return whole_.graph->results().front().grad_fn_name; }

  /// Result number `index` has that node for its grad_fn, which leads here.
  void name_result(size_t index, const NodePointer<autograd::Node>& named) {
    named_.insert_or_assign(index, WeakNodePointer<autograd::Node>(named));
  }

  /// Keeps what backward needs. The results have this node as their grad_fn by now.
  void keep(std::span<const Slot> inputs, std::span<const std::string> cell_names,
            std::span<const Slot> cells, std::span<const Slot> results,
            const std::shared_ptr<execute::Findings>& findings) {
    whole_.keep(results);
    if (apart_.graph) apart_.keep(results);
    for (const auto& part : chain_) part->keep(whole_.saved);
    chain_.clear();  // the edges refer to it
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs_.emplace_back(inputs[i], false, !whole_.graph->is_written(i));
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].is_empty()) continue;
      cell_names_.push_back(cell_names[i]);
      cells_.emplace_back(cells[i], false);
    }
    if (!whole_.graph->needs_findings()) return;
    findings_ = findings;
    for (const auto& read : findings->reads())
      if (read.value.is_tensor()) read_.emplace_back(read.value, false);
  }

  /// The engine comes here without any gradient where that went through the whole run by way of
  /// another result's node, which leads here too.
  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard lock(mutex_);
    run_for_ = std::exchange(gone_through_, {});
    if (std::ranges::none_of(gradients, &at::Tensor::defined)) {
      go_through(run_for_);
      return variable_list(num_outputs());
    }
    const auto python = lock_python();
    const OrdinaryExecution execution;  // gradients may be pending, and the run's operators may not
    const std::vector<bool> given = complete(gradients);
    check_not_freed(given);
    const Way& way = goes_apart() ? apart_ : whole_;
    note_run(given, &way == &whole_);
    check_kept(way, given);
    if (is_divided_) return apply_first_part(gradients, given);
    variable_list made = apply_whole(way, gradients, given);
    const std::vector<bool> is_reached = reached_from(way, given);
    for (size_t i = 0; i < made.size(); ++i)
      if (!is_reached[i]) made[i] = at::Tensor();
    return made;
  }

  /// Eager frees what the results at hand need, and others may go their own ways still.
  void release_variables() override {
    const std::lock_guard lock(mutex_);
    if (run_for_.empty()) return;
    for (size_t r = 0; r < run_for_.size(); ++r)
      if (run_for_[r]) freed_.insert(r);
    const auto is_still_due = [&](size_t r) { return !is_freed(r) && !freed_.contains(r); };
    if (std::ranges::any_of(std::views::iota(size_t{0}, run_for_.size()), is_still_due)) return;
    const auto python = lock_python();
    for (auto* all : kept()) {
      for (Kept& each : *all) each.release();
    }
    whole_.unchecked.clear();
    apart_.unchecked.clear();
    findings_.reset();
    is_released_ = true;
  }

 private:
  /// One of the ways, and what of the forward run it needs.
  struct Way {
    explicit Way(std::shared_ptr<GradientGraph> from) : graph(std::move(from)) {}

    void keep(std::span<const Slot> results) {
      const auto& differentiable = graph->results();
      for (const size_t index : graph->saved_results()) {
        const auto own = std::ranges::find(differentiable, index, &GradientGraph::Result::index);
        const bool is_output = own != differentiable.end();
        saved.emplace_back(results[index], is_output);
        saved_numbers.push_back(static_cast<size_t>(own - differentiable.begin()));
        if (differentiable.size() > 1)
          unchecked.push_back(is_output ? without_grad_fn(results[index]) : results[index]);
      }
      for (const size_t index : graph->unrepeatable_results())
        given.emplace_back(results[index], false);
      for (const size_t index : graph->cuts()) given.emplace_back(results[index], false);
      for (const size_t own : graph->kept_results())
        results_kept.emplace_back(results[differentiable[own].index], true);
      for (const auto& [number, flag] : graph->checked_results()) {
        if (flag && !results[*flag].boolean()) continue;
        checked_numbers.push_back(number);
        checked.emplace_back(results[differentiable[number].index], true);
      }
    }

    std::shared_ptr<GradientGraph> graph;
    std::vector<Kept> saved;
    std::vector<size_t> saved_numbers;  ///< as which of the node's results they are kept
    std::vector<Slot> unchecked;     ///< the saved values, where several results may be given alone
    std::vector<Kept> given;         ///< what can't be computed again, then the cuts
    std::vector<Kept> results_kept;  ///< those of the node itself
    std::vector<Kept> checked;       ///< those that eager keeps
    std::vector<size_t> checked_numbers;
  };

  std::array<std::vector<Kept>*, 11> kept() {
    return {
        &whole_.saved, &whole_.given,        &whole_.results_kept, &whole_.checked, &apart_.saved,
        &apart_.given, &apart_.results_kept, &apart_.checked,      &read_,          &inputs_,
        &cells_};
  }

  bool goes_apart() const {
    if (!apart_.graph) return false;
    return adds_up() || std::ranges::any_of(cuts(), [](const Edge& cut) {
             return cut.is_valid() && is_looked_at(cut);
           });
  }

  /// The edges to results that lie on the way.
  std::span<const Edge> cuts() const {
    return std::span(next_edges()).last(apart_.graph ? apart_.graph->cuts().size() : 0);
  }

  /// Whether the backward() at hand brings a gradient to a result on the way from elsewhere too, as
  /// from another such node that goes apart. Eager adds the two before it goes on from there: each
  /// by itself, an infinite slope would meet a gradient of 0.
  bool adds_up() const {
    const auto* const nodes = autograd::get_current_graph_task_nodes_in_graph();
    return nodes != nullptr && all_that_add_up(*nodes).contains(this);
  }

  using Nodes = std::unordered_set<const autograd::Node*>;

  /// Of the nodes of the backward() at hand; found out once for each backward() of a thread.
  static const Nodes& all_that_add_up(const std::unordered_set<autograd::Node*>& nodes) {
    thread_local std::pair<int, Nodes> latest{-1, {}};
    const int task = autograd::get_current_graph_task_id();
    if (latest.first != task) latest = {task, find_all_that_add_up(nodes)};
    return latest.second;
  }

  static Nodes find_all_that_add_up(const std::unordered_set<autograd::Node*>& nodes) {
    std::unordered_map<const autograd::Node*, std::vector<const GraphBackward*>> by_cut;
    Nodes due, found;
    std::vector<const autograd::Node*> pending;
    const auto reach = [&](const Edge& edge) {
      const autograd::Node* const to = edge.function.get();
      if (to != nullptr && due.insert(to).second) pending.push_back(to);
    };
    for (const autograd::Node* node : nodes) {
      const auto* const own = dynamic_cast<const GraphBackward*>(node);
      if (own == nullptr)
        std::ranges::for_each(node->next_edges(), reach);
      else
        for (const Edge& cut : own->cuts()) by_cut[cut.function.get()].push_back(own);
    }
    while (!pending.empty()) {
      const auto waiting = by_cut.find(pending.back());
      pending.pop_back();
      if (waiting == by_cut.end()) continue;
      for (const GraphBackward* node : waiting->second)
        if (found.insert(node).second) std::ranges::for_each(node->cuts(), reach);
    }
    return found;
  }

  variable_list apply_whole(const Way& way, const variable_list& gradients,
                            const std::vector<bool>& given) {
    if (const auto level = batch_level(gradients))
      return apply_batched(way, gradients, given, *level);
    if (!c10::GradMode::is_enabled()) return run_backward(way, gradients, given);
    GradientGraph* const recomputed = way.graph->recomputed(given);
    return recomputed != nullptr ? apply_differentiably(way, *recomputed, gradients, given)
                                 : apply_once(way, gradients, given);
  }

  /// Of batched gradients, as `torch.autograd.grad(is_grads_batched=True)` gives them.
  static std::optional<int64_t> batch_level(const variable_list& gradients) {
    for (const at::Tensor& each : gradients) {
      TORCH_CHECK(!each.key_set().has(c10::DispatchKey::FuncTorchBatched),
                  "torchjanus: torch.func can't differentiate a call that ran before");
      if (!at::isBatchedTensor(each)) continue;
      const at::BatchDimsRef dims = at::unsafeGetBatchedImpl(each)->bdims();
      TORCH_CHECK(dims.size() == 1, "torchjanus: gradients are batched within batches");
      return dims.front().level();
    }
    return std::nullopt;
  }

  /// One sample after the other.
  variable_list apply_batched(const Way& way, const variable_list& gradients,
                              const std::vector<bool>& given, int64_t level) {
    const auto sample = [](const at::Tensor& gradient, int64_t number) {
      const auto* batched = at::maybeGetBatchedImpl(gradient);
      if (batched == nullptr) return gradient;
      return batched->value().select(batched->bdims().front().dim(), number);
    };
    const auto* first = at::maybeGetBatchedImpl(*std::ranges::find_if(
        gradients, [](const auto& each) { return at::isBatchedTensor(each); }));
    const int64_t count = first->value().size(first->bdims().front().dim());
    std::vector<std::vector<at::Tensor>> by_target(wanted_.size());
    for (int64_t number = 0; number < count; ++number) {
      variable_list own;
      for (const at::Tensor& gradient : gradients) own.push_back(sample(gradient, number));
      const variable_list made = apply_whole(way, own, given);
      for (size_t i = 0; i < made.size(); ++i)
        if (made[i].defined()) by_target[i].push_back(made[i]);
    }
    variable_list stacked(by_target.size());
    for (size_t i = 0; i < stacked.size(); ++i)
      if (!by_target[i].empty())
        stacked[i] = at::makeBatched(at::stack(by_target[i]), {at::BatchDim(level, 0)});
    return stacked;
  }

  /// Whether backward() has run through anything that the gradient of the result needs, too.
  bool is_freed(size_t result) const {
    return std::ranges::any_of(
        freed_, [&](size_t other) { return whole_.graph->shares_saved(result, other); });
  }

  /// For release_variables.
  void note_run(const std::vector<bool>& given, bool is_whole) {
    if (!is_all_asked_for(given)) return run_for_.clear();
    if (is_whole) go_through(given);
    run_for_.resize(given.size());
    for (size_t r = 0; r < given.size(); ++r)
      if (given[r]) run_for_[r] = true;
  }

  /// The whole run goes through those of the nodes in front, to which no gradient comes then.
  void go_through(const std::vector<bool>& given) {
    const std::span<const Edge> edges = cuts();
    if (given.empty() || edges.empty()) return;
    const std::vector<bool> is_reached = reached_from(apart_, given);
    for (size_t i = 0; i < edges.size(); ++i) {
      if (!edges[i].is_valid() || !is_reached[is_reached.size() - edges.size() + i]) continue;
      const bool is_named = dynamic_cast<ResultBackward*>(edges[i].function.get()) != nullptr;
      const Edge& result = is_named ? edges[i].function->next_edge(0) : edges[i];
      if (auto* front = dynamic_cast<GraphBackward*>(result.function.get()))
        front->be_gone_through(result.input_nr);
    }
  }

  void be_gone_through(size_t result) {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!is_freed(result), autograd::ERR_BACKWARD_TWICE);
    gone_through_.resize(whole_.graph->results().size());
    gone_through_[result] = true;
  }

  /// Whether the backward() at hand goes to all targets that these results lead to.
  bool is_all_asked_for(const std::vector<bool>& given) const {
    const std::vector<bool> is_reached = reached_from(whole_, given);
    for (size_t i = 0; i < num_outputs(); ++i)
      if (next_edge(i).is_valid() && (is_divided_ || is_reached[i]) && !is_on_the_way(next_edge(i)))
        return false;
    return true;
  }

  void check_not_freed(const std::vector<bool>& given) const {
    for (size_t r = 0; r < given.size(); ++r)
      TORCH_CHECK(!given[r] || !is_freed(r), autograd::ERR_BACKWARD_TWICE);
  }

  /// Raises if a result was changed that eager's gradient keeps.
  void check_kept(const Way& way, const std::vector<bool>& given) {
    for (size_t i = 0; i < way.checked.size(); ++i)
      if (given[way.checked_numbers[i]]) way.checked[i].get(node_of(way.checked_numbers[i]));
  }

  /// With create_graph, and of batched gradients, everything is computed here, and the other nodes
  /// hand it out.
  variable_list apply_first_part(const variable_list& gradients, const std::vector<bool>& given) {
    GradientGraph& graph = *whole_.graph;
    auto handed = std::make_unique<HandedOn>();
    handed->is_reached = reached_from(whole_, given);
    handed->is_complete = c10::GradMode::is_enabled() || batch_level(gradients).has_value();
    if (handed->is_complete) {
      handed->gradients = apply_whole(whole_, gradients, given);
    } else {
      handed->gradients.resize(wanted_.size());
      handed->values.resize(whole_.saved.size());
      add(handed->values, gradients);
      handed->values.resize(graph.value_count());
      run_part(graph, 0, kept_for(graph, 0, whole_.saved), getptr(), *handed);
    }
    return take_gradients(std::move(handed), graph.parts().front().targets, *this);
  }

  /// By target. What only results without a gradient lead to has none, as in eager.
  std::vector<bool> reached_from(const Way& way, const std::vector<bool>& given) const {
    std::vector<bool> is_reached(wanted_.size());
    for (size_t target = 0; target < target_count(way); ++target)
      for (size_t r = 0; r < given.size(); ++r)
        if (given[r] && way.graph->reaches(r, target)) is_reached[target] = true;
    return is_reached;
  }

  static size_t target_count(const Way& way) {
    return way.graph->inputs().size() + way.graph->cells().size() + way.graph->cuts().size();
  }

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
  std::unique_ptr<python::WithLock> lock_python() {
    const auto all = kept();
    const bool holds_pythons =
        findings_ || std::any_of(all.begin(), all.end() - 1,
                                 [](const auto* each) { return are_pythons(*each); });
    std::unique_ptr<python::WithLock> lock;
    if (holds_pythons && Py_IsInitialized() != 0) lock = std::make_unique<python::WithLock>();
    return lock;
  }

  /// The grad_fn that the program's result has, by which messages name it.
  NodePointer<autograd::Node> node_of(size_t result) {
    const auto found = named_.find(result);
    const auto named = found == named_.end() ? nullptr : found->second.lock();
    return named ? named : getptr();
  }

  std::vector<Slot> unpacked(const std::vector<Kept>& all) {
    std::vector<Slot> slots;
    for (const Kept& each : all) slots.push_back(each.get(getptr()));
    return slots;
  }

  /// What is not used may have been changed, as in eager: only gradients need it that do not come.
  std::vector<Slot> unpacked(const Way& way, const std::vector<bool>& uses) {
    std::vector<Slot> slots;
    for (size_t i = 0; i < way.saved.size(); ++i) {
      if (uses[i] || (way.unchecked.empty() && !is_released_))
        slots.push_back(way.saved[i].get(node_of(way.saved_numbers[i])));
      else
        slots.push_back(is_released_ ? Slot() : way.unchecked[i]);
    }
    return slots;
  }

  /// The node's own results, with the grad_fn that the program's have.
  void add_results(const Way& way, std::vector<Slot>& slots) {
    for (size_t i = 0; i < way.results_kept.size(); ++i) {
      const size_t number = way.graph->kept_results()[i];
      const auto named = node_of(number);
      at::Tensor result = tensor_of(way.results_kept[i].get(getptr())).detach();
      autograd::impl::set_gradient_edge(result, Edge(named, named == getptr() ? number : 0));
      slots.push_back(slot_of(result));
    }
  }

  static void add(std::vector<Slot>& slots, const variable_list& gradients) {
    for (const at::Tensor& gradient : gradients) slots.push_back(slot_of(in_memory(gradient)));
  }

  static void run(execute::Program& program, std::span<const Slot> inputs,
                  std::span<const Slot> cells, std::span<Slot> results,
                  execute::Findings* findings = nullptr) {
    if (const auto failure =
            program.run(inputs, cells, results, {}, policy::kDeepestCall, findings)) {
      TORCH_CHECK(false, failure->message.empty() ? "backward failed" : failure->message);
    }
  }

  /// One for each target; the way through the whole run gives none for the cuts.
  variable_list taken(const Way& way, std::span<Slot> results) const {
    variable_list tensors(wanted_.size());
    for (size_t i = 0; i < target_count(way); ++i)
      if (wanted_[i]) tensors[i] = tensor_of(results[i]);
    return tensors;
  }

  variable_list run_backward(const Way& way, const variable_list& gradients,
                             const std::vector<bool>& given) {
    const GradientGraph::Backward& backward = way.graph->backward(given);
    execute::Program& program = *backward.program;
    std::vector<Slot> inputs = unpacked(way, backward.uses);
    add(inputs, gradients);
    if (backward.is_told)
      for (const bool comes : given) inputs.push_back(slot_of(at::scalar_tensor(comes, at::kBool)));
    std::vector<Slot> results(program.graph().results().size());
    run(program, inputs, {}, results);
    return taken(way, results);
  }

  /// create_graph: computes everything again from the inputs, as a function of them and of the
  /// incoming gradients that has an autograd node of its own.
  /// What only other results than the given ones lead to gets no gradient of these gradients.
  variable_list apply_differentiably(const Way& way, GradientGraph& recomputed,
                                     const variable_list& gradients,
                                     const std::vector<bool>& given) {
    // Raises what eager raises if they were changed or freed. To ask what a part of the gradients
    // uses, its backward run is compiled.
    const bool is_whole = std::ranges::find(given, false) == given.end();
    unpacked(way, is_whole ? std::vector<bool>(way.saved.size(), true)
                           : way.graph->backward(given).uses);
    unpacked(read_);
    std::vector<Slot> inputs = unpacked(inputs_);
    const std::vector<Slot> cuts = unpacked(way.given);
    inputs.insert(inputs.end(), cuts.begin(), cuts.end());
    add_results(way, inputs);
    add(inputs, gradients);
    const std::shared_ptr<GradientGraph> again(way.graph, &recomputed);
    execute::Program& program = again->program();
    std::vector<Slot> cells;
    for (const std::string& name : program.cells()) {
      const auto found = std::find(cell_names_.begin(), cell_names_.end(), name);
      TORCHJANUS_CHECK(found != cell_names_.end(), "backward: cell ", name, " was not kept");
      cells.push_back(cells_[static_cast<size_t>(found - cell_names_.begin())].get(getptr()));
    }
    std::vector<Slot> results(again->result_count());
    {
      std::optional<EarlierGenerators> generators;
      if (findings_ && findings_->random) generators.emplace(*findings_->random);
      run(program, inputs, cells, results, findings_.get());
    }
    attach_node({.whole = again, .apart = nullptr}, inputs, program.cells(), cells, results,
                findings_);
    return taken(way, results);
  }

  /// create_graph where that can't be had: gradients that can't be differentiated. Who
  /// only asks for them, as some do of all, has them.
  variable_list apply_once(const Way& way, const variable_list& gradients,
                           const std::vector<bool>& given) {
    autograd::edge_list edges = next_edges();
    for (const at::Tensor& gradient : gradients)
      if (gradient.requires_grad()) edges.push_back(autograd::impl::gradient_edge(gradient));
    const c10::AutoGradMode without_gradients(false);
    variable_list made = run_backward(way, gradients, given);
    const auto end = make_node<SecondBackward>(std::move(edges));
    for (at::Tensor& each : made)
      if (each.defined()) {
        each = each.detach();
        autograd::impl::set_gradient_edge(each, Edge(end, end->add_input_metadata(each)));
      }
    return made;
  }

  Way whole_, apart_;
  std::vector<bool> wanted_;                                 ///< by target
  bool is_divided_;                                          ///< then the whole way is the only one
  std::vector<NodePointer<BucketBackward>> chain_;           ///< until they have what they keep
  std::map<size_t, WeakNodePointer<autograd::Node>> named_;  ///< by result
  std::mutex mutex_;
  /// To which results a gradient came in the last run; empty if that was none, or went to some of
  /// the targets only. Then eager frees other nodes' values only.
  std::vector<bool> run_for_;
  std::vector<bool> gone_through_;  ///< from which results another node's run went on in here
  std::set<size_t> freed_;          ///< those whose backward() has run
  bool is_released_ = false;        ///< nothing is kept any more; results that need nothing go on
  std::vector<Kept> read_, inputs_, cells_;
  std::shared_ptr<execute::Findings> findings_;  ///< with the tensors in `read_`
  std::vector<std::string> cell_names_;
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

/// Whether a gradient of one of the results can come to that input or cell.
bool is_reached(const GradientGraph& graph, size_t target) {
  for (size_t result = 0; result < graph.results().size(); ++result)
    if (graph.reaches(result, target)) return true;
  return false;
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
bool divide(const Ways& ways, const autograd::edge_list& edges) {
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
std::vector<NodePointer<BucketBackward>> make_chain(const Ways& ways, bool hooked,
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

void attach_node(const Ways& ways, std::span<const Slot> inputs,
                 std::span<const std::string> cell_names, std::span<const Slot> cells,
                 std::span<Slot> results, const std::shared_ptr<execute::Findings>& findings) {
  autograd::edge_list edges = edges_of(*ways.whole, inputs, cell_names, cells);
  // Hooks may do anything: they are called in eager's order.
  const bool hooked = std::ranges::any_of(edges, has_hooks);
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
  for (const GradientGraph::Result& result : differentiable) {
    at::Tensor tensor = tensor_of(results[result.index]);
    const uint32_t number = node->add_input_metadata(tensor);
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
  using Pointer = NodePointer<ConsumedBackward>;

  void mark(const Slot& slot, const std::string& name) {
    if (!slot.is_tensor()) {
      for (Slot rest = slot; execute::list_size(rest) > 0; rest = execute::without_last(rest))
        mark(execute::last_item(rest), name);
      return;
    }
    const at::Tensor tensor = tensor_of(slot);
    autograd::impl::set_gradient_edge(tensor, Edge(node_for(tensor, name), 0));
  }

  Pointer node_for(const at::Tensor& tensor, const std::string& name) {
    Pointer& oldest = spare_[next_++ % spare_.size()];
    if (is_free(oldest) && fits(*oldest, tensor) && oldest->name() == name) return oldest;
    oldest = make_node<ConsumedBackward>(name);
    oldest->add_input_metadata(tensor);
    return oldest;
  }

  /// Whether nobody else has it, nor left anything on it.
  static bool is_free(const Pointer& node) {
    return node && node.use_count() == 1 && !has_python_object(*node) &&
           node->pre_hooks().empty() && node->post_hooks().empty() &&
           node->tensor_pre_hooks().empty() && node->retains_grad_hooks().empty();
  }

  static bool fits(const ConsumedBackward& node, const at::Tensor& tensor) {
    const autograd::InputMetadata& metadata = node.input_metadata(0);
    return metadata.is_same_shape(tensor) && metadata.dtype() == tensor.dtype();
  }

  GradientGraph::Result result_;
  std::array<Pointer, 3> spare_;  // the last result is alive while the next one is made
  size_t next_ = 0;
};

class GraphDifferentiable final : public speculate::Differentiable {
 public:
  /// `stages`: the results, each behind those that lie on the way of its gradient.
  GraphDifferentiable(graph::Graph forward, std::vector<Ways> stages,
                      const std::vector<GradientGraph::Result>& consumed)
      : forward_(std::move(forward)),
        result_count_(forward_.results().size()),
        stages_(std::move(stages)),
        consumed_(consumed.begin(), consumed.end()) {}

  graph::Graph take_forward() override { return std::move(forward_); }
  size_t result_count() const override { return result_count_; }
  size_t backward_parts() const override {
    size_t most = 0;
    for (const Ways& stage : stages_) most = std::max(most, stage.whole->part_count());
    return most;
  }
  std::shared_ptr<execute::Findings> new_findings() const override {
    const bool needed = std::ranges::any_of(
        stages_, [](const Ways& stage) { return stage.whole->needs_findings(); });
    return needed ? std::make_shared<execute::Findings>() : nullptr;
  }
  void attach(std::span<const Slot> inputs, std::span<const std::string> cell_names,
              std::span<const Slot> cells, std::span<Slot> results,
              const std::shared_ptr<execute::Findings>& findings) override {
    for (Consumed& each : consumed_) each.mark(results);
    for (const Ways& stage : stages_)
      attach_node(stage, inputs, cell_names, cells, results, findings);
  }

 private:
  graph::Graph forward_;
  size_t result_count_;
  std::vector<Ways> stages_;
  std::vector<Consumed> consumed_;
};

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

/// The objects that the graph names, for gradients' own gradients; the engine, which has not got
/// Python's lock, may be the last to refer to them.
std::shared_ptr<const execute::Heap> heap_of(const speculate::Generated& generated) {
  auto* const heap =
      new std::shared_ptr<const execute::Heap>(speculate::object_heap(generated.objects));
  return {heap->get(), [heap](const execute::Heap*) {
            if (Py_IsInitialized() == 0) return;
            const python::WithLock lock;
            delete heap;
          }};
}

/// Results none of which lies on the way of another's gradient, and those that do. What one of them
/// frees, another's backward() needs as well.
struct Stage {
  std::vector<GradientGraph::Result> results;
  std::vector<size_t> cuts;
  std::set<const graph::Node*> nodes;  ///< that their gradients go through
};

/// The stage at that level whose gradients share nodes with these, of several made one.
Stage& stage_at(std::vector<std::vector<Stage>>& levels, size_t level,
                const std::set<const graph::Node*>& nodes) {
  if (levels.size() <= level) levels.resize(level + 1);
  std::vector<Stage>& stages = levels[level];
  const auto is_apart = [&](const Stage& stage) {
    return std::ranges::none_of(nodes,
                                [&](const auto* node) { return stage.nodes.contains(node); });
  };
  const auto [first, last] = std::ranges::stable_partition(stages, is_apart);
  Stage joined;
  joined.nodes = nodes;
  for (auto each = first; each != last; ++each) {
    joined.results.insert(joined.results.end(), each->results.begin(), each->results.end());
    joined.cuts.insert(joined.cuts.end(), each->cuts.begin(), each->cuts.end());
    joined.nodes.merge(each->nodes);
  }
  stages.erase(first, last);
  return stages.emplace_back(std::move(joined));
}

/// The nodes that gradients of the value go through.
std::set<const graph::Node*> nodes_behind(graph::Value* value) {
  std::set<const graph::Node*> nodes;
  for (const graph::Value* each : passes::reached_from(std::span(&value, 1), passes::Paths::any))
    if (each->definition != nullptr && passes::passes_gradient(*each->definition))
      nodes.insert(each->definition);
  return nodes;
}

/// For each result how many others lie one behind the other on the way of its gradient.
std::vector<Stage> stages_of(const graph::Graph& graph,
                             const std::vector<GradientGraph::Result>& results) {
  std::vector<graph::Value*> values;
  for (const auto& result : results) values.push_back(graph.results()[result.index]);
  std::vector<std::vector<bool>> reaches;
  for (graph::Value* const value : values)
    reaches.push_back(passes::reachable(std::span(&value, 1), values));
  // In the order of their definitions those on the way come first.
  std::vector<size_t> order(results.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t r) { return values[r]->id; });
  std::vector<size_t> level(results.size());
  std::vector<std::vector<Stage>> levels;
  for (const size_t r : order) {
    std::vector<size_t> on_the_way;
    for (const size_t other : order)
      if (values[other] != values[r] && reaches[r][other] && values[other]->definition != nullptr)
        on_the_way.push_back(other);
    for (const size_t other : on_the_way) level[r] = std::max(level[r], level[other] + 1);
    Stage& stage = stage_at(levels, level[r], nodes_behind(values[r]));
    stage.results.push_back(results[r]);
    for (const size_t other : on_the_way)
      if (std::ranges::find(stage.cuts, results[other].index) == stage.cuts.end())
        stage.cuts.push_back(results[other].index);
  }
  std::vector<Stage> stages;
  for (std::vector<Stage>& each : levels) std::ranges::move(each, std::back_inserter(stages));
  return stages;
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
    // What operators are made of says which of their results lie on the way of others.
    const graph::Graph graph = passes::decompose(generated.graph);
    return in_stages(generated, graph, stages_of(graph, live), consumed);
  }

 private:
  static std::vector<size_t> order_behind(const Stage& stage,
                                          const speculate::Generated& generated) {
    const graph::Graph& graph = generated.graph;
    std::vector<graph::Value*> results;
    for (const auto& result : stage.results) results.push_back(graph.results()[result.index]);
    return order_of_leaves(results, differentiable_values(graph, generated.differentiable_inputs,
                                                          generated.differentiable_cells));
  }

  /// One after the other: each lets the forward run give what its backward run needs.
  static std::unique_ptr<speculate::Differentiable> in_stages(
      const speculate::Generated& generated, const graph::Graph& graph,
      const std::vector<Stage>& stages, const std::vector<GradientGraph::Result>& consumed) {
    graph::Graph forward = passes::copied(graph);
    const std::set<size_t> written = written_inputs(generated);
    const auto heap = heap_of(generated);
    const auto add = [&](const Stage& stage, const std::vector<size_t>& cuts) {
      auto made = std::make_shared<GradientGraph>(
          std::move(forward), stage.results, generated.differentiable_inputs,
          generated.differentiable_cells, heap, written, cuts);
      forward = made->take_forward();
      return made;
    };
    std::vector<Ways> ways;
    for (const Stage& stage : stages) {
      auto whole = add(stage, {});
      ways.push_back({whole, stage.cuts.empty() ? nullptr : add(stage, stage.cuts),
                      order_behind(stage, generated)});
    }
    return std::make_unique<GraphDifferentiable>(std::move(forward), std::move(ways), consumed);
  }
};

}  // namespace

speculate::Differentiation& differentiation() {
  static GraphDifferentiation instance;
  return instance;
}

}  // namespace janus::torch
