// The end of a run: what it returned becomes a template over results of the graph, what it changed
// becomes commits and rebinds.
#include "frontend/output/epilogue.h"

#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>

#include "base/mutation.h"
#include "frontend/autograd/consumed_tape.h"
#include "frontend/autograd/custom_gradient.h"
#include "frontend/autograd/grad_attribute.h"
#include "frontend/autograd/gradients.h"
#include "frontend/autograd/requires_grad.h"
#include "frontend/autograd/results_within.h"
#include "frontend/autograd/shared_updates.h"
#include "frontend/autograd/tracked_values.h"
#include "frontend/core/autocast_state.h"
#include "frontend/core/cells.h"
#include "frontend/core/heap_aliases.h"
#include "frontend/core/heap_commit.h"
#include "frontend/core/locks.h"
#include "frontend/output/escaping_tensors.h"
#include "frontend/output/template_writer.h"
#include "frontend/recursion/runtime_store_log.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/tensor_data.h"
#include "frontend/torch_library/gradient_exchange.h"
#include "frontend/torch_library/program_collectives.h"
#include "frontend/values/restart.h"
#include "frontend/values/symbolic_list.h"
#include "graph/op.h"
#include "ops/list.h"
#include "ops/number.h"
#include "passes/gradient/reachable.h"
#include "speculate/separate_memory.h"

namespace janus::frontend {

using speculate::Template;

namespace {

void commit_tensors(Interpreter& interpreter) {
  for (const auto& tensor : interpreter.entry_tensor_order) {
    if (!tensor->written) continue;
    if (tensor->requires_grad && !tensor->is_leaf)
      interpreter.refuse(
          ReasonCode::autograd,
          cat(tensor->source->describe(), " becomes part of autograd's graph by a write in place"));
    if (tensor->data_replaced) {
      commit_data(interpreter, *tensor);
      continue;
    }
    if (is_planted(State::contents, Mutation::not_written)) continue;
    const std::string& cell = cell_of(interpreter, *tensor);
    std::vector<graph::Value*> written = {tensor->value};
    if (is_planted(State::contents, Mutation::twice))
      written[0] = op::add(interpreter.builder(), {tensor->value, tensor->value});
    if (tensor->varying_writes != nullptr) written.push_back(tensor->varying_writes);
    graph::Attributes attributes{{"cell", cell}};
    const int64_t writes = tensor->version - tensor->silent_writes;
    if (writes != 1) attributes.set("versions", writes);
    interpreter.builder().append(op::commit, written, std::move(attributes));
  }
}

bool changes(const AutogradState& autograd, const Tensor& tensor) {
  return tensor.written || autograd.kept_apart.contains(&tensor);
}

/// A view of a tensor that needs no gradient may be treated as any tensor if it is only read.
void accept_views(Interpreter& interpreter) {
  std::set<const Source*> read;
  for (const auto& tensor : interpreter.entry_tensor_order)
    if (!tensor->requires_grad && !changes(interpreter, *tensor)) read.insert(tensor->source);
  for (Assumption& each : interpreter.output().assumptions)
    if (each.kind == Assumption::Kind::tensor && read.contains(each.source))
      each.tensor.may_be_view = true;
}

/// What one path leads to is another path's tensor in some calls: a change through the one would
/// have to show in the other.
void refuse_changed_aliases(Interpreter& interpreter) {
  for (const auto& [object, tensors] : interpreter.entry_tensors) {
    if (tensors.size() < 2) continue;
    for (const auto& tensor : tensors)
      if (changes(interpreter, *tensor) || tensor->requires_grad || tensor->grad_replaced)
        interpreter.refuse(ReasonCode::unsupported_tensor,
                           cat("a change of ", tensor->source->describe(),
                               ", which is another argument's tensor in some calls"));
  }
}

bool takes_gradients(Interpreter& interpreter) {
  bool takes = std::ranges::any_of(interpreter.entry_tensor_order,
                                   [](const auto& tensor) { return tensor->grad_replaced; });
  graph::for_each_node(interpreter.output().graph.body(),
                       [&](const graph::Node& node) { takes |= node.op == &op::gradient; });
  return takes;
}

/// How many tensors of the graph are the same one in the call at hand, and which of them each is.
struct EntryAliases {
  size_t most = 1;
  std::unordered_map<const Tensor*, size_t> number;
};

EntryAliases aliases_at_entry(const EntryTensors& entry) {
  EntryAliases aliases;
  for (const auto& [object, tensors] : entry.entry_tensors) {
    aliases.most = std::max(aliases.most, tensors.size());
    for (size_t i = 0; i < tensors.size() && tensors.size() > 1; ++i)
      aliases.number.emplace(tensors[i].get(), i);
  }
  return aliases;
}

/// Two of them that are one tensor in another call have one gradient there, the sum of both. What
/// is changed is told from all others by its memory (assume_separate). Of those that are one tensor
/// here, whose gradients are only read, each is told from the rest.
void assume_distinct_leaves(Interpreter& interpreter) {
  if (!takes_gradients(interpreter)) return;
  const EntryAliases aliases = aliases_at_entry(interpreter);
  for (size_t number = 0; number < aliases.most; ++number) {
    std::vector<const Source*> leaves;
    for (const auto& tensor : interpreter.entry_tensor_order) {
      const auto alias = aliases.number.find(tensor.get());
      const bool belongs = alias == aliases.number.end() || alias->second == number;
      if (belongs && (tensor->requires_grad || tensor->grad != nullptr) &&
          !changes(interpreter, *tensor))
        leaves.push_back(tensor->source);
    }
    if (leaves.size() < 2) continue;
    const int64_t group = interpreter.new_group();
    for (const Source* source : leaves)
      interpreter.assume(Assumption::Kind::not_same_object, source, {}, group);
  }
}

/// A write must not show in another tensor of the graph, nor a changed requires_grad in a view.
void assume_separate(Interpreter& interpreter) {
  const auto& tensors = interpreter.entry_tensor_order;
  if (std::ranges::none_of(tensors, [&](const auto& each) { return changes(interpreter, *each); }))
    return;
  size_t count = tensors.size();
  for (const auto& [source, list] : interpreter.entry_lists)
    count += count_tensors(*list.pattern, list.object.get());
  speculate::SeparateMemory separate(count);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool is_changed = changes(interpreter, *tensors[i]);
    if (const auto other = separate.add(i, tensors[i]->storage, is_changed))
      interpreter.refuse(ReasonCode::unsupported_tensor,
                         cat(tensors[i]->source->describe(), " shares memory with ",
                             tensors[*other]->source->describe()));
    Assumption assumption;
    assumption.kind = Assumption::Kind::separate_memory;
    assumption.source = tensors[i]->source;
    assumption.number = is_changed ? 1 : 0;
    interpreter.assume(std::move(assumption));
  }
  for (const auto& [source, list] : interpreter.entry_lists) {
    for_each_tensor(*list.pattern, list.object.get(), [&](PyObject* element) {
      if (separate.add(count, speculate::tensor_access().storage_of(element), false))
        throw CannotMerge{list.elements->test,
                          "a tensor in it shares memory with one that is written"};
    });
    Assumption assumption;
    assumption.kind = Assumption::Kind::separate_memory;
    assumption.source = source;
    assumption.elements = list.pattern;
    interpreter.assume(std::move(assumption));
  }
}

void note_leaf(Interpreter& interpreter, Tensor& leaf) {
  speculate::Generated& output = interpreter.output();
  const graph::Value* first = leaf.past_values.empty() ? leaf.value : leaf.past_values.front();
  const graph::Value* counterpart = interpreter.switches.counterpart_or_null(first);
  auto inputs = output.graph.inputs();
  auto input = std::find_if(inputs.begin(), inputs.end(), [&](const graph::Value* value) {
    return value == first || value == counterpart;
  });
  if (input != inputs.end())
    output.differentiable_inputs.push_back(static_cast<size_t>(input - inputs.begin()));
  else
    output.differentiable_cells.push_back(cell_of(interpreter, leaf));
}

/// A second backward through a freed graph raises: that must happen in eager execution as well.
void check_consumed(Interpreter& interpreter) {
  const auto& all = interpreter.output().differentiable_results;
  if (std::ranges::none_of(all, &speculate::Generated::DifferentiableResult::consumed)) return;
  ConsumedTape tape(interpreter);
  for (const auto& result : all) {
    graph::Value* const value = interpreter.results()[result.result];
    bool consumed = false;
    const bool is_own = beyond_custom_gradients(interpreter, {value}, consumed).size() == 1;
    if (result.consumed && is_own && !result.name_numbers) tape.check_raises(value);
  }
}

/// A gradient that is due outside would have to come to them.
void check_not_reached(Interpreter& interpreter, const std::vector<graph::Value*>& results,
                       std::span<const std::shared_ptr<Tensor>> leaves) {
  for (const auto& leaf : leaves) {
    const std::vector<bool> reached =
        passes::reachable(results, tracked_values(interpreter, *leaf));
    if (std::ranges::find(reached, true) != reached.end())
      interpreter.refuse(ReasonCode::autograd, "a result requires grad for a leaf made in the run");
  }
}

/// Leaves of the entry that gradients of the differentiable results reach. `made`: leaves of the
/// run that are results.
void note_differentiable_leaves(Interpreter& interpreter,
                                std::span<const std::shared_ptr<Tensor>> made) {
  speculate::Generated& output = interpreter.output();
  if (output.differentiable_results.empty()) return;
  check_consumed(interpreter);
  std::vector<graph::Value*> results;
  for (const auto& result : output.differentiable_results)
    if (!result.consumed) results.push_back(interpreter.results()[result.result]);
  if (results.empty()) return;
  if (interpreter.has_run_time_dimensions())
    interpreter.refuse(ReasonCode::autograd,
                       "a gradient due outside of a size that the run decides");
  check_saved_values(interpreter, results);
  check_not_within(interpreter, results);
  check_not_reached(interpreter, results, made);
  std::vector<graph::Value*> targets = results;
  for (const auto& tensor : interpreter.entry_tensor_order) {
    const std::vector<graph::Value*> values = tracked_values(interpreter, *tensor);
    std::vector<bool> reached = passes::reachable(results, values);
    if (std::find(reached.begin(), reached.end(), true) == reached.end()) continue;
    if (!tensor->requires_grad || is_switched(interpreter, *tensor))
      interpreter.refuse(ReasonCode::autograd, cat("results depend on ", tensor->source->describe(),
                                                   ", whose requires_grad was changed since"));
    targets.insert(targets.end(), values.begin(), values.end());
    if (tensor->written)
      interpreter.refuse(ReasonCode::autograd,
                         "results depend on a leaf that is written in the same run");
    note_leaf(interpreter, *tensor);
  }
  // Each by itself: backward() outside may begin at one of them alone.
  for (graph::Value* result : results) check_certain(interpreter, {result}, targets);
}

bool is_work(const graph::Node& node) {
  switch (node.op->role) {
    case graph::Role::constant:
    case graph::Role::state:
    case graph::Role::guard:
    case graph::Role::size:
      return false;
    default:
      return !ops::is_of_numbers(*node.op) && node.op->computed_by != graph::ComputedBy::python;
  }
}

/// All that the run has taken it gives back. An operator of the program's own may wait for a lock
/// that the run has before and after it needs it.
void check_locks(Interpreter& interpreter) {
  if (interpreter.output().effects.empty()) return;
  if (lock_in_use(interpreter.heap) != nullptr)
    interpreter.refuse(ReasonCode::heap_write, "a lock, which stays taken");
  graph::for_each_node(interpreter.output().graph.body(), [&](const graph::Node& node) {
    if (node.op != &op::opaque) return;
    const std::string name = node.attributes.get<std::string>("operator");
    if (!name.starts_with("aten::"))
      interpreter.refuse(ReasonCode::unknown_callable,
                         cat("the operator ", name, " beside a lock"));
  });
}

}  // namespace

Template template_of(Interpreter& interpreter, const Value& value) {
  const EscapingTensors none(interpreter, {});
  return TemplateWriter(interpreter, none, true).write(value);
}

void finish(Interpreter& interpreter, const Value& result) {
  check_locks(interpreter);
  check_collectives_done(interpreter);
  std::vector<Value> lasting = values_written(interpreter.heap);
  lasting.push_back(result);
  RuntimeStoreLog& log = runtime_store_log_of(interpreter);
  log.check_consumed();
  const Value stores = log.written();
  lasting.push_back(stores);
  const EscapingTensors escaping(interpreter, lasting);
  escaping.check_new_gradients(lasting);
  TemplateWriter writer(interpreter, escaping, false);
  interpreter.output().result = writer.whole(result);
  commit_heap(interpreter.heap, interpreter.output().writes,
              [&](const Value& value) { return writer.write(value); });
  if (stores != nullptr) {
    interpreter.output().writes.push_back(log.commit());
    interpreter.output().writes.back().value = writer.write_runtime_stores(stores);
  }
  assume_aliases(interpreter);
  if (interpreter.modes.grad_enabled != interpreter.output().environment.grad_enabled)
    interpreter.refuse(ReasonCode::heap_write, "the grad mode");
  const auto& outside = interpreter.output().environment;
  if (interpreter.modes.autocast !=
      Autocast{outside.autocast, outside.autocast_dtype, outside.autocast_keeps_casts, 0})
    interpreter.refuse(ReasonCode::heap_write, "autocast");
  finish_autograd(interpreter);
  commit_requires_grad(interpreter);
  note_differentiable_leaves(interpreter, writer.leaves());
  commit_tensors(interpreter);
  accept_views(interpreter);
  refuse_changed_aliases(interpreter);
  assume_distinct_leaves(interpreter);
  assume_separate(interpreter);
  check_gradients_shared(interpreter);
  interpreter.output().is_shared_update = is_shared_update(interpreter);
  graph::Block& body = interpreter.output().graph.body();
  body.results = interpreter.results();
  for (const graph::Node* node : body.nodes)
    if (is_work(*node)) return;
  interpreter.refuse(ReasonCode::no_tensor_work, interpreter.call().tree->name);
}

}  // namespace janus::frontend
