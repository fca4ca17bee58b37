// The state that an iteration begins with: the state before the loop, with a parameter of the block
// at hand for all that is carried. Behind the loop the node's results stand in place of the
// parameters.
#include "frontend/control/loop.h"
#include "frontend/control/number_parts.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/run_time_objects.h"
#include "frontend/core/tensor_hooks.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"

namespace janus::frontend {

void Loop::set_state(const Parameter& parameter) {
  before_.restore(interpreter_);
  tensors_.clear();
  replacements_.clear();
  set_objects(parameter);
  for (auto& [place, passage] : heap_passages_) {
    Heap::Change& change = interpreter_.heap.table(place.first)->changes[place.second];
    change.held = instantiate(passage, change.held.value(), parameter, "an attribute or item");
  }
}

void Loop::set_objects(const Parameter& parameter) {
  // By index: instantiating may reach more tensors of the entry.
  for (size_t i = 0; i < before_.objects.objects().size(); ++i) {
    const Snapshot::Saved& saved = before_.objects.objects()[i];
    auto passages = passages_.find(saved.object);
    bool grows = growth_.contains(dynamic_cast<Sequence*>(saved.object));
    if (!saved.alive() || (passages == passages_.end() && !grows)) continue;
    if (auto* tensor = dynamic_cast<Tensor*>(saved.object)) {
      begin_contents(*tensor, parameter);
    } else if (auto* variables = dynamic_cast<Variables*>(saved.object)) {
      for (auto& [name, passage] : passages->second)
        if (Value value = instantiate(passage, variables->values[name], parameter, name))
          variables->values[name] = value;
    } else if (auto* sequence = dynamic_cast<Sequence*>(saved.object)) {
      if (growth_.contains(sequence)) {
        begin_list(*sequence, parameter);
        continue;
      }
      for (size_t e = 0; e < sequence->elements.size(); ++e)
        sequence->elements[e] = instantiate(passage_at(*saved.object, key_of(e)),
                                            sequence->elements[e], parameter, "an element");
    } else if (auto* dictionary = dynamic_cast<Dictionary*>(saved.object)) {
      for (size_t e = 0; e < dictionary->items.size(); ++e)
        dictionary->items[e].second =
            instantiate(passage_at(*saved.object, key_of(e)), dictionary->items[e].second,
                        parameter, "an item");
    }
  }
}

void Loop::begin_list(Sequence& sequence, const Parameter& parameter) {
  const Growth& growth = growth_.at(&sequence);
  const std::shared_ptr<const Rolled> before = sequence.elements.rolled();
  const auto list = in_front([&] {
    return before != nullptr
               ? facing(interpreter_, *before, growth.front)
               : roll(interpreter_, test_, growth.form, sequence.elements.known(), growth.front);
  });
  add_to_memory(*growth.memory, *list->memory);
  // Another loop around this one begins with the same elements each time.
  if (before != nullptr && holds_tensors(growth.form) &&
      in_front([&] { return interpreter_.may_come_again(*list->memory); }))
    growth.memory->uncertain_alias = true;
  if (before != nullptr) growth.memory->possible_aliases.add({list->memory, 0});
  list->test = test_;
  list->memory = growth.memory;
  list->front = growth.front;
  list->undecided = growth.undecided;
  list->length = nullptr;
  for (graph::Value*& each : list->lists) each = parameter(each);
  sequence.elements = ElementList(list);
}

void Loop::begin_contents(Tensor& tensor, const Parameter& parameter) {
  interpreter_.history.overwritten.emplace(tensor.value, nullptr);
  tensor.past_values.push_back(tensor.value);
  tensor.value = parameter(tensor.value);
  if (tracked_contents_.contains(&tensor)) {
    tensor.requires_grad = true;
    tensor.is_leaf = false;
  }
  if (tensor.requires_grad) interpreter_.differentiable.insert(tensor.value);
  tensor.written = true;
  ++tensor.version;
  ++tensor.silent_writes;
}

Value Loop::instantiate(const Passage& passage, const Value& initial, const Parameter& parameter,
                        const std::string& name) {
  switch (passage.kind) {
    case Passage::Kind::same:
      return initial;
    case Passage::Kind::either: {
      const NumberParts parts = *initial_parts(initial, passage.kinds);
      graph::Value* const is_high = parameter(parts.is_high);
      const Value high = interpreter_.number(parameter(parts.high));
      return std::make_shared<Either>(is_high, high, interpreter_.number(parameter(parts.low)),
                                      test_, cat(name, " is of several kinds"));
    }
    case Passage::Kind::last:
      return instantiate_last(passage, initial, name, parameter);
    case Passage::Kind::unmerged:
      return std::make_shared<Unmerged>(
          test_, cat(name, " is not of the same kind in all iterations: ", passage.why_not),
          /*in_first_iteration=*/true);
    case Passage::Kind::parts:
      return instantiate_parts(passage, initial, parameter, name);
    case Passage::Kind::carried:
      break;
  }
  if (is_number(initial)) return interpreter_.number(parameter(initial_number(initial)));
  if (!passage.classes.empty())
    return std::make_shared<RuntimeObject>(parameter(initial_object(initial)), passage.classes);
  auto from = shared_as<Tensor>(initial);
  if (!is_current(*from)) fail("it carries a view of what was written");
  if (has_hooks(interpreter_.tensor_hooks, *from, from->value))
    fail("it carries a tensor with hooks");
  auto tensor = std::make_shared<Tensor>();
  tensor->value = parameter(from->value);
  tensor->requires_grad = passage.tracked;
  tensor->is_leaf = !passage.tracked && from->is_leaf;
  if (passage.tracked) interpreter_.differentiable.insert(tensor->value);
  tensor->version = from->version;
  tensor->uncertain_alias = from->uncertain_alias;
  CarriedTensor record{tensor, roots_of(from)};
  for (const auto& root : record.roots) tensor->possible_aliases.add({root, root->version});
  tensors_.push_back(std::move(record));
  return tensor;
}

Value Loop::instantiate_parts(const Passage& passage, const Value& initial,
                              const Parameter& parameter, const std::string& name) {
  const bool is_tuple = as<Sequence>(initial) != nullptr && !as<Sequence>(initial)->is_list;
  if (auto made = replacements_.find(initial.get()); made != replacements_.end())
    return made->second.value;
  std::vector<Value> parts = *parts_of(initial);
  // An iteration has changed it before another one took its place.
  if (parts.size() != passage.parts.size()) fail("a container or object changes its form");
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i] = instantiate(passage.parts[i], parts[i], parameter, name);
  Value made = made_of_parts(initial, parts);
  if (!is_tuple) replacements_[initial.get()] = {made, std::move(parts)};
  return made;
}

Value Loop::instantiate_last(const Passage& passage, const Value& initial, const std::string& name,
                             const Parameter& parameter) {
  Value unreadable = initial;
  if (initial == nullptr)
    unreadable = std::make_shared<Unmerged>(
        test_, cat(name, " is read in an iteration of the loop before it is set there"));
  if (at_ != nullptr) {
    for (const graph::Type& type : passage.types) parameter(placeholder(type));
    return unreadable;
  }
  size_t next = 0;
  return last_value(passage.last, passage, next, parameter);
}

Value Loop::last_value(const Value& like, const Passage& passage, size_t& next,
                       const Parameter& parameter) {
  if (const auto* tuple = as<Sequence>(like)) {
    auto made = std::make_shared<Sequence>(false);
    made->type = tuple->type;
    for (const Value& part : tuple->elements.known())
      made->elements.push_back(last_value(part, passage, next, parameter));
    return made;
  }
  if (as<Known>(like) != nullptr && !is_number(like)) return like;
  if (const auto* either = as<Either>(like)) {
    graph::Value* const flag = parameter(placeholder(passage.types[next++]));
    const Value if_true = last_value(either->if_true, passage, next, parameter);
    return std::make_shared<Either>(
        flag, if_true, last_value(either->if_false, passage, next, parameter), test_, either->why);
  }
  graph::Value* value = parameter(placeholder(passage.types[next++]));
  if (is_number(like)) return interpreter_.number(value);
  const Tensor& from = *as<Tensor>(like);
  auto tensor = std::make_shared<Tensor>();
  tensor->value = value;
  tensor->requires_grad = from.requires_grad;
  tensor->is_leaf = from.is_leaf;
  if (from.requires_grad) interpreter_.differentiable.insert(value);
  tensors_.push_back({tensor, {}});
  return tensor;
}

graph::Value* Loop::placeholder(const graph::Type& type) {
  return in_front([&]() -> graph::Value* {
    graph::Builder& builder = interpreter_.builder();
    if (type.is_tensor())
      return op::full(builder, {builder.constant(0.0)},
                      {{"size", type.shape}, {"dtype", type.dtype}});
    if (type.kind == graph::Type::Kind::boolean) return builder.constant(false);
    if (type.kind == graph::Type::Kind::i64) return builder.constant(int64_t{0});
    return builder.constant(0.0);
  });
}

graph::Value* Loop::initial_number(const Value& number) {
  return in_front([&] { return interpreter_.graph_value(number); });
}

std::optional<NumberParts> Loop::initial_parts(const Value& number, const NumberKinds& kinds) {
  return in_front([&] { return parts_by_kind(interpreter_, number, kinds); });
}

graph::Value* Loop::initial_object(const Value& object) {
  return in_front([&] { return object_value(interpreter_, object); });
}

}  // namespace janus::frontend
