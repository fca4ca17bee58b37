// Reference implementations of ops/object.cpp. Numbers and tensors are no objects here.
#include "ops/list.h"
#include "ops/reference_functions.h"

namespace janus::ops {

using namespace graph;

namespace {

const ObjectReference& object(const ReferenceCall& call, size_t input = 0) {
  return std::get<ObjectReference>(call.inputs[input]);
}

const ObjectReference& known(const ReferenceCall& call) {
  return call.run.known_object(call.node.attributes.get<int64_t>("object"));
}

std::string key_of(const ReferenceCall& call) {
  const AttributeValue& key = *call.node.attributes.find("key");
  const auto* text = std::get_if<std::string>(&key);
  return text != nullptr ? *text : cat(std::get<int64_t>(key));
}

/// The object's value at a place, if it has the result's type.
std::vector<Datum> found(const ReferenceCall& call, const Datum* datum) {
  if (datum == nullptr || !call.run.fits(call.node.output()->type, *datum))
    throw GuardFailure{call.node.attributes.get_or<int64_t>("id", -1)};
  return {*datum};
}

const Datum* attribute_at(const ReferenceCall& call, const std::string& key) {
  if (object(call) == nullptr) return nullptr;
  const auto place = object(call)->attributes.find(key);
  return place == object(call)->attributes.end() ? nullptr : &place->second;
}

const std::vector<Datum>* items(const ReferenceCall& call) {
  const bool is_sequence = object(call) != nullptr && object(call)->is_sequence;
  return is_sequence ? &object(call)->items : nullptr;
}

std::vector<Datum> constant(const ReferenceCall& call) { return {known(call)}; }

std::vector<Datum> is_instance_of_class(const ReferenceCall& call) {
  return {object(call) != nullptr &&
          object(call)->class_number == call.node.attributes.get<int64_t>("class")};
}

std::vector<Datum> is_same(const ReferenceCall& call) { return {object(call) == object(call, 1)}; }

std::vector<Datum> equals_constant(const ReferenceCall& call) {
  return {object(call) != nullptr && object(call) == known(call)};
}

std::vector<Datum> has_attribute(const ReferenceCall& call) {
  return {attribute_at(call, call.node.attributes.get<std::string>("name")) != nullptr};
}

std::vector<Datum> has_entry(const ReferenceCall& call) {
  return {attribute_at(call, key_of(call)) != nullptr};
}

std::vector<Datum> value(const ReferenceCall& call) { return found(call, nullptr); }

std::vector<Datum> attribute(const ReferenceCall& call) {
  return found(call, attribute_at(call, call.node.attributes.get<std::string>("name")));
}

std::vector<Datum> entry(const ReferenceCall& call) {
  return found(call, attribute_at(call, key_of(call)));
}

std::vector<Datum> length(const ReferenceCall& call) {
  const std::vector<Datum>* const list = items(call);
  if (list == nullptr) return found(call, nullptr);
  return {static_cast<int64_t>(list->size())};
}

std::vector<Datum> item(const ReferenceCall& call) {
  const std::vector<Datum>* const list = items(call);
  if (list == nullptr) return found(call, nullptr);
  const auto count = static_cast<int64_t>(list->size());
  int64_t index = std::get<int64_t>(call.inputs[1]);
  if (index < 0) index += count;
  const bool inside = index >= 0 && index < count;
  return found(call, inside ? &(*list)[static_cast<size_t>(index)] : nullptr);
}

}  // namespace

void add_objects(Reference::Functions& functions) {
  functions[&op::object_constant] = constant;
  functions[&op::object_is_instance_of_class] = is_instance_of_class;
  functions[&op::object_is] = is_same;
  functions[&op::object_equals_constant] = equals_constant;
  functions[&op::object_has_attribute] = has_attribute;
  functions[&op::object_has_entry] = has_entry;
  functions[&op::object_value] = value;
  functions[&op::object_attribute] = attribute;
  functions[&op::object_entry] = entry;
  functions[&op::object_length] = length;
  functions[&op::object_item] = item;
}

}  // namespace janus::ops
