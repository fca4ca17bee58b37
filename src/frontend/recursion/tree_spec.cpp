#include "frontend/recursion/tree_spec.h"

#include <algorithm>

#include "frontend/core/run_time_objects.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/class_sets.h"
#include "frontend/values/constants.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

using graph::Type;
using Kind = TreeSpec::Kind;

bool same_value(const Value& a, const Value& b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || a->kind != b->kind) return false;
  if (const auto* first = as<Known>(a)) {
    const auto* second = as<Known>(b);
    return same_constant(first->object.get(), second->object.get()) &&
           (first->source == second->source || is_immutable_constant(first->object.get()));
  }
  if (const auto* first = as<Number>(a)) {
    const auto* second = as<Number>(b);
    if (first->type != second->type) return false;
    if (first->dim && second->dim) return *first->dim == *second->dim;
    return first->value != nullptr && first->value == second->value;
  }
  if (const auto* first = as<Method>(a)) {
    const auto* second = as<Method>(b);
    return same_value(first->self, second->self) && same_value(first->function, second->function);
  }
  return false;
}

bool same_held(const Held& a, const Held& b) {
  if (!a.is_value() || !b.is_value())
    return a.is_unknown() == b.is_unknown() && a.is_absent() == b.is_absent();
  return same_value(a.value(), b.value());
}

bool same_spec(const TreeSpec& a, const TreeSpec& b) {
  if (a.kind != b.kind || a.parts.size() != b.parts.size()) return false;
  for (size_t i = 0; i < a.parts.size(); ++i)
    if (!same_spec(a.parts[i], b.parts[i])) return false;
  switch (a.kind) {
    case Kind::same:
      return same_value(a.value, b.value);
    case Kind::object:
      return true;
    case Kind::number:
      return a.graph_type == b.graph_type;
    case Kind::tensor:
      return a.graph_type == b.graph_type && a.requires_grad == b.requires_grad &&
             a.is_leaf == b.is_leaf && a.strides == b.strides;
    case Kind::tuple:
    case Kind::instance:
      return a.type.is(b.type.get()) && std::equal(a.keys.begin(), a.keys.end(), b.keys.begin(),
                                                   b.keys.end(), [](const auto& x, const auto& y) {
                                                     return same_constant(x.get(), y.get());
                                                   });
    case Kind::dictionary:
      return std::equal(
          a.keys.begin(), a.keys.end(), b.keys.begin(), b.keys.end(),
          [](const auto& x, const auto& y) { return same_constant(x.get(), y.get()); });
    case Kind::list:
      return true;
    case Kind::grown:
      return a.elements == b.elements && a.front == b.front;
    case Kind::shared:
      return a.index == b.index;
  }
  return false;
}

bool add_classes(TreeSpec& spec, const TreeSpec& more) {
  const size_t count = spec.classes.size();
  spec.classes = united(std::move(spec.classes), more.classes);
  bool grew = spec.classes.size() != count;
  for (size_t i = 0; i < spec.parts.size(); ++i)
    if (add_classes(spec.parts[i], more.parts[i])) grew = true;
  return grew;
}

bool join_strides(TreeSpec& spec, TreeSpec& other) {
  bool differed = spec.kind == Kind::tensor && spec.strides && spec.strides != other.strides;
  if (spec.kind == Kind::tensor && spec.strides != other.strides)
    spec.strides = other.strides = std::nullopt;
  for (size_t i = 0; i < std::min(spec.parts.size(), other.parts.size()); ++i)
    if (join_strides(spec.parts[i], other.parts[i])) differed = true;
  return differed;
}

// --- taking apart -------------------------------------------------------------------------------

void Flattening::add(graph::Value* value, std::shared_ptr<Tensor> tensor) {
  values.push_back(value);
  tensors.push_back(std::move(tensor));
}

TreeSpec Flattening::take(const Value& value, const std::string& part) {
  if (value == nullptr || as<Unmerged>(value) != nullptr)
    interpreter_.refuse(ReasonCode::dynamic_value, cat(part, " in a recursion"));
  TreeSpec same;
  same.value = value;
  switch (value->kind) {
    case ValueKind::known:
      return take_known(value, part);
    case ValueKind::number: {
      if (as<Number>(value)->dim && !varies_(part)) return same;
      TreeSpec spec{.kind = Kind::number, .graph_type = {as<Number>(value)->type}};
      add(interpreter_.graph_value(value));
      return spec;
    }
    case ValueKind::run_time: {
      TreeSpec spec{.kind = Kind::object, .classes = possible_classes(interpreter_, value)};
      add(as<RuntimeObject>(value)->value);
      return spec;
    }
    default:
      break;
  }
  auto [place, is_new] = places_.try_emplace(value.get(), next_place_);
  if (!is_new) return {.kind = Kind::shared, .index = place->second};
  ++next_place_;
  if (auto tensor = shared_as<Tensor>(value)) return take_tensor(tensor, part);
  if (const Rolled* list = rolled(value); list != nullptr && !existed_(*value))
    return take_grown(*list);
  if (const auto* sequence = as<Sequence>(value);
      sequence != nullptr && sequence->source == nullptr && sequence->viewed == nullptr &&
      (!sequence->is_list || !existed_(*value)))
    return take_sequence(*sequence, part);
  if (const auto* dictionary = as<Dictionary>(value); dictionary != nullptr &&
                                                      dictionary->source == nullptr &&
                                                      !dictionary->type && !existed_(*value))
    return take_fields(*dictionary, Kind::dictionary, part);
  if (const auto* instance = as<Instance>(value);
      instance != nullptr && instance->is_attributes() && !existed_(*instance->fields)) {
    TreeSpec spec = take_fields(*instance->fields, Kind::instance, part);
    spec.type = instance->type;
    return spec;
  }
  if (varies_(part) || (as<Method>(value) == nullptr && !existed_(*value)))
    interpreter_.refuse(ReasonCode::dynamic_value, cat(part, " in a recursion"));
  return same;
}

TreeSpec Flattening::take_known(const Value& value, const std::string& part) {
  TreeSpec same;
  same.value = value;
  if (!varies_(part)) return same;
  if (is_number(value)) {
    graph::Value* number = interpreter_.graph_value(value);
    add(number);
    return {.kind = Kind::number, .graph_type = number->type};
  }
  graph::Value* object = object_value(interpreter_, value);
  if (object == nullptr)
    interpreter_.refuse(ReasonCode::dynamic_value, cat(part, " in a recursion"));
  add(object);
  return {.kind = Kind::object, .classes = possible_classes(interpreter_, value)};
}

TreeSpec Flattening::take_tensor(const std::shared_ptr<Tensor>& tensor, const std::string& part) {
  if (tensor->source != nullptr && !varies_(part)) return {.value = tensor};
  graph::Value* value = read(interpreter_, *tensor);
  if (tensor->is_parameter || tensor->grad != nullptr)
    interpreter_.refuse(ReasonCode::autograd, cat(part, " in a recursion is a leaf"));
  add(value, tensor);
  return {.kind = Kind::tensor,
          .graph_type = value->type,
          .requires_grad = tensor->requires_grad,
          .is_leaf = tensor->is_leaf,
          .strides = tensor->strides};
}

TreeSpec Flattening::take_sequence(const Sequence& sequence, const std::string& part) {
  TreeSpec spec{.kind = sequence.is_list ? Kind::list : Kind::tuple, .type = sequence.type};
  for (size_t i = 0; i < sequence.elements.size(); ++i)
    spec.parts.push_back(take(sequence.elements[i], cat(part, "[", i, "]")));
  return spec;
}

TreeSpec Flattening::take_grown(const Rolled& list) {
  for (graph::Value* each : list.lists) add(each, list.memory);
  return {.kind = Kind::grown, .elements = list.form, .front = list.front};
}

TreeSpec Flattening::take_fields(const Dictionary& fields, TreeSpec::Kind kind,
                                 const std::string& part) {
  TreeSpec spec{.kind = kind};
  for (const auto& [key, value] : fields.items) {
    spec.keys.push_back(key);
    spec.parts.push_back(take(value, cat(part, ".", text_of(key.get()))));
  }
  return spec;
}

// --- putting together ---------------------------------------------------------------------------

Value Rebuilding::make(const TreeSpec& spec) {
  switch (spec.kind) {
    case Kind::same:
      // Objects with an identity count as places, whether they are taken apart or not.
      if (spec.value->kind != ValueKind::known && spec.value->kind != ValueKind::number)
        places_.push_back(spec.value);
      return spec.value;
    case Kind::number:
      tensors.push_back(nullptr);
      return interpreter_.number(next_(spec.graph_type));
    case Kind::object:
      tensors.push_back(nullptr);
      return std::make_shared<RuntimeObject>(next_(Type::object("object")), spec.classes);
    case Kind::shared:
      return places_.at(spec.index);
    default:
      return make_new(spec);
  }
}

Value Rebuilding::make_new(const TreeSpec& spec) {
  const size_t place = places_.size();
  places_.push_back(nullptr);
  if (spec.kind == Kind::tensor) {
    auto tensor = make_tensor(interpreter_, next_(spec.graph_type), spec.requires_grad);
    tensor->is_leaf = spec.is_leaf;
    tensor->strides = spec.strides;
    tensors.push_back(tensor);
    return places_[place] = tensor;
  }
  if (spec.kind == Kind::tuple || spec.kind == Kind::list) {
    auto sequence = std::make_shared<Sequence>(spec.kind == Kind::list);
    sequence->type = spec.type;
    for (const TreeSpec& part : spec.parts) sequence->elements.push_back(make(part));
    return places_[place] = sequence;
  }
  if (spec.kind == Kind::grown) {
    auto list = std::make_shared<Rolled>();
    list->form = spec.elements;
    list->front = spec.front;
    list->memory = std::make_shared<Tensor>();
    for (const Type& type : list_types(spec.elements)) {
      list->lists.push_back(next_(type));
      tensors.push_back(list->memory);
    }
    auto sequence = std::make_shared<Sequence>(true);
    sequence->elements = ElementList(std::move(list));
    return places_[place] = sequence;
  }
  auto fields = std::make_shared<Dictionary>();
  for (size_t i = 0; i < spec.parts.size(); ++i)
    fields->items.emplace_back(spec.keys[i], make(spec.parts[i]));
  if (spec.kind == Kind::dictionary) return places_[place] = fields;
  auto instance = std::make_shared<Instance>(spec.type);
  instance->fields = fields;
  return places_[place] = instance;
}

void collect_types(const TreeSpec& spec, std::vector<Type>& types) {
  if (spec.kind == Kind::number || spec.kind == Kind::tensor) types.push_back(spec.graph_type);
  if (spec.kind == Kind::object) types.push_back(Type::object("object"));
  if (spec.kind == Kind::grown)
    for (Type& type : list_types(spec.elements)) types.push_back(std::move(type));
  for (const TreeSpec& part : spec.parts) collect_types(part, types);
}

}  // namespace janus::frontend
