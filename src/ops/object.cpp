// Operators on Python objects that a run reads: nodes of a tree, items of a list.
//
// They only read. The heap does not change while a graph runs, since writes wait until its end, so
// equal reads give equal values. If an object is not as the graph assumes (no such attribute, a
// string in place of a number, a tensor of another shape), the run bails out, as at a failed
// `guard`. The attributes `id` and `reason` tell the caller which assumption it was.
//
// Classes and objects that the graph knows are indices into a table of the graph's owner.
#include "ops/list.h"

namespace janus {

using namespace graph;

namespace {

bool is_object(const Type& type) { return type.kind == Type::Kind::object; }

void expect_objects(const Infer& infer, size_t count) {
  if (infer.inputs.size() < count)
    infer.fail(cat("expected ", count, " operands, got ", infer.inputs.size()));
  for (size_t i = 0; i < count; ++i)
    if (!is_object(infer.type(i))) infer.fail(cat("expected an object, got ", infer.type(i)));
}

void expect_count(const Infer& infer, size_t count) {
  if (infer.inputs.size() != count)
    infer.fail(cat("expected ", count, " operands, got ", infer.inputs.size()));
}

void expect_index(const Infer& infer, std::string_view name) {
  const AttributeValue* value = infer.attributes.find(name);
  const int64_t* index = value == nullptr ? nullptr : std::get_if<int64_t>(value);
  if (index == nullptr || *index < 0) infer.fail(cat("expected an index in attribute ", name));
}

void check_constant(const Infer& infer) {
  expect_count(infer, 0);
  expect_index(infer, "object");
}

std::vector<Type> infer_is_instance(const Infer& infer) {
  expect_objects(infer, 1);
  expect_count(infer, 1);
  expect_index(infer, "class");
  return {Type::boolean()};
}

std::vector<Type> infer_is(const Infer& infer) {
  expect_objects(infer, 2);
  expect_count(infer, 2);
  return {Type::boolean()};
}

std::vector<Type> infer_length(const Infer& infer) {
  expect_objects(infer, 1);
  expect_count(infer, 1);
  return {Type::i64()};
}

void check_attribute(const Infer& infer) {
  expect_objects(infer, 1);
  expect_count(infer, 1);
  const AttributeValue* value = infer.attributes.find("name");
  const auto* name = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (name == nullptr || name->empty()) infer.fail("expected a name");
}

std::vector<Type> infer_has_attribute(const Infer& infer) {
  check_attribute(infer);
  return {Type::boolean()};
}

std::vector<Type> infer_equals_constant(const Infer& infer) {
  expect_objects(infer, 1);
  expect_count(infer, 1);
  expect_index(infer, "object");
  return {Type::boolean()};
}

void check_item(const Infer& infer) {
  expect_objects(infer, 1);
  expect_count(infer, 2);
  if (infer.type(1).kind != Type::Kind::i64)
    infer.fail(cat("expected an index, got ", infer.type(1)));
}

void check_entry(const Infer& infer) {
  expect_objects(infer, 1);
  expect_count(infer, 1);
  const AttributeValue* key = infer.attributes.find("key");
  const bool known = key != nullptr && (std::holds_alternative<std::string>(*key) ||
                                        std::holds_alternative<int64_t>(*key));
  if (!known) infer.fail("expected a string or a number as key");
}

std::vector<Type> infer_has_entry(const Infer& infer) {
  check_entry(infer);
  return {Type::boolean()};
}

void check_value(const Infer& infer) {
  expect_objects(infer, 1);
  expect_count(infer, 1);
}

constexpr Trait reads = Trait::reads_heap | Trait::may_fail | Trait::no_gradient;

}  // namespace

constinit const OpDef op::object_constant{
    .name = "object_constant",
    .doc = "An object that is known when the graph is made: `object` is its number.",
    .schema = "",
    .traits = Trait::pure | Trait::no_gradient,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .check = check_constant,
};

constinit const OpDef op::object_is_instance_of_class{
    .name = "object_is_instance_of_class",
    .doc = "Whether the object's type is exactly the known class with the number `class`.",
    .schema = "",
    .traits = Trait::pure | Trait::reads_heap | Trait::no_gradient,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .infer = infer_is_instance,
};

constinit const OpDef op::object_is{
    .name = "object_is",
    .doc = "Whether two objects are identical.",
    .schema = "",
    .traits = Trait::pure | Trait::no_gradient,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .infer = infer_is,
};

constinit const OpDef op::object_has_attribute{
    .name = "object_has_attribute",
    .doc = "Whether the object's own dictionary has the key `name`, whatever its class has.",
    .schema = "",
    .traits = Trait::pure | Trait::reads_heap | Trait::no_gradient,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .infer = infer_has_attribute,
};

constinit const OpDef op::object_equals_constant{
    .name = "object_equals_constant",
    .doc =
        "Whether an object equals the known object `object`, a str, int or bytes, and has the "
        "same type.",
    .schema = "",
    .traits = Trait::pure | Trait::reads_heap | Trait::no_gradient,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .infer = infer_equals_constant,
};

constinit const OpDef op::object_attribute{
    .name = "object_attribute",
    .doc =
        "The object's attribute `name`, from its own dictionary or ({slot=true}) from a slot of "
        "its class, as the given type. `id`, `reason`: the assumption that fails if it is "
        "missing or anything else.",
    .schema = "",
    .traits = reads,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .check = check_attribute,
};

constinit const OpDef op::object_length{
    .name = "object_length",
    .doc =
        "The number of items of a list or tuple. `id`, `reason`: the assumption that fails if it "
        "is neither.",
    .schema = "",
    .traits = reads,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .infer = infer_length,
};

constinit const OpDef op::object_item{
    .name = "object_item",
    .doc =
        "An item of a list or tuple, as the given type; negative indices count from the end. "
        "`id`, `reason`: the assumption that fails if it is missing or anything else.",
    .schema = "",
    .traits = reads,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .check = check_item,
};

constinit const OpDef op::object_entry{
    .name = "object_entry",
    .doc =
        "The value of `key` in a dictionary, as the given type. `id`, `reason`: the assumption "
        "that fails if it is missing or anything else.",
    .schema = "",
    .traits = reads,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .check = check_entry,
};

constinit const OpDef op::object_has_entry{
    .name = "object_has_entry",
    .doc = "Whether an object is a dictionary that has `key`.",
    .schema = "",
    .traits = Trait::pure | Trait::reads_heap | Trait::no_gradient,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .infer = infer_has_entry,
};

constinit const OpDef op::object_value{
    .name = "object_value",
    .doc =
        "The object itself as the given type, a number or tensor. `id`, `reason`: the assumption "
        "that fails if it is anything else.",
    .schema = "",
    .traits = reads,
    .computed_by = ComputedBy::heap,
    .raises = Raises::not_for_contents,
    .check = check_value,
};

}  // namespace janus
