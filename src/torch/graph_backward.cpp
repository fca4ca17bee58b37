#include "torch/graph_backward.h"

#include <ATen/LegacyBatchedTensorImpl.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

#include "base/policy.h"
#include "torch/current_backward.h"
#include "torch/interception_keys.h"
#include "torch/random_state.h"
#include "torch/result_backward.h"
#include "torch/tensor.h"

namespace janus::torch {

namespace autograd = ::torch::autograd;
using autograd::Edge;
using autograd::variable_list;
using execute::Slot;

namespace {

/// The grad_fn of gradients that can't be differentiated.
class SecondBackward final : public autograd::Node {
 public:
  explicit SecondBackward(autograd::edge_list edges) : Node(std::move(edges)) {}
  std::string name() const override { return "SecondBackward"; }
  variable_list apply(variable_list&&) override {
    TORCH_CHECK(false, "torchjanus: an operator has no second gradient");
  }
};

/// Of batched gradients, as `torch.autograd.grad(is_grads_batched=True)` gives them.
std::optional<int64_t> batch_level(const variable_list& gradients) {
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

size_t target_count(const BackwardWay& way) {
  return way.graph->inputs().size() + way.graph->cells().size() + way.graph->cuts().size();
}

/// Whether eager's gradient by the target depends on exactly those values that ours does.
bool is_plain(const GradientGraph& graph, const std::vector<bool>& given, size_t target) {
  for (size_t r = 0; r < given.size(); ++r)
    if (given[r] && graph.reaches(r, target) && !graph.is_plain(r, target)) return false;
  return true;
}

/// A write to a tensor of the entry is seen in what was saved as a view of it, as in eager.
void share_versions(const GradientGraph& graph, std::span<const Slot> inputs,
                    std::span<const std::string> cell_names, std::span<const Slot> cells,
                    std::span<const Slot> results) {
  for (const GradientGraph::SavedView& view : graph.saved_views()) {
    const auto cell = std::ranges::find(cell_names, view.cell);
    if (!view.input && cell == cell_names.end()) continue;
    const Slot& base =
        view.input ? inputs[*view.input] : cells[static_cast<size_t>(cell - cell_names.begin())];
    const Slot& saved = results[graph.saved_results()[view.saved]];
    if (!base.is_tensor() || !saved.is_tensor()) continue;
    const at::Tensor from = tensor_of(base), to = tensor_of(saved);
    if (!to.is_inference() && to.is_alias_of(from))
      autograd::impl::set_version_counter(to, autograd::impl::version_counter(from));
  }
}

void add(std::vector<Slot>& slots, const variable_list& gradients) {
  for (const at::Tensor& gradient : gradients) slots.push_back(slot_of(in_memory(gradient)));
}

void run(execute::Program& program, std::span<const Slot> inputs, std::span<const Slot> cells,
         std::span<Slot> results, execute::Findings* findings = nullptr) {
  if (const auto failure =
          program.run(inputs, cells, results, {}, policy::kDeepestCall, findings)) {
    TORCH_CHECK(false, failure->message.empty() ? "backward failed" : failure->message);
  }
}

}  // namespace

GraphBackward::GraphBackward(const BackwardWays& ways, std::vector<bool> wanted,
                             autograd::edge_list edges,
                             std::vector<NodePointer<BucketBackward>> chain)
    : Node(std::move(edges)),
      whole_(ways.whole),
      apart_(ways.apart),
      wanted_(std::move(wanted)),
      is_divided_(!chain.empty()),
      chain_(std::move(chain)) {}

GraphBackward::~GraphBackward() {
  const auto lock = lock_python();
  for (auto* all : kept()) all->clear();
  whole_.unchecked.clear();
  apart_.unchecked.clear();
  findings_.reset();
}

void GraphBackward::name_result(size_t index, const NodePointer<autograd::Node>& named) {
  named_.insert_or_assign(index, WeakNodePointer<autograd::Node>(named));
}

void GraphBackward::keep(std::span<const Slot> inputs, std::span<const std::string> cell_names,
                         std::span<const Slot> cells, std::span<const Slot> results,
                         const std::shared_ptr<execute::Findings>& findings) {
  for (Way* way : {&whole_, &apart_}) {
    if (!way->graph) continue;
    share_versions(*way->graph, inputs, cell_names, cells, results);
    way->keep(results);
  }
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

variable_list GraphBackward::apply(variable_list&& gradients) {
  const std::lock_guard lock(mutex_);
  run_for_ = take_gone_through();
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

void GraphBackward::release_variables() {
  const std::lock_guard lock(mutex_);
  if (run_for_.empty()) return;
  for (size_t r = 0; r < run_for_.size(); ++r)
    if (run_for_[r]) freed_.insert(r);
  const auto is_still_due = [&](size_t r) { return !is_freed(r) && !freed_.contains(r); };
  if (std::ranges::any_of(std::views::iota(size_t{0}, run_for_.size()), is_still_due)) return;
  const auto python = lock_python();
  // What eager saves nothing for may be computed again, and so may its gradients.
  const auto saves_nothing = [&](size_t r) { return !whole_.graph->shares_saved(r, r); };
  const bool goes_on =
      std::ranges::any_of(std::views::iota(size_t{0}, run_for_.size()), saves_nothing);
  for (auto* all : kept()) {
    if (goes_on && (all == &inputs_ || all == &cells_)) continue;
    for (Kept& each : *all) each.release();
  }
  whole_.unchecked.clear();
  apart_.unchecked.clear();
  findings_.reset();
  is_released_ = true;
}

std::array<std::vector<Kept>*, 11> GraphBackward::kept() {
  return {&whole_.saved, &whole_.given,        &whole_.results_kept, &whole_.checked, &apart_.saved,
          &apart_.given, &apart_.results_kept, &apart_.checked,      &read_,          &inputs_,
          &cells_};
}

bool GraphBackward::goes_apart() const {
  if (!apart_.graph) return false;
  return adds_up(*this) || std::ranges::any_of(cuts(), [](const Edge& cut) {
           return cut.is_valid() && is_looked_at(cut);
         });
}

std::span<const Edge> GraphBackward::cuts() const {
  return std::span(next_edges()).last(apart_.graph ? apart_.graph->cuts().size() : 0);
}

variable_list GraphBackward::apply_whole(const Way& way, const variable_list& gradients,
                                         const std::vector<bool>& given) {
  if (const auto level = batch_level(gradients))
    return apply_batched(way, gradients, given, *level);
  if (!c10::GradMode::is_enabled()) return run_backward(way, gradients, given);
  GradientGraph* const recomputed = way.graph->recomputed(given);
  return recomputed != nullptr ? apply_differentiably(way, *recomputed, gradients, given)
                               : apply_once(way, gradients, given);
}

variable_list GraphBackward::apply_batched(const Way& way, const variable_list& gradients,
                                           const std::vector<bool>& given, int64_t level) {
  const auto sample = [](const at::Tensor& gradient, int64_t number) {
    const auto* batched = at::maybeGetBatchedImpl(gradient);
    if (batched == nullptr) return gradient;
    return batched->value().select(batched->bdims().front().dim(), number);
  };
  const auto* first = at::maybeGetBatchedImpl(
      *std::ranges::find_if(gradients, [](const auto& each) { return at::isBatchedTensor(each); }));
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

bool GraphBackward::is_freed(size_t result) const {
  return std::ranges::any_of(
      freed_, [&](size_t other) { return whole_.graph->shares_saved(result, other); });
}

void GraphBackward::note_run(const std::vector<bool>& given, bool is_whole) {
  if (!is_all_asked_for(given)) return run_for_.clear();
  if (is_whole) go_through(given);
  run_for_.resize(given.size());
  for (size_t r = 0; r < given.size(); ++r)
    if (given[r]) run_for_[r] = true;
}

void GraphBackward::go_through(const std::vector<bool>& given) {
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

void GraphBackward::be_gone_through(size_t result) {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!is_freed(result), autograd::ERR_BACKWARD_TWICE);
  std::vector<bool> results = take_gone_through();
  results.resize(whole_.graph->results().size());
  results[result] = true;
  gone_through_ = std::move(results);
  gone_through_in_ = autograd::get_current_graph_task_id();
}

std::vector<bool> GraphBackward::take_gone_through() {
  std::vector<bool> results = std::exchange(gone_through_, {});
  if (gone_through_in_ != autograd::get_current_graph_task_id()) results.clear();
  return results;
}

bool GraphBackward::is_all_asked_for(const std::vector<bool>& given) const {
  const std::vector<bool> is_reached = reached_from(whole_, given);
  for (size_t i = 0; i < num_outputs(); ++i)
    if (next_edge(i).is_valid() && (is_divided_ || is_reached[i]) && !is_on_the_way(next_edge(i)))
      return false;
  return true;
}

void GraphBackward::check_not_freed(const std::vector<bool>& given) const {
  for (size_t r = 0; r < given.size(); ++r)
    TORCH_CHECK(!given[r] || !is_freed(r), autograd::ERR_BACKWARD_TWICE);
}

void GraphBackward::check_kept(const Way& way, const std::vector<bool>& given) {
  for (size_t i = 0; i < way.checked.size(); ++i)
    if (given[way.checked_numbers[i]]) way.checked[i].get(node_of(way.checked_numbers[i]));
}

variable_list GraphBackward::apply_first_part(const variable_list& gradients,
                                              const std::vector<bool>& given) {
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

std::vector<bool> GraphBackward::reached_from(const Way& way,
                                              const std::vector<bool>& given) const {
  std::vector<bool> is_reached(wanted_.size());
  for (size_t target = 0; target < target_count(way); ++target)
    for (size_t r = 0; r < given.size(); ++r)
      if (given[r] && way.graph->reaches(r, target)) is_reached[target] = true;
  return is_reached;
}

std::vector<bool> GraphBackward::complete(variable_list& gradients) const {
  std::vector<bool> given;
  for (size_t i = 0; i < gradients.size(); ++i) {
    given.push_back(gradients[i].defined());
    if (!given.back()) gradients[i] = input_metadata(i).zeros_like();
  }
  return given;
}

std::unique_ptr<python::WithLock> GraphBackward::lock_python() {
  const auto all = kept();
  const bool holds_pythons =
      findings_ ||
      std::any_of(all.begin(), all.end() - 1, [](const auto* each) { return are_pythons(*each); });
  std::unique_ptr<python::WithLock> lock;
  if (holds_pythons && Py_IsInitialized() != 0) lock = std::make_unique<python::WithLock>();
  return lock;
}

NodePointer<autograd::Node> GraphBackward::node_of(size_t result) {
  const auto found = named_.find(result);
  const auto named = found == named_.end() ? nullptr : found->second.lock();
  return named ? named : getptr();
}

std::vector<Slot> GraphBackward::unpacked(const std::vector<Kept>& all) {
  std::vector<Slot> slots;
  for (const Kept& each : all) slots.push_back(each.get(getptr()));
  return slots;
}

std::vector<Slot> GraphBackward::unpacked(const Way& way, const std::vector<bool>& uses) {
  std::vector<Slot> slots;
  for (size_t i = 0; i < way.saved.size(); ++i) {
    if (uses[i] || (way.unchecked.empty() && !is_released_))
      slots.push_back(way.saved[i].get(node_of(way.saved_numbers[i])));
    else
      slots.push_back(is_released_ ? Slot() : way.unchecked[i]);
  }
  return slots;
}

void GraphBackward::add_results(const Way& way, std::vector<Slot>& slots) {
  for (size_t i = 0; i < way.results_kept.size(); ++i) {
    const size_t number = way.graph->kept_results()[i];
    const auto named = node_of(number);
    at::Tensor result = tensor_of(way.results_kept[i].get(getptr())).detach();
    autograd::impl::set_gradient_edge(result, Edge(named, named == getptr() ? number : 0));
    slots.push_back(slot_of(result));
  }
}

variable_list GraphBackward::taken(const Way& way, std::span<Slot> results) const {
  variable_list tensors(wanted_.size());
  for (size_t i = 0; i < target_count(way); ++i)
    if (wanted_[i]) tensors[i] = tensor_of(results[i]);
  return tensors;
}

variable_list GraphBackward::run_backward(const Way& way, const variable_list& gradients,
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

variable_list GraphBackward::apply_differentiably(const Way& way, GradientGraph& recomputed,
                                                  const variable_list& gradients,
                                                  const std::vector<bool>& given) {
  // Raises what eager raises if they were changed or freed. To ask what a part of the gradients
  // uses, its backward run is compiled.
  const bool is_whole = !is_released_ && std::ranges::find(given, false) == given.end();
  unpacked(way,
           is_whole ? std::vector<bool>(way.saved.size(), true) : way.graph->backward(given).uses);
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
  IfItDepends if_it_depends;
  for (size_t target = 0; target < target_count(way); ++target)
    if_it_depends.push_back(is_plain(*way.graph, given, target));
  attach_node({.whole = again, .apart = nullptr}, inputs, program.cells(), cells, results,
              findings_, if_it_depends);
  return taken(way, results);
}

variable_list GraphBackward::apply_once(const Way& way, const variable_list& gradients,
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

}  // namespace janus::torch
