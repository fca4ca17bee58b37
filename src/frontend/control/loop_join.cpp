// The join of what a place held before the loop with what an iteration left there: whether both can
// be one loop-carried value, and how.
#include <algorithm>

#include "frontend/control/loop.h"
#include "frontend/control/number_parts.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/run_time_objects.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/class_sets.h"
#include "frontend/values/constants.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/strides.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

namespace {

bool is_tuple(const Value& value) {
  const auto* sequence = as<Sequence>(value);
  return sequence != nullptr && !sequence->is_list;
}

bool is_plain(const Dictionary& dictionary) {
  return dictionary.source == nullptr && !dictionary.type && dictionary.factory == nullptr &&
         dictionary.attributes == nullptr;
}

std::vector<Value> values_of(const Dictionary& dictionary) {
  std::vector<Value> values;
  for (const auto& [key, value] : dictionary.items) values.push_back(value);
  return values;
}

std::shared_ptr<Dictionary> with_values(const Dictionary& like, const std::vector<Value>& values) {
  auto made = std::make_shared<Dictionary>();
  for (size_t i = 0; i < values.size(); ++i)
    made->items.emplace_back(like.items[i].first, values[i]);
  return made;
}

}  // namespace

std::optional<std::vector<Value>> parts_of(const Value& value) {
  if (const auto* instance = as<Instance>(value))
    return instance->is_attributes() ? std::optional(values_of(*instance->fields)) : std::nullopt;
  if (const auto* dictionary = as<Dictionary>(value))
    return is_plain(*dictionary) ? std::optional(values_of(*dictionary)) : std::nullopt;
  const auto* sequence = as<Sequence>(value);
  if (sequence == nullptr || sequence->viewed || sequence->elements.rolled() != nullptr ||
      (sequence->is_list && (sequence->source != nullptr || sequence->type)))
    return std::nullopt;
  return sequence->elements.known();
}

Value made_of_parts(const Value& like, const std::vector<Value>& parts) {
  if (const auto* instance = as<Instance>(like)) {
    auto made = std::make_shared<Instance>(instance->type);
    made->fields = with_values(*instance->fields, parts);
    return made;
  }
  if (const auto* dictionary = as<Dictionary>(like)) return with_values(*dictionary, parts);
  const auto& sequence = *as<Sequence>(like);
  auto made = std::make_shared<Sequence>(sequence.is_list);
  made->type = sequence.type;
  made->elements = parts;
  return made;
}

bool Loop::join(Passage& passage, const Value& initial, const Value& end, std::string& why) {
  if (passage.kind == Passage::Kind::unmerged) return true;
  if (becomes_either(passage, initial, end)) {
    passage = Passage{Passage::Kind::either, {}};
    passage.kinds = *kinds_of_numbers(initial, end);
    at_fixpoint_ = false;
  }
  if (passage.kind == Passage::Kind::either) return join_either(passage, initial, end, why);
  if (passage.kind == Passage::Kind::same) {
    if (initial == end || is_same_number(initial, end)) {
      note_kept(initial);
      return true;
    }
    if ((initial == nullptr && end != nullptr && may_begin_certainly()) ||
        as<Undefined>(initial) != nullptr) {
      passage = Passage{Passage::Kind::last, {}};
      at_fixpoint_ = false;
    }
  }
  if (passage.kind == Passage::Kind::last) return join_last(passage, initial, end, why);
  if (passage.kind == Passage::Kind::same) {
    if (initial == nullptr || end == nullptr) {
      why = "it is not set in each iteration";
      return false;
    }
    at_fixpoint_ = false;
    const auto parts = parts_of(initial);
    passage = parts && parts_of(end)
                  ? Passage{Passage::Kind::parts, std::vector<Passage>(parts->size())}
                  : Passage{Passage::Kind::carried, {}};
  }
  if (passage.kind == Passage::Kind::parts) return join_parts(passage, initial, end, why);
  return join_carried(passage, initial, end, why);
}

namespace {

bool have_same_keys(const Dictionary& a, const Dictionary& b) {
  return std::ranges::equal(a.items, b.items, [](const auto& one, const auto& other) {
    return same_constant(one.first.get(), other.first.get());
  });
}

/// Whether both consist of parts at the same places.
bool are_of_one_form(const Value& a, const Value& b) {
  const auto *first = as<Sequence>(a), *last = as<Sequence>(b);
  if (first != nullptr && last != nullptr)
    return first->is_list == last->is_list && first->type.get() == last->type.get() &&
           first->elements.size() == last->elements.size();
  const auto *one = as<Instance>(a), *other = as<Instance>(b);
  if (one != nullptr && other != nullptr)
    return one->type.is(other->type.get()) && one->is_attributes() && other->is_attributes() &&
           have_same_keys(*one->fields, *other->fields);
  const auto *before = as<Dictionary>(a), *after = as<Dictionary>(b);
  return before != nullptr && after != nullptr && have_same_keys(*before, *after);
}

}  // namespace

bool Loop::join_parts(Passage& passage, const Value& initial, const Value& end, std::string& why) {
  const auto parts = parts_of(initial), ends = parts_of(end);
  if (!ends || !are_of_one_form(initial, end)) {
    why = "a container or object changes its form";
    return false;
  }
  if (held_.contains(initial.get())) {
    why = "a container or object changes, or is held elsewhere, before another takes its place";
    return false;
  }
  // Another place that holds the same has the same parts.
  if (!is_tuple(initial) && !replaced_.emplace(initial.get(), end.get()).second) return true;
  for (size_t i = 0; i < parts->size(); ++i)
    if (!join(passage.parts[i], (*parts)[i], (*ends)[i], why)) return false;
  return true;
}

void Loop::note_kept(const Value& value) {
  if (const auto* closure = as<Closure>(value)) {
    for (const Value& each : closure->defaults) note_kept(each);
    for (const auto& [name, each] : closure->keyword_defaults) note_kept(each);
  } else if (const auto* method = as<Method>(value)) {
    note_kept(method->self);
  } else if (const auto* either = as<Either>(value)) {
    note_kept(either->if_true);
    note_kept(either->if_false);
  } else if (is_tuple(value)) {
    if (const auto parts = parts_of(value))
      for (const Value& each : *parts) note_kept(each);
  } else if (value != nullptr) {
    kept_.insert(value.get());
    holds_unseen_ |= as<Native>(value) != nullptr;
  }
}

void Loop::check_replacements() {
  std::map<const AbstractValue*, const AbstractValue*> by_initial, by_end;
  for (const auto& [initial, end] : replaced_) {
    const auto made = replacements_.find(initial);
    const bool is_changed = made != replacements_.end() &&
                            parts_of(made->second.value) != std::optional(made->second.parts);
    if (is_changed || holds_unseen_ || kept_.contains(initial) || kept_.contains(end) ||
        !by_initial.emplace(initial, end).second || !by_end.emplace(end, initial).second) {
      held_.insert(initial);
      at_fixpoint_ = false;
    }
  }
}

bool Loop::becomes_either(const Passage& passage, const Value& initial, const Value& end) {
  if (passage.kind != Passage::Kind::same && passage.kind != Passage::Kind::carried) return false;
  if (!kinds_of_numbers(initial, end)) return false;
  // What the first iteration makes a float for good is one from the second one on.
  const bool is_first_only = is_number(initial) && is_number(end) &&
                             !interpreter_.takes_first_iteration(test_) &&
                             begins_in_all_runs(interpreter_, test_, parts_);
  return initial != end && !is_first_only;
}

bool Loop::join_either(const Passage& passage, const Value& initial, const Value& end,
                       std::string& why) {
  const std::optional<NumberParts> parts = parts_by_kind(interpreter_, end, passage.kinds);
  if (!parts || !initial_parts(initial, passage.kinds)) {
    why = "a number takes several kinds";
    return false;
  }
  pending_.ends.insert(pending_.ends.end(), {parts->is_high, parts->high, parts->low});
  return true;
}

bool Loop::join_last(Passage& passage, const Value& initial, const Value& end, std::string& why) {
  std::vector<graph::Type> before = std::exchange(passage.types, {});
  passage.last = end;
  if (!collect_last(passage, end)) {
    why = "it is not set in each iteration to a number or tensor";
    return false;
  }
  if (before != passage.types) at_fixpoint_ = false;
  needs_iteration_ = needs_iteration_ || initial == nullptr;
  return true;
}

bool Loop::collect_last(Passage& passage, const Value& end) {
  if (end == nullptr || as<Unmerged>(end) != nullptr) return false;
  if (is_number(end)) {
    pending_.ends.push_back(interpreter_.graph_value(end));
    passage.types.push_back(pending_.ends.back()->type);
    return true;
  }
  if (const auto* either = as<Either>(end)) {
    pending_.ends.push_back(either->flag);
    passage.types.push_back(either->flag->type);
    return collect_last(passage, either->if_true) && collect_last(passage, either->if_false);
  }
  if (const auto* known = as<Known>(end)) return is_immutable_constant(known->object.get());
  if (const auto* tuple = as<Sequence>(end)) {
    if (tuple->is_list || tuple->viewed || tuple->source != nullptr || rolled(end) != nullptr)
      return false;
    for (const Value& part : tuple->elements.known())
      if (!collect_last(passage, part)) return false;
    return true;
  }
  auto tensor = shared_as<Tensor>(end);
  if (tensor == nullptr || tensor->is_parameter || tensor->grad != nullptr ||
      tensor->source != nullptr || (tensor->requires_grad && tensor->is_leaf) ||
      !is_current(*tensor))
    return false;
  if (is_sized_inside(tensor->value->type)) return false;
  if (tensor->requires_grad) tracks_ = true;
  add_end(tensor);
  passage.types.push_back(tensor->value->type);
  return true;
}

bool Loop::is_sized_inside(const graph::Type& type) const {
  return interpreter_.is_sized_in(type, [&](const graph::Block* block) {
    return block == at_ || !interpreter_.is_open(block);
  });
}

void Loop::add_end(const std::shared_ptr<Tensor>& tensor) {
  pending_.ends.push_back(tensor->value);
  pending_.roots.push_back(roots_of(tensor));
}

bool Loop::join_carried(Passage& passage, const Value& initial, const Value& end,
                        std::string& why) {
  if (end == nullptr || as<Unmerged>(end) != nullptr) {
    why = "it is not set in each iteration";
    return false;
  }
  if (is_number(initial) && is_number(end)) {
    graph::Value* value = interpreter_.graph_value(end);
    if (value->type != initial_number(initial)->type) {
      why = "a number changes its kind";
      return false;
    }
    pending_.ends.push_back(value);
    return true;
  }
  if (as<RuntimeObject>(initial) != nullptr || as<RuntimeObject>(end) != nullptr)
    return join_object(passage, initial, end, why);
  auto first = shared_as<Tensor>(initial), last = shared_as<Tensor>(end);
  if (first == nullptr || last == nullptr) {
    why = "it is of another kind in each iteration";
    return false;
  }
  if (!join_tracked(passage, *first, *last, why)) return false;
  if (first->value->type != last->value->type || first->is_parameter || last->is_parameter ||
      last->grad != nullptr) {
    why = cat("it is ", graph::to_string(first->value->type), " first, then ",
              graph::to_string(last->value->type));
    return false;
  }
  if (!is_current(*last)) fail("it carries a view of what was written");
  // What an iteration makes of it lies otherwise, as far as is known.
  if (is_surely_not_contiguous(*first) && first->strides != last->strides) moves_ = true;
  add_end(last);
  return true;
}

bool Loop::join_object(Passage& passage, const Value& initial, const Value& end, std::string& why) {
  graph::Value* value = object_value(interpreter_, end);
  if (value == nullptr || initial_object(initial) == nullptr) {
    why = "it is of another kind in each iteration";
    return false;
  }
  const size_t count = passage.classes.size();
  passage.classes = united(std::move(passage.classes), possible_classes(interpreter_, initial));
  passage.classes = united(std::move(passage.classes), possible_classes(interpreter_, end));
  if (passage.classes.size() != count) at_fixpoint_ = false;
  if (passage.classes.empty()) {
    why = "an object of which nothing was seen";
    return false;
  }
  pending_.ends.push_back(value);
  return true;
}

bool Loop::join_tracked(Passage& passage, const Tensor& first, const Tensor& last,
                        std::string& why) {
  if (!first.requires_grad && !last.requires_grad) {
    why = "a leaf and what is computed";
    return first.is_leaf == last.is_leaf;
  }
  if (!last.requires_grad || last.is_leaf) {
    why = "it loses its gradient in the loop";
    return false;
  }
  tracks_ = true;
  if (!first.requires_grad || first.is_leaf) needs_iteration_ = true;
  if (passage.tracked) return true;
  if (!first.requires_grad && attempt_ > 0) {
    why = "it requires a gradient only after several iterations";
    return false;
  }
  passage.tracked = true;
  at_fixpoint_ = false;
  return true;
}

bool Loop::is_same_number(const Value& a, const Value& b) {
  const auto *first = as<Known>(a), *second = as<Known>(b);
  if (first != nullptr && second != nullptr)
    return same_constant(first->object.get(), second->object.get());
  const auto *left = as<Number>(a), *right = as<Number>(b);
  return left != nullptr && right != nullptr && left->type == right->type &&
         ((left->dim && right->dim && *left->dim == *right->dim) ||
          (left->value != nullptr && left->value == right->value));
}

}  // namespace janus::frontend
