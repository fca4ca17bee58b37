// Operators that read lists: elements by position, a list as one tensor, and the operators that
// their gradients need. All are pure.
//
// The gradient of a list is a list of gradients that is aligned with the list's end. It may be
// shorter (zeros are missing at the beginning) or longer (extra elements in front belong to
// nothing). `list_resize` makes it as long as the list.
#include "graph/builder.h"
#include "ops/container.h"
#include "ops/list.h"

namespace janus {

using namespace graph;

namespace {

const Type& element_type(const Infer& infer, size_t input = 0) {
  if (infer.inputs.size() <= input || infer.type(input).kind != Type::Kind::list)
    infer.fail("expected a list");
  return infer.type(input).elements.front();
}

void expect_count(const Infer& infer, size_t count) {
  if (infer.inputs.size() != count)
    infer.fail(cat("expected ", count, " operands, got ", infer.inputs.size()));
}

void expect_integer(const Infer& infer, size_t input) {
  if (infer.type(input).kind != Type::Kind::i64)
    infer.fail(cat("expected an integer, got ", infer.type(input)));
}

std::vector<Type> infer_list_item(const Infer& infer) {
  expect_count(infer, 2);
  expect_integer(infer, 1);
  return {element_type(infer)};
}

std::vector<Type> infer_list_reverse(const Infer& infer) {
  expect_count(infer, 1);
  element_type(infer);
  return {infer.type(0)};
}

std::vector<Type> infer_list_resize(const Infer& infer) {
  expect_count(infer, 2);
  expect_integer(infer, 1);
  if (!carries_gradient(element_type(infer))) infer.fail("expected elements that have zeros");
  return {infer.type(0)};
}

std::vector<Type> infer_list_sum(const Infer& infer) {
  expect_count(infer, 2);
  const bool is_container = !infer.type(0).is_tensor() && carries_gradient(infer.type(0));
  if (infer.type(0) != infer.type(1) || !is_container)
    infer.fail("expected two frames, or two lists of one type whose elements have gradients");
  return {infer.type(0)};
}

std::vector<Type> infer_list_only(const Infer& infer) {
  expect_count(infer, 3);
  expect_integer(infer, 1);
  expect_integer(infer, 2);
  if (!carries_gradient(infer.type(0))) infer.fail("expected an element that has zeros");
  return {Type::list(infer.type(0))};
}

std::vector<Type> infer_list_find_object(const Infer& infer) {
  expect_count(infer, 2);
  if (element_type(infer) != infer.type(1) || infer.type(1).kind != Type::Kind::object)
    infer.fail("expected a list of objects, and an object");
  return {Type::i64()};
}

int64_t dim_attribute(const Infer& infer, int64_t rank) {
  const AttributeValue* value = infer.attributes.find("dim");
  const auto* dim = value == nullptr ? nullptr : std::get_if<int64_t>(value);
  if (dim == nullptr || *dim < 0 || *dim >= rank)
    infer.fail(cat("expected a dimension of ", rank, " in attribute dim"));
  return *dim;
}

Dim size_attribute(const Infer& infer) {
  const AttributeValue* value = infer.attributes.find("size");
  if (value != nullptr && std::holds_alternative<int64_t>(*value)) return std::get<int64_t>(*value);
  if (value == nullptr || !std::holds_alternative<Dim>(*value))
    infer.fail("expected the list's length in attribute size");
  return std::get<Dim>(*value);
}

/// Whether numbers of a list can become elements of this dtype.
bool takes_numbers(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i64 || dtype == DType::b1;
}

std::vector<Type> infer_list_stack(const Infer& infer) {
  expect_count(infer, 1);
  const Type& element = element_type(infer);
  const Dim size = size_attribute(infer);
  if (element.is_number()) {
    const AttributeValue* value = infer.attributes.find("dtype");
    const auto* dtype = value == nullptr ? nullptr : std::get_if<DType>(value);
    if (dtype == nullptr || !takes_numbers(*dtype))
      infer.fail("expected the elements' type in attribute dtype");
    return {Type::tensor(*dtype, {size})};
  }
  if (!element.is_tensor()) infer.fail(cat("expected a list of tensors, got ", infer.type(0)));
  Shape shape = element.shape;
  const int64_t dim = dim_attribute(infer, element.rank() + 1);
  shape.insert(shape.begin() + dim, size);
  return {Type::tensor(element.dtype, std::move(shape))};
}

std::vector<Type> infer_list_unstack(const Infer& infer) {
  expect_count(infer, 1);
  if (!infer.type(0).is_tensor()) infer.fail(cat("expected a tensor, got ", infer.type(0)));
  Shape shape = infer.type(0).shape;
  shape.erase(shape.begin() + dim_attribute(infer, infer.type(0).rank()));
  return {Type::list(Type::tensor(infer.type(0).dtype, std::move(shape)))};
}

std::vector<Type> infer_list_slice(const Infer& infer) {
  expect_count(infer, 3);
  expect_integer(infer, 1);
  expect_integer(infer, 2);
  element_type(infer);
  return {infer.type(0)};
}

std::vector<Type> infer_list_join(const Infer& infer) {
  expect_count(infer, 2);
  element_type(infer);
  if (infer.type(0) != infer.type(1)) infer.fail("expected two lists of one type");
  return {infer.type(0)};
}

void expect_numbers(const Infer& infer, size_t input) {
  if (!element_type(infer, input).is_number())
    infer.fail(cat("expected a list of numbers, got ", infer.type(input)));
}

std::vector<Type> infer_list_pick(const Infer& infer) {
  expect_count(infer, 2);
  expect_numbers(infer, 0);
  if (infer.type(1) != Type::list(Type::i64())) infer.fail("expected a list of positions");
  return {infer.type(0)};
}

std::vector<Type> infer_list_order(const Infer& infer) {
  expect_count(infer, 2);
  expect_numbers(infer, 0);
  if (infer.type(1).kind != Type::Kind::boolean) infer.fail("expected whether it is descending");
  return {Type::list(Type::i64())};
}

std::vector<Type> infer_list_find(const Infer& infer) {
  expect_count(infer, 2);
  expect_numbers(infer, 0);
  if (infer.type(1) != element_type(infer)) infer.fail("expected a number like the elements");
  return {Type::i64()};
}

std::vector<Type> infer_list_covers(const Infer& infer) {
  expect_count(infer, 2);
  expect_integer(infer, 1);
  if (infer.type(0) != Type::list(Type::i64())) infer.fail("expected a list of integers");
  return {Type::boolean()};
}

// ---- Gradients --------------------------------------------------------------------------------

Value* size_of(Builder& builder, Value* list) { return op::list_size(builder, {list}); }

Value* resized(Builder& builder, Value* gradient, Value* size) {
  return op::list_resize(builder, {gradient, size});
}

void differentiate_list_item(Vjp& vjp) {
  Builder& builder = vjp.builder();
  vjp.add(0, op::list_only(builder, {vjp.dout(), vjp.in(1), size_of(builder, vjp.in(0))}));
}

void differentiate_list_reverse(Vjp& vjp) {
  Builder& builder = vjp.builder();
  Value* whole = resized(builder, vjp.dout(), size_of(builder, vjp.in(0)));
  vjp.add(0, op::list_reverse(builder, {whole}));
}

void differentiate_list_resize(Vjp& vjp) {
  Builder& builder = vjp.builder();
  vjp.add(0, resized(builder, vjp.dout(), size_of(builder, vjp.in(0))));
}

void differentiate_list_sum(Vjp& vjp) {
  vjp.add(0, vjp.dout());
  vjp.add(1, vjp.dout());
}

void differentiate_list_only(Vjp& vjp) {
  Builder& builder = vjp.builder();
  Value* whole = resized(builder, vjp.dout(), vjp.in(2));
  vjp.add(0, op::list_item(builder, {whole, vjp.in(1)}));
}

void differentiate_list_stack(Vjp& vjp) {
  vjp.add(0, op::list_unstack(vjp.builder(), {vjp.dout()},
                              {{"dim", vjp.node().attributes.get<int64_t>("dim")}}));
}

void differentiate_list_unstack(Vjp& vjp) {
  Builder& builder = vjp.builder();
  const auto dim = vjp.node().attributes.get<int64_t>("dim");
  const Dim size = vjp.in(0)->type.shape[static_cast<size_t>(dim)];
  AttributeValue of = size.is_constant() ? AttributeValue(size.value()) : AttributeValue(size);
  Value* count = op::size(builder, {}, {{"of", of}});
  vjp.add(0, op::list_stack(builder, {resized(builder, vjp.dout(), count)},
                            {{"dim", dim}, {"size", of}}));
}

/// A list of `count` zeros.
Value* zeros(Builder& builder, const Type& list, Value* count) {
  return resized(builder, ops::zero_gradient(builder, list), count);
}

void differentiate_list_slice(Vjp& vjp) {
  Builder& builder = vjp.builder();
  Value* const size = size_of(builder, vjp.in(0));
  const auto part = [&](Value* from, Value* to) {
    return size_of(builder, op::list_slice(builder, {vjp.in(0), from, to}));
  };
  Value* const before = part(builder.constant(int64_t{0}), vjp.in(1));
  Value* const count = part(vjp.in(1), vjp.in(2));
  Value* whole = op::list_join(
      builder, {zeros(builder, vjp.in(0)->type, before), resized(builder, vjp.dout(), count)});
  Value* const behind = op::scalar_sub(builder, {size, op::list_size(builder, {whole})});
  vjp.add(0, op::list_join(builder, {whole, zeros(builder, vjp.in(0)->type, behind)}));
}

void differentiate_list_join(Vjp& vjp) {
  Builder& builder = vjp.builder();
  Value *const first = size_of(builder, vjp.in(0)), *const second = size_of(builder, vjp.in(1));
  Value* whole = resized(builder, vjp.dout(), op::scalar_add(builder, {first, second}));
  vjp.add(0, op::list_slice(builder, {whole, builder.constant(int64_t{0}), first}));
  vjp.add(1, resized(builder, whole, second));
}

}  // namespace

constinit const OpDef op::list_item{
    .name = "list_item",
    .doc =
        "The element at a position; a negative one counts from the end. A missing element fails "
        "the run.",
    .schema = "",
    .traits = Trait::pure | Trait::may_fail,
    .computed_by = ComputedBy::containers,
    .raises = Raises::missing_element,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_list_item,
    .vjp = differentiate_list_item,
};

constinit const OpDef op::list_reverse{
    .name = "list_reverse",
    .doc = "The list in reverse order.",
    .schema = "",
    .traits = Trait::pure,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_list_reverse,
    .vjp = differentiate_list_reverse,
};

constinit const OpDef op::list_resize{
    .name = "list_resize",
    .doc =
        "The last elements of a list, their number given by the second operand; zeros in front "
        "if the list has fewer.",
    .schema = "",
    .traits = Trait::pure,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_list_resize,
    .vjp = differentiate_list_resize,
};

constinit const OpDef op::list_sum{
    .name = "list_sum",
    .doc =
        "The sum of two gradients that are lists or frames, element by element, and of elements "
        "that are such themselves. Of lists from the end, as long as the longer one; an empty "
        "frame is zeros.",
    .schema = "",
    .traits = Trait::pure,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_list_sum,
    .vjp = differentiate_list_sum,
};

constinit const OpDef op::list_only{
    .name = "list_only",
    .doc =
        "A list with the first operand at the position of the second and the length of the "
        "third; all other elements are zeros.",
    .schema = "",
    .traits = Trait::pure | Trait::may_fail,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_list_only,
    .vjp = differentiate_list_only,
};

constinit const OpDef op::list_stack{
    .name = "list_stack",
    .doc =
        "The elements of a list of `size` along a new dimension `dim`; numbers become elements of "
        "type `dtype`.",
    .schema = "",
    .traits = Trait::pure | Trait::may_fail,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_list_stack,
    .vjp = differentiate_list_stack,
};

constinit const OpDef op::list_unstack{
    .name = "list_unstack",
    .doc = "The slices of a tensor along `dim` as a list.",
    .schema = "",
    .traits = Trait::pure,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_list_unstack,
    .vjp = differentiate_list_unstack,
};

constinit const OpDef op::list_slice{
    .name = "list_slice",
    .doc = "The elements from a first position up to a last one, by the rules of Python's slices.",
    .schema = "",
    .traits = Trait::pure,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .infer = infer_list_slice,
    .vjp = differentiate_list_slice,
};

constinit const OpDef op::list_join{
    .name = "list_join",
    .doc = "The elements of one list, then those of the other.",
    .schema = "",
    .traits = Trait::pure,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .infer = infer_list_join,
    .vjp = differentiate_list_join,
};

constinit const OpDef op::list_pick{
    .name = "list_pick",
    .doc = "The numbers of a list at the positions in another. A missing position fails the run.",
    .schema = "",
    .traits = Trait::pure | Trait::may_fail | Trait::no_gradient,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .infer = infer_list_pick,
};

constinit const OpDef op::list_order{
    .name = "list_order",
    .doc =
        "The positions of a list's numbers, sorted by them; equal ones stay in their order, also "
        "where the second operand wants the greatest first. None may be NaN.",
    .schema = "",
    .traits = Trait::pure | Trait::may_fail | Trait::no_gradient,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .infer = infer_list_order,
};

constinit const OpDef op::list_find{
    .name = "list_find",
    .doc = "The first position of a number in a list; -1 if it is missing. It may not be NaN.",
    .schema = "",
    .traits = Trait::pure | Trait::may_fail | Trait::no_gradient,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .infer = infer_list_find,
};

constinit const OpDef op::list_find_object{
    .name = "list_find_object",
    .doc =
        "The position, counted from the end, of the last element that is the given object: -1 and "
        "less. 0 if there is none.",
    .schema = "",
    .traits = Trait::pure | Trait::no_gradient,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .infer = infer_list_find_object,
};

constinit const OpDef op::list_covers{
    .name = "list_covers",
    .doc = "Whether a list has all integers from 0 up to, but not including, the second operand.",
    .schema = "",
    .traits = Trait::pure | Trait::no_gradient,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .infer = infer_list_covers,
};

}  // namespace janus
