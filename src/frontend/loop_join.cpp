// Whether what a place held before the loop and what a round left there can go through the loop as
// one thing, and how.
#include "frontend/loop.h"

#include "frontend/merge.h"
#include "frontend/operators.h"
#include "frontend/run_time.h"
#include "frontend/strides.h"
#include "frontend/tensor.h"

namespace janus::frontend {

bool Loop::join(Passage& passage, const Value& initial, const Value& end, std::string& why) {
  if (passage.kind == Passage::Kind::unmerged) return true;
  if (becomes_either(passage, initial, end)) {
    passage = Passage{Passage::Kind::either, {}};
    passage.kinds = *kinds_of_numbers(initial, end);
    settled_ = false;
  }
  if (passage.kind == Passage::Kind::either) return join_either(passage, initial, end, why);
  if (passage.kind == Passage::Kind::same) {
    if (initial == end || is_same_number(initial, end)) return true;
    if ((initial == nullptr && end != nullptr && may_begin_certainly()) ||
        as<Undefined>(initial) != nullptr) {
      passage = Passage{Passage::Kind::last, {}};
      settled_ = false;
    }
  }
  if (passage.kind == Passage::Kind::last) return join_last(passage, initial, end, why);
  if (passage.kind == Passage::Kind::same) {
    if (initial == nullptr || end == nullptr) {
      why = "it is not set in each round";
      return false;
    }
    settled_ = false;
    const auto *first = as<Sequence>(initial), *last = as<Sequence>(end);
    if (first != nullptr && last != nullptr && !first->is_list) {
      passage = Passage{Passage::Kind::parts, std::vector<Passage>(first->elements.size())};
    } else {
      passage = Passage{Passage::Kind::carried, {}};
    }
  }
  if (passage.kind == Passage::Kind::parts) {
    const auto *first = as<Sequence>(initial), *last = as<Sequence>(end);
    if (last == nullptr || last->is_list || last->type.get() != first->type.get() ||
        last->elements.size() != first->elements.size()) {
      why = "a tuple changes its form";
      return false;
    }
    for (size_t i = 0; i < first->elements.size(); ++i)
      if (!join(passage.parts[i], first->elements[i], last->elements[i], why)) return false;
    return true;
  }
  return join_carried(passage, initial, end, why);
}

bool Loop::becomes_either(const Passage& passage, const Value& initial, const Value& end) {
  if (passage.kind != Passage::Kind::same && passage.kind != Passage::Kind::carried) return false;
  if (!kinds_of_numbers(initial, end)) return false;
  // What the first round makes a float for good is one from the second one on.
  const bool is_first_only = is_number(initial) && is_number(end) &&
                             !interpreter_.takes_first_round(test_) &&
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
    why = "it is not set in each round to a number or tensor";
    return false;
  }
  if (before != passage.types) settled_ = false;
  needs_round_ = needs_round_ || initial == nullptr;
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
  if (tensor->requires_grad) tracks_ = true;
  add_end(tensor);
  passage.types.push_back(tensor->value->type);
  return true;
}

void Loop::add_end(const std::shared_ptr<Tensor>& tensor) {
  pending_.ends.push_back(tensor->value);
  std::vector<std::shared_ptr<Tensor>> roots = {memory_of(tensor)};
  for (const PossibleAlias& alias : roots.front()->possible_aliases)
    if (auto other = alias.tensor.lock()) roots.push_back(other);
  pending_.roots.push_back(std::move(roots));
}

bool Loop::join_carried(Passage& passage, const Value& initial, const Value& end,
                        std::string& why) {
  if (end == nullptr || as<Unmerged>(end) != nullptr) {
    why = "it is not set in each round";
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
    why = "it is of another kind in each round";
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
  // What a round makes of it lies otherwise, as far as is known.
  if (is_surely_not_contiguous(*first) && first->strides != last->strides) moves_ = true;
  add_end(last);
  return true;
}

bool Loop::join_object(Passage& passage, const Value& initial, const Value& end, std::string& why) {
  graph::Value* value = object_value(interpreter_, end);
  if (value == nullptr || initial_object(initial) == nullptr) {
    why = "it is of another kind in each round";
    return false;
  }
  const size_t count = passage.classes.size();
  passage.classes = united(std::move(passage.classes), possible_classes(interpreter_, initial));
  passage.classes = united(std::move(passage.classes), possible_classes(interpreter_, end));
  if (passage.classes.size() != count) settled_ = false;
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
  if (!first.requires_grad || first.is_leaf) needs_round_ = true;
  if (passage.tracked) return true;
  if (!first.requires_grad && attempt_ > 0) {
    why = "it requires a gradient only after several rounds";
    return false;
  }
  passage.tracked = true;
  settled_ = false;
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
