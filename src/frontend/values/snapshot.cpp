#include "frontend/values/snapshot.h"

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "base/check.h"

namespace janus::frontend {

namespace {

thread_local Changeable* first_changeable = nullptr;
thread_local uint64_t changeable_count = 0;

}  // namespace

Changeable::Changeable() : number_(changeable_count++), next_(first_changeable) {
  if (next_ != nullptr) next_->previous_ = this;
  first_changeable = this;
}

Changeable::~Changeable() {
  if (next_ != nullptr) next_->previous_ = previous_;
  (previous_ != nullptr ? previous_->next_ : first_changeable) = next_;
}

Changeable* Changeable::first() { return first_changeable; }

uint64_t Changeable::count() { return changeable_count; }

ChangeableState state_of(const Changeable& object) {
  if (const auto* tensor = dynamic_cast<const Tensor*>(&object))
    return static_cast<const TensorState&>(*tensor);
  if (const auto* sequence = dynamic_cast<const Sequence*>(&object)) return sequence->elements;
  if (const auto* dictionary = dynamic_cast<const Dictionary*>(&object)) return dictionary->items;
  if (const auto* set = dynamic_cast<const SetValue*>(&object)) return set->elements;
  if (const auto* variables = dynamic_cast<const Variables*>(&object)) return variables->values;
  if (const auto* iterator = dynamic_cast<const Iterator*>(&object)) return iterator->taken;
  TORCHJANUS_CHECK(false, "state_of: an object of an unknown class");
}

namespace {

/// All of a tensor's state: a member that is added does not compile until it is named here.
auto members_of(const TensorState& state) {
  const auto& [value, source, object, cell, requires_grad, is_leaf, is_parameter, version,
               silent_writes, varying_writes, written, data_replaced, left_contents, grad_fn_name,
               producer, produced_by, base, taken_from, view_node, view_output, is_one_of_list,
               taken_with_gradients, seen_version, is_viewed, untracked, view_callee,
               view_arguments, strides, storage, uncertain_alias, is_borrowed, possible_aliases,
               list_memory, past_values, grad, grad_replaced, grad_unread] = state;
  return std::tuple_cat(
      std::make_tuple(object.get()),
      std::tie(value, source, cell, requires_grad, is_leaf, is_parameter, version, silent_writes,
               varying_writes, written, data_replaced, left_contents, grad_fn_name, producer,
               produced_by, base, taken_from, view_node, view_output, is_one_of_list,
               taken_with_gradients, seen_version, is_viewed, untracked, view_callee,
               view_arguments, strides, storage, uncertain_alias, is_borrowed, possible_aliases,
               list_memory, past_values, grad, grad_replaced, grad_unread));
}

bool same_items(const Items& a, const Items& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first.is(y.first.get()) && x.second == y.second;
  });
}

}  // namespace

bool same_elements(const SetElements& a, const SetElements& b) {
  return std::ranges::equal(a, b, [](const Value& x, const Value& y) {
    return x == y || (known_object(x) != nullptr && known_object(x) == known_object(y));
  });
}

bool same_state(const ChangeableState& a, const ChangeableState& b) {
  if (a.index() != b.index()) return false;
  if (const auto* tensor = std::get_if<TensorState>(&a))
    return members_of(*tensor) == members_of(std::get<TensorState>(b));
  if (const auto* elements = std::get_if<Elements>(&a)) return *elements == std::get<Elements>(b);
  if (const auto* items = std::get_if<Items>(&a)) return same_items(*items, std::get<Items>(b));
  if (const auto* set = std::get_if<SetElements>(&a))
    return same_elements(*set, std::get<SetElements>(b));
  if (const auto* variables = std::get_if<VariableValues>(&a))
    return *variables == std::get<VariableValues>(b);
  return std::get<uint64_t>(a) == std::get<uint64_t>(b);
}

bool same_grad(const TensorState& before, const TensorState& now) {
  if (before.grad_replaced != now.grad_replaced) return false;
  return before.grad == now.grad || (is_none(before.grad) && is_none(now.grad)) ||
         (before.grad == nullptr && !now.grad_replaced);
}

bool is_same_tensor(const TensorState& a, const TensorState& b) {
  TensorState other = b;
  // What is written to it.
  other.value = a.value;
  other.version = a.version;
  other.silent_writes = a.silent_writes;
  other.varying_writes = a.varying_writes;
  other.written = a.written;
  other.past_values = a.past_values;
  other.data_replaced = a.data_replaced;
  other.left_contents = a.left_contents;
  // What autograd makes of that.
  other.requires_grad = a.requires_grad;
  other.is_leaf = a.is_leaf;
  other.grad_fn_name = a.grad_fn_name;
  other.producer = a.producer;
  other.produced_by = a.produced_by;
  other.grad = a.grad;
  other.grad_replaced = a.grad_replaced;
  other.grad_unread = a.grad_unread;
  // What was found out.
  other.cell = a.cell;
  other.seen_version = a.seen_version;
  other.is_viewed = a.is_viewed;
  other.uncertain_alias = a.uncertain_alias;
  other.possible_aliases = a.possible_aliases;
  return members_of(a) == members_of(other);
}

bool same_but_for_reads(const ChangeableState& before, const ChangeableState& after) {
  const auto* tensor = std::get_if<TensorState>(&before);
  if (tensor == nullptr) return same_state(before, after);
  const auto& now = std::get<TensorState>(after);
  return (tensor->base != nullptr || tensor->value == now.value) && is_same_tensor(*tensor, now) &&
         tensor->requires_grad == now.requires_grad && same_grad(*tensor, now) &&
         tensor->data_replaced == now.data_replaced;
}

namespace {

void set_state(Changeable& object, const ChangeableState& state) {
  if (auto* tensor = dynamic_cast<Tensor*>(&object)) {
    // The name of a tensor's cell, once given, is its name on every side.
    std::string cell = tensor->cell;
    static_cast<TensorState&>(*tensor) = std::get<TensorState>(state);
    if (tensor->cell.empty()) tensor->cell = std::move(cell);
  } else if (auto* sequence = dynamic_cast<Sequence*>(&object)) {
    sequence->elements = std::get<Elements>(state);
  } else if (auto* dictionary = dynamic_cast<Dictionary*>(&object)) {
    dictionary->items = std::get<Items>(state);
  } else if (auto* set = dynamic_cast<SetValue*>(&object)) {
    set->elements = std::get<SetElements>(state);
  } else if (auto* variables = dynamic_cast<Variables*>(&object)) {
    variables->values = std::get<VariableValues>(state);
  }
}

}  // namespace

void Snapshot::add(Changeable& object, std::shared_ptr<const void> owner) {
  if (owner == nullptr || !places_.emplace(&object, objects_.size()).second) return;
  Saved saved;
  if (dynamic_cast<Iterator*>(&object) != nullptr)
    saved.weak_owner = owner;
  else
    saved.owner = std::move(owner);
  saved.object = &object;
  saved.state = state_of(object);
  objects_.push_back(std::move(saved));
}

void Snapshot::add(Changeable& object) { add(object, object.owner()); }

Snapshot Snapshot::take() {
  Snapshot snapshot;
  // The newest object stands first in the list; merges go from the oldest to the newest.
  std::vector<Changeable*> all;
  for (Changeable* each = Changeable::first(); each != nullptr; each = each->next_changeable())
    all.push_back(each);
  for (size_t i = all.size(); i-- > 0;) snapshot.add(*all[i]);
  return snapshot;
}

Snapshot Snapshot::again() const {
  Snapshot snapshot;
  for (const Saved& saved : objects_)
    if (saved.alive()) snapshot.add(*saved.object);
  return snapshot;
}

void Snapshot::restore() const {
  for (const Saved& saved : objects_)
    if (saved.alive()) set_state(*saved.object, saved.state);
}

bool Snapshot::has_moved_iterator() const {
  return std::ranges::any_of(objects_, [](const Saved& saved) {
    const auto* taken = std::get_if<uint64_t>(&saved.state);
    return taken != nullptr && saved.alive() &&
           *taken != static_cast<const Iterator*>(saved.object)->taken;
  });
}

const ChangeableState* Snapshot::find(const Changeable* object) const {
  auto place = places_.find(object);
  return place == places_.end() ? nullptr : &objects_[place->second].state;
}

namespace {

ChangeableState empty_as(const ChangeableState& state) {
  return std::visit(
      [](const auto& held) { return ChangeableState(std::remove_cvref_t<decltype(held)>()); },
      state);
}

}  // namespace

ObjectScope::~ObjectScope() {
  const Snapshot objects = Snapshot::take();  // each lives until all are empty
  for (const Snapshot::Saved& saved : objects.objects())
    if (saved.alive() && saved.object->number() >= first_)
      set_state(*saved.object, empty_as(saved.state));
}

}  // namespace janus::frontend
