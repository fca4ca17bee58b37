// Operators on containers of values: frames and lists. All are pure: a list never changes, a new
// one is made, and the executor shares what they have in common.
//
// A frame holds the saved values of a forward run for its backward run; only the node that unpacks
// it knows its contents. The gradient of a container is a container of the same form, with the
// gradients of the contents, and `none` for contents without a gradient. So the gradient of a push
// is a pop, and a stack of frames is popped in the order in which the backward run builds its
// gradient. A zero gradient is an empty container: nodes that unpack gradients accept it (attribute
// {zeros=true}).
#include "ops/container.h"

#include "ops/list.h"

namespace janus {

using namespace graph;

namespace {

std::vector<Type> infer_frame_pack(const Infer&) { return {Type::frame()}; }

void check_frame_unpack(const Infer& infer) {
  if (infer.inputs.size() != 1 || infer.type(0).kind != Type::Kind::frame)
    infer.fail("expected a frame");
}

void check_list_new(const Infer& infer) {
  if (!infer.inputs.empty()) infer.fail("expected no operands");
}

const Type& element_type(const Infer& infer) {
  if (infer.inputs.empty() || infer.type(0).kind != Type::Kind::list) infer.fail("expected a list");
  return infer.type(0).elements.front();
}

std::vector<Type> infer_list_push(const Infer& infer) {
  const Type& element = element_type(infer);
  if (infer.inputs.size() != 2 || infer.type(1) != element)
    infer.fail(cat("expected a list and an element of type ", element));
  return {infer.type(0)};
}

std::vector<Type> infer_list_pop(const Infer& infer) {
  return {infer.type(0), element_type(infer)};
}

std::vector<Type> infer_list_size(const Infer& infer) {
  element_type(infer);
  return {Type::i64()};
}

// ---- Gradients --------------------------------------------------------------------------------

Type gradient_type(const Type& type) { return carries_gradient(type) ? type : Type::none(); }

void differentiate_frame_pack(Vjp& vjp) {
  const Node& node = vjp.node();
  std::vector<Type> types;
  for (const Value* input : node.inputs) types.push_back(gradient_type(input->type));
  Value* gradient = vjp.dout();
  const Node* parts = vjp.builder().append_unchecked(
      op::frame_unpack, std::span<Value* const>(&gradient, 1), {{"zeros", true}}, std::move(types));
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (vjp.needs(i)) vjp.add(i, parts->outputs[i]);
}

void differentiate_frame_unpack(Vjp& vjp) {
  std::vector<Value*> gradients;
  for (size_t i = 0; i < vjp.node().outputs.size(); ++i) {
    const Type& type = vjp.node().outputs[i]->type;
    Value* gradient = carries_gradient(type) ? vjp.dout(i) : vjp.builder().none();
    gradients.push_back(gradient != nullptr ? gradient : ops::zero_gradient(vjp.builder(), type));
  }
  vjp.add(0, vjp.builder().append(op::frame_pack, gradients)->output());
}

void differentiate_list_push(Vjp& vjp) {
  const Node* parts = vjp.builder().append(op::list_pop, {vjp.dout()}, {{"zeros", true}});
  vjp.add(0, parts->outputs[0]);
  if (vjp.needs(1)) vjp.add(1, parts->outputs[1]);
}

void differentiate_list_pop(Vjp& vjp) {
  const auto gradient = [&](size_t output) {
    Value* given = vjp.dout(output);
    return given != nullptr ? given
                            : ops::zero_gradient(vjp.builder(), vjp.node().outputs[output]->type);
  };
  Value* rest = gradient(0);
  vjp.add(0, op::list_push(vjp.builder(), {rest, gradient(1)}));
}

}  // namespace

Value* ops::zero_gradient(Builder& builder, const Type& type) {
  if (type.is_tensor())
    return op::full(builder, {builder.constant(0.0)},
                    {{"size", type.shape}, {"dtype", type.dtype}});
  if (type.kind == Type::Kind::frame) return op::frame_pack(builder, {});
  if (type.kind != Type::Kind::list)
    throw TypeError(cat("gradient: zeros for a value of type ", type));
  return builder.append_unchecked(op::list_new, {}, {}, {type})->output();
}

constinit const OpDef op::frame_pack{
    .name = "frame_pack",
    .doc = "A frame that holds the operands.",
    .schema = "",
    .traits = Trait::pure,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_frame_pack,
    .vjp = differentiate_frame_pack,
};

constinit const OpDef op::frame_unpack{
    .name = "frame_unpack",
    .doc =
        "The contents of a frame. The result types are given. {zeros=true}: of an empty frame, "
        "zeros of these types.",
    .schema = "",
    .traits = Trait::pure,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .check = check_frame_unpack,
    .vjp = differentiate_frame_unpack,
};

constinit const OpDef op::list_new{
    .name = "list_new",
    .doc = "An empty list. The result type is given.",
    .schema = "",
    .traits = Trait::pure | Trait::no_gradient,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .check = check_list_new,
};

constinit const OpDef op::list_push{
    .name = "list_push",
    .doc = "The list with one more element at its end.",
    .schema = "",
    .traits = Trait::pure,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_list_push,
    .vjp = differentiate_list_push,
};

constinit const OpDef op::list_pop{
    .name = "list_pop",
    .doc =
        "The list without its last element, and that element. An empty list fails the run; "
        "{zeros=true}: its element is zero, and it stays empty. {partly=true}: the other "
        "elements may never be taken.",
    .schema = "",
    .traits = Trait::pure | Trait::may_fail,
    .computed_by = ComputedBy::containers,
    .raises = Raises::missing_element,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_list_pop,
    .vjp = differentiate_list_pop,
};

constinit const OpDef op::list_size{
    .name = "list_size",
    .doc = "The number of elements of a list.",
    .schema = "",
    .traits = Trait::pure | Trait::no_gradient,
    .computed_by = ComputedBy::containers,
    .raises = Raises::not_for_contents,
    .infer = infer_list_size,
};

}  // namespace janus
