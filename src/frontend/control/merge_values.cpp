// Merges values by their kinds: numbers, tensors, containers, and what only one side has.
#include <algorithm>
#include <limits>

#include "frontend/control/merge.h"
#include "frontend/control/number_parts.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/recursion_state.h"
#include "frontend/core/run_time_objects.h"
#include "frontend/core/tensor_hooks.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/class_sets.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/strides.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

namespace {

/// Whether the longer of two lists is the shorter one with elements put in front.
bool grew_at_front(const Elements& a, const Elements& b) {
  const Elements &shorter = a.size() < b.size() ? a : b, &longer = a.size() < b.size() ? b : a;
  auto surplus = static_cast<std::ptrdiff_t>(longer.size() - shorter.size());
  return !std::equal(shorter.begin(), shorter.end(), longer.begin()) &&
         std::equal(shorter.begin(), shorter.end(), longer.begin() + surplus);
}

/// The length if it is the same on both sides; null: only the run knows.
Value same_length(const Value& a, const Value& b) {
  const auto *first = as<Known>(a), *second = as<Known>(b);
  if (first != nullptr && second != nullptr)
    return same_constant(first->object.get(), second->object.get()) ? a : nullptr;
  const auto *left = as<Number>(a), *right = as<Number>(b);
  bool same =
      left != nullptr && right != nullptr && left->dim && right->dim && *left->dim == *right->dim;
  return same ? a : nullptr;
}

}  // namespace

Value Merger::merge_value(const Value& a, const Value& b) {
  if (a == b) return a;
  if (a == nullptr || b == nullptr) throw NotMerged{"only one side sets it"};
  if (as<Undefined>(a) != nullptr) return merge_undefined(0, b);
  if (as<Undefined>(b) != nullptr) return merge_undefined(1, a);
  if (is_number(a) && is_number(b) && kind_of_number(a) == kind_of_number(b))
    return merge_numbers(a, b);
  if (kinds_of_numbers(a, b)) return either_kind(a, b);
  if (as<RuntimeObject>(a) != nullptr || as<RuntimeObject>(b) != nullptr)
    return merge_objects(a, b);
  if (as<Deferred>(a) != nullptr || as<Deferred>(b) != nullptr) return merge_deferred(a, b);
  if (is_none(a) != is_none(b) || as<Optional>(a) != nullptr || as<Optional>(b) != nullptr)
    return merge_optionals(a, b);
  if (a->kind != b->kind) throw differing(a, b);
  switch (a->kind) {
    case ValueKind::known:
      return merge_known(*as<Known>(a), *as<Known>(b));
    case ValueKind::tensor:
      return merge_tensors(shared_as<Tensor>(a), shared_as<Tensor>(b));
    case ValueKind::sequence: {
      auto place = merged_.find({a, b});
      if (place != merged_.end()) return place->second;
      Value merged = merge_sequences(*as<Sequence>(a), *as<Sequence>(b));
      return merged_[{a, b}] = merged;
    }
    case ValueKind::dictionary: {
      auto place = merged_.find({a, b});
      if (place != merged_.end()) return place->second;
      Value merged = merge_dictionaries(*as<Dictionary>(a), *as<Dictionary>(b));
      return merged_[{a, b}] = merged;
    }
    case ValueKind::outcome:
      return merge_outcomes(*as<Outcome>(a), *as<Outcome>(b));
    case ValueKind::instance:
      if (!is_exception(a) || !is_exception(b)) throw differing(a, b);
      return merge_exceptions(*as<Instance>(a), *as<Instance>(b));
    case ValueKind::method: {
      const auto *first = as<Method>(a), *second = as<Method>(b);
      return std::make_shared<Method>(merge_value(first->self, second->self),
                                      merge_value(first->function, second->function));
    }
    default:
      throw differing(a, b);
  }
}

/// A value that is None on one side, or may be.
Value Merger::merge_optionals(const Value& a, const Value& b) {
  auto place = merged_.find({a, b});
  if (place != merged_.end()) return place->second;
  const Value* sides[] = {&a, &b};
  graph::Value* flags[2];
  Value parts[2];
  for (size_t side = 0; side < 2; ++side) {
    const auto* optional = as<Optional>(*sides[side]);
    parts[side] = optional != nullptr     ? optional->value
                  : is_none(*sides[side]) ? std::make_shared<Undefined>()
                                          : *sides[side];
    interpreter_.enter_block(*fork_.side(side).block);
    flags[side] = optional != nullptr ? optional->flag
                                      : interpreter_.builder().constant(!is_none(*sides[side]));
  }
  for (const Value& part : parts)
    if (as<Tensor>(part) == nullptr && !is_number(part) && as<Undefined>(part) == nullptr)
      throw differing(a, b);
  Value value = merge_value(parts[0], parts[1]);
  if (!is_none(a) && is_none(b) && as<Optional>(a) == nullptr)
    return merged_[{a, b}] = std::make_shared<Optional>(fork_.flag(), value, *fork_.test());
  return merged_[{a, b}] = std::make_shared<Optional>(merge_graph_values(flags[0], flags[1]), value,
                                                      *fork_.test());
}

/// What a function gives: on sides that return nobody looks at an exception, and the other way
/// iteration.
Value Merger::merge_outcomes(const Outcome& a, const Outcome& b) {
  const auto part = [&](const Value& first, const Value& second) {
    if (first == nullptr) return only(1, second);
    return second == nullptr ? only(0, first) : merge_value(first, second);
  };
  return std::make_shared<Outcome>(merge_value(a.raises, b.raises), part(a.value, b.value),
                                   part(a.exception, b.exception), a.test);
}

Value Merger::merge_exceptions(const Instance& a, const Instance& b) {
  if (!a.type.is(b.type.get())) throw NotMerged{"exceptions of two classes"};
  auto merged = std::make_shared<Instance>(a.type);
  const Value fields = merge_dictionaries(*a.fields, *b.fields);
  merged->fields = shared_as<Dictionary>(fields);
  return merged;
}

/// What one side alone has, as it is known behind the branch, where it is looked at only if that
/// side was taken.
Value Merger::only(size_t side, const Value& value) {
  if (value == nullptr || as<Known>(value) != nullptr || as<Undefined>(value) != nullptr ||
      as<Deferred>(value) != nullptr)
    return value;
  if (const auto* object = dynamic_cast<const Changeable*>(value.get()); object && existed(*object))
    return value;
  Value& known = alone_[side][value];
  if (known != nullptr) return known;
  if (is_number(value) || as<Tensor>(value) != nullptr)
    return known = merge_undefined(1 - side, value);
  auto* sequence = as<Sequence>(value);
  if (sequence != nullptr && sequence->elements.rolled() != nullptr) sequence = nullptr;
  const auto* instance = as<Instance>(value);
  auto* dictionary = instance == nullptr         ? as<Dictionary>(value)
                     : instance->is_attributes() ? instance->fields.get()
                                                 : nullptr;
  if ((sequence == nullptr || sequence->source != nullptr || sequence->viewed) &&
      (dictionary == nullptr || dictionary->source != nullptr))
    return alone(side, value);
  expect_no_partner(side, value.get());
  alone_[side][value] = value;
  if (sequence != nullptr)
    for (size_t i = 0; i < sequence->elements.size(); ++i)
      sequence->elements[i] = only(side, sequence->elements[i]);
  else if (!existed(*dictionary))
    for (auto& [key, item] : dictionary->items) item = only(side, item);
  return value;
}

/// One of two values, or of those that they may be.
Value Merger::either(const Value& a, const Value& b, const NotMerged& why) {
  try {
    return std::make_shared<Either>(fork_.flag(), alone(0, a), alone(1, b), *fork_.test(), why.why);
  } catch (const NotMerged&) {
    throw why;
  }
}

/// Numbers of two kinds: which it is, is a value of the graph.
Value Merger::either_kind(const Value& a, const Value& b) {
  auto place = merged_.find({a, b});
  if (place != merged_.end()) return place->second;
  const NumberKinds kinds = *kinds_of_numbers(a, b);
  std::optional<NumberParts> parts[2];
  for (size_t side = 0; side < 2; ++side) {
    interpreter_.enter_block(*fork_.side(side).block);
    parts[side] = parts_by_kind(interpreter_, side == 0 ? a : b, kinds);
  }
  const auto number = [&](graph::Value* NumberParts::* part) {
    return interpreter_.number(merge_graph_values((*parts[0]).*part, (*parts[1]).*part));
  };
  return merged_[{a, b}] = std::make_shared<Either>(
             merge_graph_values(parts[0]->is_high, parts[1]->is_high), number(&NumberParts::high),
             number(&NumberParts::low), *fork_.test(),
             cat(name_of(a), " on one side, ", name_of(b), " on the other"));
}

/// What one side alone has, as it is known behind the branch.
Value Merger::alone(size_t side, const Value& value) {
  if (value == nullptr) throw NotMerged{"only one side sets it"};
  if (as<Known>(value) != nullptr) return value;
  Value& known = alone_[side][value];
  if (known == nullptr) known = new_alone(side, value);
  return known;
}

Value Merger::new_alone(size_t side, const Value& value) {
  if (const auto* object = dynamic_cast<const Changeable*>(value.get()); object && existed(*object))
    return value;
  if (const auto* both = as<Either>(value)) {
    interpreter_.enter_block(*fork_.side(1 - side).block);
    graph::Value* other = interpreter_.builder().constant(false);
    graph::Value* flag =
        side == 0 ? merge_graph_values(both->flag, other) : merge_graph_values(other, both->flag);
    return std::make_shared<Either>(flag, alone(side, both->if_true), alone(side, both->if_false),
                                    both->test, both->why);
  }
  if (const auto* method = as<Method>(value))
    return std::make_shared<Method>(alone(side, method->self), alone(side, method->function));
  if (const auto* closure = as<Closure>(value); closure != nullptr && closure->defaults.empty() &&
                                                closure->keyword_defaults.empty() &&
                                                existed(*closure->variables))
    return value;
  if (const auto* instance = as<Instance>(value)) {
    alone(side, instance->fields);
    if (instance->items != nullptr) alone(side, instance->items);
    if (instance->elements != nullptr) alone(side, instance->elements);
    return value;
  }
  auto* sequence = as<Sequence>(value);
  auto* dictionary = as<Dictionary>(value);
  if ((sequence != nullptr && sequence->source == nullptr && !sequence->viewed) ||
      (dictionary != nullptr && dictionary->source == nullptr)) {
    expect_no_partner(side, value.get());
    alone_[side][value] = value;
    if (sequence != nullptr)
      for (size_t i = 0; i < sequence->elements.size(); ++i)
        sequence->elements[i] = alone(side, sequence->elements[i]);
    else
      for (auto& [key, item] : dictionary->items) item = alone(side, item);
    return value;
  }
  // A tensor would carry its gradient on one side alone.
  if (!is_number(value)) throw NotMerged{cat(name_of(value), " on one side only")};
  return merge_undefined(1 - side, value);
}

/// The value that only the other side has.
Value Merger::merge_undefined(size_t side, const Value& other) {
  interpreter_.enter_block(*fork_.side(side).block);
  Value placeholder = placeholder_like(other, 1 - side);
  return side == 0 ? merge_value(placeholder, other) : merge_value(other, placeholder);
}

/// A value of the same form, made in the block at hand, that nothing reads.
Value Merger::placeholder_like(const Value& value, size_t side_of_value) {
  if (as<Known>(value) != nullptr || as<Undefined>(value) != nullptr) return value;
  if (const auto* number = as<Number>(value))
    return interpreter_.number(placeholder_of(number->type == Type::Kind::boolean ? Type::boolean()
                                              : number->type == Type::Kind::i64   ? Type::i64()
                                                                                  : Type::f64()));
  if (const auto* tensor = as<Tensor>(value)) {
    const TensorState& state = tensor_in(side_of_value, *tensor);
    auto placeholder = std::make_shared<Tensor>();
    placeholder->value = placeholder_of(state.value->type);
    placeholder->requires_grad = state.requires_grad;
    placeholder->is_leaf = state.is_leaf;
    placeholder->is_parameter = state.is_parameter;
    placeholder->strides = state.strides;
    placeholder->producer = state.producer;
    return placeholder;
  }
  const auto* tuple = as<Sequence>(value);
  if (tuple == nullptr || tuple->is_list || tuple->viewed)
    throw NotMerged{cat(name_of(value), " on one side only")};
  auto placeholder = std::make_shared<Sequence>(false);
  placeholder->type = tuple->type;
  for (const Value& part : tuple->elements.known())
    placeholder->elements.push_back(placeholder_like(part, side_of_value));
  return placeholder;
}

Value Merger::merge_known(const Known& a, const Known& b) {
  if (!same_constant(a.object.get(), b.object.get()))
    throw NotMerged{cat("different objects (", Py_TYPE(a.object.get())->tp_name, ", ",
                        Py_TYPE(b.object.get())->tp_name, ")")};
  bool same_place = a.source == b.source || !is_immutable_constant(a.object.get());
  return std::make_shared<Known>(a.object, same_place ? a.source : nullptr);
}

graph::Value* Merger::number_in(size_t side, const Value& number) {
  interpreter_.enter_block(*fork_.side(side).block);
  return interpreter_.graph_value(number);
}

Value Merger::merge_numbers(const Value& a, const Value& b) {
  const auto *first = as<Known>(a), *second = as<Known>(b);
  if (first != nullptr && second != nullptr &&
      same_constant(first->object.get(), second->object.get()))
    return merge_known(*first, *second);
  Object example;
  if (fork_.example()) {
    const Value& taken = fork_.example().is(Py_True) ? a : b;
    example = as<Known>(taken) != nullptr ? as<Known>(taken)->object : as<Number>(taken)->example;
  }
  // What tells the sides apart is the test itself.
  if (first != nullptr && second != nullptr && PyBool_Check(first->object.get()))
    return interpreter_.number(first->object.is(Py_True) ? fork_.flag() : negated_flag(), example);
  const auto *left = as<Number>(a), *right = as<Number>(b);
  if (left != nullptr && right != nullptr && left->dim && right->dim && *left->dim == *right->dim)
    return interpreter_.dimension(*left->dim);
  graph::Value* value = merge_graph_values(number_in(0, a), number_in(1, b));
  return interpreter_.number(value, example);
}

/// An object that only the run meets, on one side at least.
Value Merger::merge_objects(const Value& a, const Value& b) {
  graph::Value* values[2];
  Classes classes;
  for (size_t side = 0; side < 2; ++side) {
    const Value& value = side == 0 ? a : b;
    interpreter_.enter_block(*fork_.side(side).block);
    interpreter_.known_classes = fork_.side(side).state->state.known_classes;
    values[side] = object_value(interpreter_, value);
    if (values[side] == nullptr) throw differing(a, b);
    classes = united(std::move(classes), possible_classes(interpreter_, value));
  }
  interpreter_.known_classes = fork_.before().state.known_classes;
  return std::make_shared<RuntimeObject>(merge_graph_values(values[0], values[1]),
                                         std::move(classes));
}

/// Made in front of the branch, so that whoever asks for it again finds it.
graph::Value* Merger::negated_flag() {
  interpreter_.enter_block(fork_.outer());
  return interpreter_.negated_flag(fork_.flag());
}

graph::Value* Merger::merge_graph_values(graph::Value* a, graph::Value* b) {
  if (a == b) return a;
  const auto is_gone = [&](const graph::Block* block) { return !is_visible(block); };
  if (a->type != b->type || interpreter_.is_sized_in(a->type, is_gone))
    throw NotMerged{cat(graph::to_string(a->type), " and ", graph::to_string(b->type))};
  graph::Value*& result = results_[{a, b}];
  if (result != nullptr) return result;
  result = interpreter_.builder().graph().new_value(a->type, a->name == b->name ? a->name : "");
  result->definition = node_;
  result->index = static_cast<uint32_t>(node_->outputs.size());
  node_->outputs.push_back(result);
  fork_.side(0).block->results.push_back(a);
  fork_.side(1).block->results.push_back(b);
  return result;
}

/// That two containers are the same one on one side and two on the other is not tracked.
void Merger::expect_one_partner(const AbstractValue* a, const AbstractValue* b) {
  const auto expect = [](auto& partners, const AbstractValue* value, const AbstractValue* other) {
    const auto [place, is_new] =
        partners.emplace(value->shared_from_this(), other->shared_from_this());
    if (!is_new && place->second.get() != other)
      throw NotMerged{"two variables share an object on one side only"};
  };
  expect(partner_of_first_, a, b);
  expect(partner_of_second_, b, a);
}

/// Nor that one is merged with another in one place, and with nothing in another.
void Merger::expect_no_partner(size_t side, const AbstractValue* value) {
  auto& partners = side == 0 ? partner_of_first_ : partner_of_second_;
  const auto [place, is_new] = partners.emplace(value->shared_from_this(), nullptr);
  if (!is_new && place->second != nullptr)
    throw NotMerged{"two variables share an object on one side only"};
}

bool Merger::is_current(size_t side, const Tensor& tensor) {
  const TensorState& state = tensor_in(side, tensor);
  if (state.base == nullptr) return true;
  return state.seen_version == tensor_in(side, *state.base).version &&
         is_current(side, *state.base);
}

void Merger::collect_roots(size_t side, const std::shared_ptr<Tensor>& tensor,
                           std::vector<std::shared_ptr<Tensor>>& roots) {
  std::shared_ptr<Tensor> root = tensor;
  for (;;) {
    const TensorState& state = tensor_in(side, *root);
    const std::shared_ptr<Tensor> next = state.base != nullptr ? state.base : state.taken_from;
    if (next == nullptr) break;
    root = next;
  }
  roots.push_back(root);
  const auto add = [&](const PossibleAliases& aliases) {
    for (const PossibleAlias& alias : aliases)
      if (auto other = alias.tensor.lock()) roots.push_back(std::move(other));
  };
  add(tensor_in(side, *root).possible_aliases);
  // The list that it is an element of may be gone before it.
  if (const auto& list = tensor_in(side, *root).list_memory)
    add(tensor_in(side, *list).possible_aliases);
}

/// Whether a tensor without a gradient may become one that is taken for tracked. Ways of a
/// recursion can't be followed where that shows.
bool Merger::may_vary(const TensorState& untracked) const {
  const RecursionState& recursion = interpreter_.recursion();
  const bool in_recursion = recursion.is_building() || recursion.is_first_activation(*fork_.test());
  return graph::is_differentiable(untracked.value->type.dtype) &&
         !(in_recursion && untracked.source != nullptr);
}

Value Merger::merge_tensors(const std::shared_ptr<Tensor>& a, const std::shared_ptr<Tensor>& b) {
  auto place = merged_.find({a, b});
  if (place != merged_.end()) return place->second;
  const TensorState &first = tensor_in(0, *a), &second = tensor_in(1, *b);
  const bool tracked = first.requires_grad || second.requires_grad;
  const bool varies = first.requires_grad != second.requires_grad;
  if (varies && !may_vary(first.requires_grad ? second : first))
    throw NotMerged{"it requires a gradient on one side only"};
  if ((first.requires_grad && first.is_leaf) || (second.requires_grad && second.is_leaf))
    throw NotMerged{"a leaf that requires a gradient"};
  if ((!varies && first.is_leaf != second.is_leaf) || first.is_parameter != second.is_parameter)
    throw NotMerged{"a parameter and a tensor"};
  // Hooks that come to the merged one would have to stand behind those that it has.
  if (has_hooks(interpreter_.tensor_hooks, *a, first.value) ||
      has_hooks(interpreter_.tensor_hooks, *b, second.value))
    throw NotMerged{"a tensor with hooks"};
  if (first.grad != nullptr || second.grad != nullptr || !is_current(0, *a) || !is_current(1, *b))
    throw NotMerged{"a tensor with state of its own"};
  // How a row of elements lies decides of nothing that is computed of it how that lies.
  if (first.value->type == second.value->type && first.value->type.rank() > 1 &&
      surely_lie_differently(first, second))
    throw NotMerged{"a tensor that lies otherwise in memory"};
  graph::Value* value = merge_contents(first, second);
  auto merged = std::make_shared<Tensor>();
  merged->value = value;
  merged->requires_grad = tracked;
  merged->is_leaf = !tracked && first.is_leaf;
  merged->is_parameter = first.is_parameter;
  if (first.value->type != second.value->type)
    merged->strides = contiguous_strides(value->type.shape);
  else if (first.strides == second.strides)
    merged->strides = first.strides;
  merged->uncertain_alias = first.uncertain_alias || second.uncertain_alias;
  merged->version = std::max(first.version, second.version);
  name_merged(*merged, first, second);
  MergedTensor record{merged, {}};
  collect_roots(0, a, record.roots);
  collect_roots(1, b, record.roots);
  tensors_.push_back(std::move(record));
  return merged_[{a, b}] = merged;
}

/// Tensors that are, for as long as it lives, as a side has left them.
class Merger::AsLeft {
 public:
  AsLeft() = default;
  AsLeft(const AsLeft&) = delete;
  AsLeft& operator=(const AsLeft&) = delete;
  ~AsLeft() {
    for (auto& [tensor, state] : now_) static_cast<TensorState&>(*tensor) = std::move(state);
  }
  void put(Tensor& tensor, TensorState left) {
    if (now_.emplace(&tensor, tensor).second) static_cast<TensorState&>(tensor) = std::move(left);
  }

 private:
  std::map<Tensor*, TensorState> now_;
};

/// Puts all that reading the values looks at into the state of the side: the merge has changed it,
/// or it is still as on the other one.
void Merger::put_back(size_t side, const std::vector<Value>& values, AsLeft& as_left) {
  for (const Value& value : values) {
    if (auto* tensor = as<Tensor>(value))
      put_back(side, *tensor, as_left);
    else if (const auto* tuple = as<Sequence>(value); tuple != nullptr && !tuple->is_list)
      put_back(side, tuple->elements.known(), as_left);
  }
}

void Merger::put_back(size_t side, Tensor& tensor, AsLeft& as_left) {
  const TensorState state = tensor_in(side, tensor);
  if (existed(tensor)) as_left.put(tensor, state);
  for (const PossibleAlias& alias : state.possible_aliases)
    if (const auto other = alias.tensor.lock(); other != nullptr && existed(*other))
      as_left.put(*other, tensor_in(side, *other));
  if (const auto& viewed = viewed_by(state)) put_back(side, *viewed, as_left);
}

/// Of the elements of both lists, as they are on their sides.
ElementForm Merger::form_of(const Elements& a, const Elements& b) {
  std::optional<ElementForm> form;
  std::string why = "a list of which no element was seen";
  for (size_t side = 0; side < 2; ++side) {
    const Elements& elements = side == 0 ? a : b;
    const Rolled* list = elements.rolled().get();
    if (list == nullptr && elements.empty()) continue;
    std::optional<ElementForm> of_side;
    if (list != nullptr) {
      of_side = list->form;
    } else {
      AsLeft as_left;
      put_back(side, elements.known(), as_left);
      interpreter_.enter_block(*fork_.side(side).block);
      of_side = common_form(interpreter_, elements.known(), why);
    }
    if (of_side && form) {
      of_side = joined(*form, *of_side, why);
      if (a.rolled() != nullptr || b.rolled() != nullptr) why = "lists of different elements";
    }
    if (!of_side) throw NotMerged{why};
    form = std::move(of_side);
  }
  if (!form) throw NotMerged{why};
  return *form;
}

/// The elements of a side as a list of the graph.
std::shared_ptr<const Rolled> Merger::rolled_in(size_t side, const Elements& elements,
                                                const Rolled& merged) {
  interpreter_.enter_block(*fork_.side(side).block);
  if (const auto& list = elements.rolled()) return facing(interpreter_, *list, merged.front);
  AsLeft as_left;
  put_back(side, elements.known(), as_left);
  return roll(interpreter_, merged.test, merged.form, elements.known(), merged.front);
}

/// A list that has other elements, or another number of them, on the other side.
std::shared_ptr<const Rolled> Merger::merge_rolled(const Elements& a, const Elements& b) {
  const Rolled* like = b.rolled() != nullptr ? b.rolled().get() : a.rolled().get();
  auto merged = std::make_shared<Rolled>();
  merged->form = form_of(a, b);
  merged->test = like != nullptr ? like->test : *fork_.test();
  merged->front = like != nullptr ? like->front : grew_at_front(a, b);
  merged->undecided = like != nullptr ? like->undecided : a.size() + b.size() <= 1;
  merged->memory = std::make_shared<Tensor>();
  MergedTensor record{merged->memory, {}};
  std::shared_ptr<const Rolled> lists[2];
  for (size_t side = 0; side < 2; ++side) {
    lists[side] = rolled_in(side, side == 0 ? a : b, *merged);
    const std::shared_ptr<Tensor>& memory = lists[side]->memory;
    add_to_memory(*merged->memory, tensor_in(side, *memory));
    merged->memory->possible_aliases.add({memory, memory->version});
  }
  for (const PossibleAlias& alias : merged->memory->possible_aliases)
    if (auto other = alias.tensor.lock()) record.roots.push_back(std::move(other));
  for (size_t i = 0; i < lists[0]->lists.size(); ++i)
    merged->lists.push_back(merge_graph_values(lists[0]->lists[i], lists[1]->lists[i]));
  merged->length = same_length(lists[0]->length, lists[1]->length);
  memories_.push_back(std::move(record));
  return merged;
}

Elements Merger::merge_elements(const Elements& a, const Elements& b, bool is_list) {
  if (a == b) return a;
  bool rolls = a.rolled() != nullptr || b.rolled() != nullptr || a.size() != b.size();
  if (rolls && is_list) return Elements(merge_rolled(a, b));
  if (a.size() != b.size()) throw NotMerged{"containers of different lengths"};
  Elements merged;
  for (size_t i = 0; i < a.size(); ++i) merged.push_back(merge_value(a[i], b[i]));
  return merged;
}

Items Merger::merge_items(const Items& a, const Items& b) {
  bool same = std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& x, const auto& y) {
    return x.first.is(y.first.get()) || same_constant(x.first.get(), y.first.get());
  });
  if (!same) throw NotMerged{"dicts of different keys"};
  Items merged;
  for (size_t i = 0; i < a.size(); ++i)
    merged.emplace_back(a[i].first, merge_value(a[i].second, b[i].second));
  return merged;
}

Value Merger::merge_sequences(const Sequence& a, const Sequence& b) {
  if (a.is_list != b.is_list || a.type.get() != b.type.get())
    throw NotMerged{"containers of different classes"};
  if (a.is_list) {
    // A list that existed before the branch keeps its identity, which the merged one would not
    // have.
    if (existed(a) || existed(b) || a.source != nullptr || b.source != nullptr)
      throw NotMerged{"two lists"};
    expect_one_partner(&a, &b);
  }
  auto merged = std::make_shared<Sequence>(a.is_list);
  merged->type = a.type;
  if (a.most != b.most) throw NotMerged{"deques of different lengths"};
  merged->most = a.most;
  merged->elements = merge_elements(elements_in(0, a), elements_in(1, b), may_roll(a));
  return merged;
}

Value Merger::merge_dictionaries(const Dictionary& a, const Dictionary& b) {
  if (existed(a) || existed(b) || a.source != nullptr || b.source != nullptr)
    throw NotMerged{"two dicts"};
  if (a.type.get() != b.type.get() || a.factory != b.factory)
    throw NotMerged{"dicts of different classes"};
  expect_one_partner(&a, &b);
  auto merged = made_dict(a.type);
  merged->factory = a.factory;
  merged->items = merge_items(a.items, b.items);
  if (a.attributes != nullptr)
    merged->attributes->items = merge_items(a.attributes->items, b.attributes->items);
  return merged;
}

/// What needs no gradient outside must not seem to have one through the blocks; a leaf that was
/// written starts anew.
void Merger::finish_value(Tensor& tensor) {
  const bool is_list = tensor.value == nullptr;  // it only stands for what a list may hold
  if (is_list || tensor.value->definition != node_ || interpreter_.differentiable.empty()) return;
  if (!tensor.requires_grad || tensor.is_leaf)
    tensor.value = op::detach(interpreter_.builder(), {tensor.value});
  if (tensor.requires_grad) interpreter_.differentiable.insert(tensor.value);
}

void Merger::finish_tensors() {
  const auto share_roots = [](const MergedTensor& a, const MergedTensor& b) {
    return std::any_of(a.roots.begin(), a.roots.end(), [&](const auto& root) {
      return std::find(b.roots.begin(), b.roots.end(), root) != b.roots.end();
    });
  };
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& tensor = *tensors_[i].tensor;
    relate_to_others(tensors_[i].tensor, tensors_[i].roots, fork_.before().objects);
    for (const auto& root : tensors_[i].roots) {
      if (root.get() == &tensor) continue;
      relate(tensors_[i].tensor, root);
      // A tensor of the run may be gone before what is merged with it: it is not written by then,
      // and whatever it is merged with once more knows of this one.
      if (root->source == nullptr) relate(root, tensors_[i].tensor);
    }
    // Two that are one object on a side.
    for (size_t j = 0; j < i; ++j) {
      if (!share_roots(tensors_[i], tensors_[j])) continue;
      relate(tensors_[i].tensor, tensors_[j].tensor);
      relate(tensors_[j].tensor, tensors_[i].tensor);
    }
    finish_value(tensor);
  }
  for (Tensor* tensor : written_) finish_value(*tensor);
  for (const MergedTensor& memory : memories_) {
    // Tensors that lie in the list on a side, and what became of them behind it.
    for (const auto& root : memory.roots) relate(root, memory.tensor);
    relate_to_others(memory.tensor, memory.roots, fork_.before().objects);
    for (const MergedTensor& merged : tensors_)
      if (share_roots(memory, merged)) relate(merged.tensor, memory.tensor);
  }
}

}  // namespace janus::frontend
