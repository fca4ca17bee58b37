#include "frontend/control/merge.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/mutation.h"
#include "frontend/control/effects.h"
#include "frontend/control/fork.h"
#include "frontend/control/list_parts.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/autocast_state.h"
#include "frontend/core/tensor_hooks.h"
#include "frontend/tensors/grad_fn_name.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "frontend/values/restart.h"
#include "frontend/values/strides.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

NotMerged differing(const Value& a, const Value& b) {
  return {cat(name_of(a), " on one side, ", name_of(b), " on the other")};
}

void name_merged(TensorState& merged, const TensorState& a, const TensorState& b) {
  merged.producer = a.producer == b.producer ? a.producer : Producer();
  merged.produced_by = nullptr;
  merged.grad_fn_name.clear();
  if (!merged.requires_grad || merged.is_leaf) return;
  std::string name = grad_fn_name(a);
  if (name == grad_fn_name(b)) merged.grad_fn_name = std::move(name);
}

const char* name_of(const Value& value) {
  if (value == nullptr) return "nothing";
  if (const auto* known = as<Known>(value))
    return known->object.is(Py_None) ? "None" : Py_TYPE(known->object.get())->tp_name;
  switch (value->kind) {
    case ValueKind::number: {
      auto kind = as<Number>(value)->type;
      return kind == Type::Kind::boolean ? "bool" : kind == Type::Kind::f64 ? "float" : "int";
    }
    case ValueKind::tensor:
      return "a tensor";
    case ValueKind::sequence:
      return as<Sequence>(value)->is_list ? "list" : "tuple";
    case ValueKind::dictionary:
      return "dict";
    case ValueKind::set:
      return "set";
    default:
      return "an object";
  }
}

namespace {

uint32_t counted_writes(const TensorState& state) { return state.version - state.silent_writes; }

}  // namespace

Merger::Merger(Fork& fork)
    : fork_(fork),
      interpreter_(fork.interpreter()),
      node_(interpreter_.builder().graph().new_node(op::if_)) {
  node_->inputs = {fork.flag()};
  node_->span = fork.span();
}

Value Merger::run() {
  for (const Snapshot::Saved& saved : fork_.before().objects.objects())
    if (saved.alive()) merge_object(*saved.object);
  join_state();
  Value result;
  const Value &first = fork_.side(0).result, &second = fork_.side(1).result;
  try {
    try {
      result = merge_value(first, second);
    } catch (const NotMerged& reason) {
      result = either(first, second, reason);
    }
  } catch (const NotMerged& reason) {
    fail(reason);
  }
  merge_results();
  for (const size_t which : {0, 1}) {
    Fork::Side& side = fork_.side(which);
    side.block->parent = node_;
    node_->blocks.push_back(std::move(side.block));
  }
  interpreter_.enter_block(fork_.outer());
  interpreter_.builder().graph().append(fork_.outer(), node_);
  interpreter_.scope_nodes[node_] = *fork_.test();
  for (const MergedSize& size : sizes_) interpreter_.give_size(size.merged, size.value);
  finish_tensors();
  return result;
}

/// Each member of the state becomes what the two sides leave of it.
void Merger::join_state() {
  const InterpreterState& before = fork_.before().state;
  const InterpreterState &first = fork_.side(0).state->state, &second = fork_.side(1).state->state;
  auto& [modes, heap, history, known_classes, casts, effects] =
      static_cast<InterpreterState&>(interpreter_);
  if (first.modes != second.modes) fail({"the grad mode or an autocast differs"});
  modes = first.modes;
  history = before.history;
  history.add(first.history);
  history.add(second.history);
  known_classes = before.known_classes;
  casts.clear();
  join_casts(first.casts, second.casts);
  effects = before.effects;
  join_effects(first.effects, second.effects);
  join_heap(first.heap, second.heap);
}

/// What was cast in front of the branch is still there, if neither side has forgotten it.
void Merger::join_casts(const Casts& first, const Casts& second) {
  for (const auto& [tensor, cast] : first)
    if (const auto other = second.find(tensor); other != second.end() && other->second == cast)
      interpreter_.casts.emplace(tensor, cast);
}

/// What a side shows, in order: made only if it was taken.
void Merger::join_effects(const std::vector<speculate::Effect>& first,
                          const std::vector<speculate::Effect>& second) {
  const size_t before = fork_.before().state.effects.size();
  for (const auto* side : {&first, &second}) {
    for (size_t i = before; i < side->size(); ++i) {
      speculate::Effect effect = (*side)[i];
      const size_t flag = interpreter_.add_result(fork_.flag());
      if (!is_planted(State::effect, Mutation::both_sides))
        effect.call = conditional_call(std::move(effect.call), flag, side == &first);
      interpreter_.effects.push_back(std::move(effect));
    }
  }
}

/// What the sides compute for texts and the like becomes a result of the `if`.
void Merger::merge_results() {
  for (size_t i = fork_.result_count(); i < interpreter_.results().size(); ++i) {
    graph::Value* value = interpreter_.results()[i];
    if (is_visible(value)) continue;
    const graph::Block* block =
        value->definition != nullptr ? value->definition->parent : value->owner;
    const size_t side = block == fork_.side(0).block.get() ? 0 : 1;
    if (block != fork_.side(side).block.get())
      throw CannotMerge{*fork_.test(), "an output of one side is not defined behind the branch"};
    try {
      interpreter_.enter_block(*fork_.side(1 - side).block);
      graph::Value* other = placeholder_of(value->type);
      interpreter_.replace_result(
          i, side == 0 ? merge_graph_values(value, other) : merge_graph_values(other, value));
    } catch (const NotMerged& reason) {
      fail(reason);
    }
  }
}

/// A value of that type, made in the block at hand, that nobody sees.
graph::Value* Merger::placeholder_of(const Type& type) {
  graph::Builder& builder = interpreter_.builder();
  switch (type.kind) {
    case Type::Kind::boolean:
      return builder.constant(false);
    case Type::Kind::i64:
      return builder.constant(int64_t{0});
    case Type::Kind::f64:
      return builder.constant(0.0);
    case Type::Kind::tensor:
      return op::full(builder, {builder.constant(0.0)},
                      {{"size", type.shape}, {"dtype", type.dtype}});
    case Type::Kind::list:
      return builder.append_unchecked(op::list_new, {}, {}, {type})->output();
    default:
      throw NotMerged{cat(graph::to_string(type), " on one side only")};
  }
}

/// Texts that are made after the run: which one, a flag says then.
Value Merger::merge_deferred(const Value& a, const Value& b) {
  PyObject* const text = reinterpret_cast<PyObject*>(&PyUnicode_Type);
  const auto recipe = [&](const Value& value) {
    const auto* known = as<Known>(value);
    if (const auto* deferred = as<Deferred>(value); deferred != nullptr && deferred->type.is(text))
      return deferred->recipe;
    if (known == nullptr || !PyUnicode_CheckExact(known->object.get())) throw differing(a, b);
    speculate::Template constant;
    constant.object = known->object;
    return constant;
  };
  auto merged = std::make_shared<Deferred>();
  speculate::Template if_true = recipe(a);
  merged->recipe = chosen(recipe(b), std::move(if_true), interpreter_.add_result(fork_.flag()));
  merged->type = Object::borrow(text);
  return merged;
}

void Merger::join_heap(const Heap& first, const Heap& second) {
  std::string why_not;
  try {
    auto merge = [&](const Value& a, const Value& b) { return merge_value(a, b); };
    why_not =
        interpreter_.heap.merge(interpreter_, fork_.before().state.heap, first, second, merge);
  } catch (const NotMerged& reason) {
    fail(reason);
  }
  if (!why_not.empty()) fail({why_not});
}

// --- the states of the sides --------------------------------------------------------------------

bool Merger::existed(const Changeable& object) const {
  return fork_.before().objects.find(&object) != nullptr;
}

const ChangeableState& Merger::state_in(size_t side, const Changeable& object) {
  if (const ChangeableState* state = fork_.side(side).state->objects.find(&object)) return *state;
  const ChangeableState* before = fork_.before().objects.find(&object);
  TORCHJANUS_CHECK(before != nullptr, "merge: an object of no side");
  return *before;
}

const TensorState& Merger::tensor_in(size_t side, const Tensor& tensor) {
  return existed(tensor) ? std::get<TensorState>(state_in(side, tensor)) : tensor;
}

const Elements& Merger::elements_in(size_t side, const Sequence& sequence) {
  return existed(sequence) ? std::get<Elements>(state_in(side, sequence)) : sequence.elements;
}

bool Merger::is_visible(const graph::Block* block) const {
  return block != fork_.side(0).block.get() && block != fork_.side(1).block.get() &&
         interpreter_.is_open(block);
}

bool Merger::is_visible(const graph::Value* value) const {
  return is_visible(value->definition != nullptr ? value->definition->parent : value->owner);
}

void Merger::merge_object(Changeable& object) {
  const ChangeableState &a = state_in(0, object), &b = state_in(1, object);
  try {
    if (auto* tensor = dynamic_cast<Tensor*>(&object)) {
      merge_tensor_contents(*tensor, std::get<TensorState>(a), std::get<TensorState>(b));
    } else if (auto* sequence = dynamic_cast<Sequence*>(&object)) {
      const auto &first = std::get<Elements>(a), &second = std::get<Elements>(b);
      if (is_any_planted() && interpreter_.runtime_store_log().is_log(*sequence))
        return write_met_on_both(*sequence, first, second);
      sequence->elements = merge_elements(first, second, may_roll(*sequence));
    } else if (auto* dictionary = dynamic_cast<Dictionary*>(&object)) {
      dictionary->items = merge_items(std::get<Items>(a), std::get<Items>(b));
    } else if (auto* variables = dynamic_cast<Variables*>(&object)) {
      merge_variables(*variables, std::get<VariableValues>(a), std::get<VariableValues>(b));
    } else if (dynamic_cast<SetValue*>(&object) != nullptr) {
      const auto &first = std::get<SetElements>(a), &second = std::get<SetElements>(b);
      if (!same_elements(first, second)) throw NotMerged{"a set holds different elements"};
    } else if (std::get<uint64_t>(*fork_.before().objects.find(&object)) !=
               std::get<uint64_t>(b)) {  // nothing puts back what the first side took
      throw NotMerged{"one side takes more from an iterator"};
    }
  } catch (const NotMerged& reason) {
    fail(reason);
  }
}

/// What a variable was before the run of statements, none of which has read it: a side that does
/// not set it leaves it so. Null: it was unset, or these are not the variables of such a run.
PyObject* Merger::object_before(const Variables& variables, const std::string& name) {
  if (interpreter_.statement_run.variables.get() != &variables) return nullptr;
  return PyDict_GetItemString(interpreter_.call().variables, name.c_str());
}

/// The same if it was a number; null: it was none.
Value Merger::number_before(const Variables& variables, const std::string& name) {
  if (interpreter_.heap.table(interpreter_.call().variables) != nullptr) return nullptr;
  PyObject* const value = object_before(variables, name);
  if (value == nullptr || (!PyLong_CheckExact(value) && !PyFloat_CheckExact(value))) return nullptr;
  const Object key = Object::steal(PyUnicode_FromString(name.c_str()));
  return interpreter_.wrap(value, interpreter_.frame_variable(key));
}

/// Whether only one side deletes the variable, which the other leaves as it was before the run of
/// statements.
bool Merger::is_deleted_on_one_side(const Variables& variables, const std::string& name,
                                    const VariableValues& a, const VariableValues& b) {
  if (a.contains(name) == b.contains(name)) return false;
  const VariableValues& touching = a.contains(name) ? a : b;
  return touching.at(name) == nullptr && object_before(variables, name) != nullptr;
}

void Merger::merge_variables(Variables& variables, const VariableValues& a,
                             const VariableValues& b) {
  std::map<std::string, std::pair<Value, Value>, std::less<>> all;
  for (const auto& [name, value] : a) all[name].first = value;
  for (const auto& [name, value] : b) all[name].second = value;
  VariableValues merged;
  for (auto& [name, pair] : all) {
    auto& [first, second] = pair;
    if (is_deleted_on_one_side(variables, name, a, b)) {
      merged[name] = std::make_shared<Unmerged>(
          *fork_.test(), cat("the variable ", name, ": only one side deletes it"));
      continue;
    }
    if (!a.contains(name)) first = number_before(variables, name);
    if (!b.contains(name)) second = number_before(variables, name);
    try {
      if (as<Unmerged>(first) != nullptr || as<Unmerged>(second) != nullptr)
        merged[name] = as<Unmerged>(first) != nullptr ? first : second;
      else
        merged[name] = merge_value(first, second);
    } catch (const NotMerged& reason) {
      merged[name] = either_or_unmerged(
          first, second, {cat("the variable ", name, ": ", reason.why), reason.in_sizes});
    }
  }
  variables.values = std::move(merged);
}

Value Merger::either_or_unmerged(const Value& a, const Value& b, const NotMerged& reason) {
  try {
    return either(a, b, reason);
  } catch (const NotMerged&) {
    return std::make_shared<Unmerged>(*fork_.test(), reason.why, /*in_first_iteration=*/false,
                                      reason.in_sizes);
  }
}

// --- tensors that existed before ----------------------------------------------------------------

Value Merger::merge_grad(const TensorState& a, const TensorState& b) {
  if (a.grad == b.grad && a.grad_replaced == b.grad_replaced) return a.grad;
  if (a.grad_replaced == b.grad_replaced) return merge_value(a.grad, b.grad);
  const size_t side = a.grad_replaced ? 1 : 0;
  const Value &kept = side == 0 ? a.grad : b.grad, &set = side == 0 ? b.grad : a.grad;
  if (kept != nullptr && is_none(kept)) return merge_value(a.grad, b.grad);
  if (as<Tensor>(kept) == nullptr || !is_none(set)) throw NotMerged{"one side sets a .grad"};
  return kept_on(side, kept);
}

/// The very object on this side, None on the other.
Value Merger::kept_on(size_t side, const Value& value) {
  graph::Value* flags[2];
  for (size_t i = 0; i < 2; ++i) {
    interpreter_.enter_block(*fork_.side(i).block);
    flags[i] = interpreter_.builder().constant(i == side);
  }
  return std::make_shared<Optional>(merge_graph_values(flags[0], flags[1]), value, *fork_.test());
}

/// A mutation: the side that leaves a gradient alone gives the tensor one like the other's.
void Merger::write_gradient_on_both(TensorState& a, TensorState& b) {
  const size_t side = a.grad_replaced ? 0 : 1;
  const TensorState& written = side == 0 ? a : b;
  TensorState& other = side == 0 ? b : a;
  interpreter_.enter_block(*fork_.side(1 - side).block);
  other.grad = placeholder_like(written.grad, side);
  other.grad_replaced = true;
  other.grad_unread = written.grad_unread;
}

/// A mutation: the side that does not write to objects that the run meets writes to the last one
/// that the other writes to.
void Merger::write_met_on_both(Sequence& writes, const Elements& a, const Elements& b) {
  const auto& before = std::get<Elements>(*fork_.before().objects.find(&writes));
  const size_t side = a == before ? 1 : 0;
  const Elements &written = side == 0 ? a : b, &other = side == 0 ? b : a;
  const Value last = written == before             ? nullptr
                     : written.rolled() != nullptr ? last_pushed(interpreter_, *written.rolled())
                                                   : written.known().back();
  const auto* write = as<Sequence>(last);
  const auto* object = write == nullptr ? nullptr : as<RuntimeObject>(write->elements.known()[0]);
  Sequence longer(true);
  longer.elements = other;
  if (other == before && object != nullptr && is_visible(object->value) &&
      is_planted(State::met, Mutation::both_sides)) {
    interpreter_.enter_block(*fork_.side(1 - side).block);
    std::vector<Value> parts = write->elements.known();
    for (size_t i = 1; i < parts.size(); ++i) parts[i] = placeholder_like(parts[i], side);
    append(interpreter_, longer, make_tuple(std::move(parts)));
  }
  writes.elements = side == 0 ? merge_elements(a, longer.elements, true)
                              : merge_elements(longer.elements, b, true);
}

/// What one side has found out about a tensor holds behind both.
void Merger::join_findings(TensorState& a, TensorState& b) {
  if (a.cell.empty()) a.cell = b.cell;
  b.cell = a.cell;
  a.is_viewed = b.is_viewed = a.is_viewed || b.is_viewed;
  a.uncertain_alias = b.uncertain_alias = a.uncertain_alias || b.uncertain_alias;
  for (const PossibleAlias& alias : b.possible_aliases) a.possible_aliases.add(alias);
  b.possible_aliases = a.possible_aliases;
  // A gradient that only one side has read.
  if (a.grad_replaced || b.grad_replaced) return;
  if (a.grad == nullptr || (is_none(a.grad) && is_none(b.grad))) a.grad = b.grad;
  if (b.grad == nullptr) b.grad = a.grad;
}

void Merger::merge_tensor_contents(Tensor& tensor, const TensorState& of_first,
                                   const TensorState& of_second) {
  TensorState a = of_first, b = of_second;
  if (a.cell.empty()) a.cell = tensor.cell;
  join_findings(a, b);
  if (a.grad_replaced != b.grad_replaced && is_planted(State::grad, Mutation::both_sides))
    write_gradient_on_both(a, b);
  if (same_state(a, b)) {
    static_cast<TensorState&>(tensor) = a;
    return;
  }
  const bool varies = a.requires_grad != b.requires_grad;
  if (a.base != b.base || (varies ? !may_become_tracked(tensor, a, b) : a.is_leaf != b.is_leaf))
    throw NotMerged{"only one side makes a tensor part of autograd's graph"};
  if (!is_same_tensor(a, b)) throw NotMerged{"one side puts a tensor on other memory"};
  if (a.data_replaced != b.data_replaced || a.left_contents != b.left_contents)
    throw NotMerged{"one side sets the attribute data of a tensor"};
  TensorState merged = varies && b.requires_grad ? b : a;
  merged.grad = merge_grad(a, b);
  merged.grad_replaced = a.grad_replaced || b.grad_replaced;
  merged.written = a.written || b.written;
  merged.grad_unread = a.grad_unread || b.grad_unread;
  merged.version = std::max(a.version, b.version);
  if (a.base != nullptr) {
    // A view that is taken again of what its base is then.
    const auto& before = std::get<TensorState>(*fork_.before().objects.find(&tensor));
    merged.value = before.value;
    merged.past_values = before.past_values;
    merged.seen_version = std::numeric_limits<uint32_t>::max();
    ++merged.version;
    static_cast<TensorState&>(tensor) = merged;
    return;
  }
  if (a.value != b.value) {
    if (has_hooks(interpreter_.tensor_hooks, tensor, a.value) ||
        has_hooks(interpreter_.tensor_hooks, tensor, b.value))
      throw NotMerged{"a tensor with hooks"};
    merged.value = merge_contents(a, b);
    ++merged.version;
    name_merged(merged, a, b);
  }
  if (tensor.source != nullptr) merge_writes(merged, a, b);
  // Both lists begin with what they were before the test; kept twice, they would double each time.
  merged.past_values = a.past_values;
  const auto [of_a, of_b] = std::ranges::mismatch(a.past_values, b.past_values);
  merged.past_values.insert(merged.past_values.end(), of_b, b.past_values.end());
  std::erase_if(merged.past_values, [&](const graph::Value* value) { return !is_visible(value); });
  static_cast<TensorState&>(tensor) = merged;
  written_.push_back(&tensor);
}

/// Whether what one side wrote to a tensor of the run made it part of autograd's graph.
bool Merger::may_become_tracked(const Tensor& tensor, const TensorState& a,
                                const TensorState& b) const {
  return tensor.source == nullptr && a.base == nullptr && a.grad == nullptr && b.grad == nullptr &&
         !(a.requires_grad ? a : b).is_leaf && may_vary(a.requires_grad ? b : a);
}

/// The value on the two sides. Where only one requires a gradient, the other one gets none.
graph::Value* Merger::merge_contents(const TensorState& a, const TensorState& b) {
  graph::Value* values[] = {a.value, b.value};
  if (a.written != b.written && is_planted(State::contents, Mutation::both_sides)) {
    const size_t unwritten = a.written ? 1 : 0;
    interpreter_.enter_block(*fork_.side(unwritten).block);
    values[unwritten] = placeholder_of(values[1 - unwritten]->type);
  }
  if (a.requires_grad != b.requires_grad) {
    const size_t untracked = a.requires_grad ? 1 : 0;
    interpreter_.enter_block(*fork_.side(untracked).block);
    values[untracked] = op::detach(interpreter_.builder(), {values[untracked]});
    interpreter_.gradients_vary = true;
  }
  leave_size(values, a, b);
  return merge_graph_values(values[0], values[1]);
}

/// Where the values differ in one size, from 2 on, the run decides it.
void Merger::leave_size(graph::Value* (&values)[2], const TensorState& a, const TensorState& b) {
  const Type &first = values[0]->type, &second = values[1]->type;
  if (first.dtype != second.dtype || first.rank() != second.rank() || first == second ||
      interpreter_.recursion().is_building() || interpreter_.call().keeps_sizes)
    return;
  const auto [place, other] = std::ranges::mismatch(first.shape, second.shape);
  const bool is_last = std::equal(place + 1, first.shape.end(), other + 1, second.shape.end());
  const auto is_size = [](const graph::Dim& dim) { return dim.lower_bound().value_or(0) >= 2; };
  if (!is_last || !is_size(*place) || !is_size(*other) || !is_contiguous(a) || !is_contiguous(b))
    return;
  if (!interpreter_.leaves_sizes(*fork_.test()))
    throw NotMerged{cat(graph::to_string(first), " and ", graph::to_string(second)), true};
  const int64_t dim = place - first.shape.begin();
  const graph::Dim size = merged_size(*place, *other);
  for (size_t side = 0; side < 2; ++side) {
    interpreter_.enter_block(*fork_.side(side).block);
    values[side] =
        op::narrow(interpreter_.builder(), {values[side]},
                   {{"dim", dim}, {"start", int64_t{0}}, {"length", graph::AttributeValue(size)}});
  }
}

/// The dimension that is the one on one side, the other on the other.
graph::Dim Merger::merged_size(const graph::Dim& a, const graph::Dim& b) {
  for (const MergedSize& known : sizes_)
    if (known.first == a && known.second == b) return known.merged;
  const graph::Dim merged = interpreter_.new_dimension(fork_.outer());
  graph::Value* values[2];
  for (size_t side = 0; side < 2; ++side) {
    values[side] = number_in(side, interpreter_.dimension(side == 0 ? a : b));
    interpreter_.give_size(merged, values[side]);
  }
  sizes_.push_back({a, b, merged, merge_graph_values(values[0], values[1])});
  return merged;
}

/// How often a tensor was written is a number of the graph where the sides differ in that.
void Merger::merge_writes(TensorState& merged, const TensorState& a, const TensorState& b) {
  uint32_t count = counted_writes(a);
  if (count != counted_writes(b) || a.varying_writes != b.varying_writes) {
    merged.varying_writes = merge_graph_values(number_of_writes(0, a), number_of_writes(1, b));
    count = 0;
  }
  merged.silent_writes = merged.version - count;
}

graph::Value* Merger::number_of_writes(size_t side, const TensorState& state) {
  interpreter_.enter_block(*fork_.side(side).block);
  graph::Builder& builder = interpreter_.builder();
  graph::Value* count = builder.constant(int64_t{counted_writes(state)});
  if (state.varying_writes == nullptr) return count;
  return op::scalar_add(builder, {state.varying_writes, count});
}

Value merge(Fork& fork) {
  const Value result = Merger(fork).run();
  fork.close();
  return result;
}

}  // namespace janus::frontend
