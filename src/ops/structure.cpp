// Operators that give a graph its structure: state, assumptions, deferred gradients, control flow,
// functions, and opaque calls of operators that this project does not know.
//
// Opaque calls. `opaque {operator="aten::cumsum", operands="self", dim=1}` calls the overload by
// its schema. `operands` names the argument of each input, in order, separated by commas;
// `tensors*3` is a list argument that takes three inputs (`tensors*0` an empty one). Every other
// attribute but `operator`, `results` and those that start with an underscore is an argument by its
// name in the schema. A missing argument has the schema's default. The node is made with its result
// types.
//
// The gradient is autograd's own. The call records its operations on copies of the differentiated
// operands and returns the record as one more result, a frame; `opaque_backward` asks autograd for
// the gradients. Layers make that differentiable again: layer 1 is the gradient of the call, layer
// 2 the gradient of layer 1, and so on. With more than one layer the call is recomputed instead of
// recorded.
// `_layers="101;1101"` has one flag for each operand of each layer: whether its gradient is a
// result (of the last layer) or a result of the layer (of the others). A call that draws random
// numbers can't be recomputed, so it has one layer only. A call that returns views, which cost
// nothing, is not recorded.
#include "ops/structure.h"

#include <algorithm>
#include <charconv>

#include "base/policy.h"
#include "graph/constant.h"
#include "ops/index_space.h"
#include "ops/list.h"
#include "ops/row_rules.h"
#include "ops/rows.h"

namespace janus {

using namespace graph;

namespace {

/// The rule of writes: the written value, and possibly a second operand of kind `second`.
std::vector<Type> infer_write(const Infer& infer, Type::Kind second) {
  const size_t given = infer.inputs.size();
  if (given != 1 && given != 2) infer.fail(cat("expected one value or two, got ", given));
  if (given == 2 && infer.type(1).kind != second)
    infer.fail(cat("expected another second operand than ", infer.type(1)));
  const std::string* cell = nullptr;
  if (const AttributeValue* value = infer.attributes.find("cell"))
    cell = std::get_if<std::string>(value);
  if (cell == nullptr || cell->empty()) infer.fail("expected the name of a cell");
  return {};
}

std::vector<Type> infer_rebind(const Infer& infer) {
  return infer_write(infer, Type::Kind::boolean);
}

std::vector<Type> infer_commit(const Infer& infer) {
  if (infer.inputs.empty() || !infer.type(0).is_tensor()) infer.fail("expected a tensor");
  if (const AttributeValue* versions = infer.attributes.find("versions");
      versions != nullptr && !std::holds_alternative<int64_t>(*versions))
    infer.fail("expected a number of writes");
  return infer_write(infer, Type::Kind::i64);
}

std::vector<Type> infer_guard(const Infer& infer) {
  if (infer.type(0).kind != Type::Kind::boolean)
    infer.fail(cat("expected a bool, got ", infer.type(0)));
  return {};
}

/// The count in an attribute of a free-form operator.
size_t count_of(const Infer& infer, std::string_view name) {
  const AttributeValue* value = infer.attributes.find(name);
  const int64_t* count = value == nullptr ? nullptr : std::get_if<int64_t>(value);
  if (count == nullptr || *count < 0) infer.fail(cat("expected a count in attribute ", name));
  return static_cast<size_t>(*count);
}

std::vector<Type> infer_gradient(const Infer& infer) {
  const size_t outputs = count_of(infer, "outputs"), targets = count_of(infer, "targets");
  const size_t given = infer.inputs.size();
  if (outputs > given || targets > given || given != 2 * outputs + targets)
    infer.fail(cat("expected ", outputs, " outputs, as many seeds and ", targets, " targets, got ",
                   given, " operands"));
  for (size_t i = 0; i < outputs; ++i) {
    if (!infer.type(i).is_tensor()) infer.fail(cat("output ", i, " is ", infer.type(i)));
    const Type& seed = infer.type(outputs + i);
    if (!seed.is_none() && seed != infer.type(i))
      infer.fail(cat("seed ", i, " is ", seed, ", its output ", infer.type(i)));
  }
  std::vector<Type> types;
  for (size_t i = 2 * outputs; i < given; ++i) {
    if (!infer.type(i).is_tensor() || !is_differentiable(infer.type(i).dtype))
      infer.fail(cat("there is no gradient with respect to ", infer.type(i)));
    types.push_back(infer.type(i));
  }
  return types;
}

std::vector<Type> infer_same(const Infer& infer) {
  if (!infer.type(0).is_tensor()) infer.fail(cat("expected a tensor, got ", infer.type(0)));
  return {infer.type(0)};
}

std::vector<Type> infer_size(const Infer& infer) {
  const AttributeValue& of = *infer.attributes.find("of");
  if (!std::holds_alternative<Dim>(of) && !std::holds_alternative<int64_t>(of))
    infer.fail(cat("expected a dimension, got ", of));
  return {Type::i64()};
}

std::vector<Type> infer_dimension(const Infer& infer) {
  if (infer.type(0).kind != Type::Kind::i64)
    infer.fail(cat("expected an integer, got ", infer.type(0)));
  return {Type::i64()};
}

Value* fold_size(const Fold& fold) {
  const AttributeValue& of = *fold.node.attributes.find("of");
  if (const int64_t* number = std::get_if<int64_t>(&of)) return fold.builder.constant(*number);
  const Dim* dim = std::get_if<Dim>(&of);
  return dim != nullptr && dim->is_constant() ? fold.builder.constant(dim->value()) : nullptr;
}

// ---- Control flow -----------------------------------------------------------------------------

void expect_blocks(const Infer& infer, size_t count) {
  if (infer.blocks.size() != count)
    infer.fail(cat("expected ", count, " blocks, got ", infer.blocks.size()));
}

std::string describe(std::span<Value* const> values) {
  std::string text = "(";
  for (const Value* value : values) text += cat(text.size() == 1 ? "" : ", ", value->type);
  return text + ")";
}

void expect_types(const Infer& infer, std::string_view what, std::span<Value* const> found,
                  std::span<Value* const> expected) {
  const bool same = std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                               [](const Value* a, const Value* b) { return a->type == b->type; });
  if (!same) infer.fail(cat(what, " are ", describe(found), ", expected ", describe(expected)));
}

std::vector<Type> types_of(std::span<Value* const> values) {
  std::vector<Type> types;
  for (const Value* value : values) types.push_back(value->type);
  return types;
}

std::vector<Type> infer_if(const Infer& infer) {
  if (infer.inputs.size() != 1 || infer.type(0).kind != Type::Kind::boolean)
    infer.fail(cat("expected a bool, got ", describe(infer.inputs)));
  expect_blocks(infer, 2);
  for (const auto& block : infer.blocks)
    if (!block->parameters.empty()) infer.fail("its blocks have no parameters");
  expect_types(infer, "results of the second block", infer.blocks[1]->results,
               infer.blocks[0]->results);
  return types_of(infer.blocks[0]->results);
}

std::vector<Type> infer_while(const Infer& infer) {
  expect_blocks(infer, 2);
  const Block& condition = *infer.blocks[0];
  const Block& body = *infer.blocks[1];
  expect_types(infer, "parameters of the condition", condition.parameters, infer.inputs);
  expect_types(infer, "parameters of the body", body.parameters, infer.inputs);
  expect_types(infer, "results of the body", body.results, infer.inputs);
  if (condition.results.size() != 1 || condition.results[0]->type.kind != Type::Kind::boolean)
    infer.fail(cat("the condition gives ", describe(condition.results), ", expected a bool"));
  return types_of(infer.inputs);
}

std::vector<Type> infer_fused(const Infer& infer) {
  expect_blocks(infer, 1);
  const Block& block = *infer.blocks[0];
  expect_types(infer, "parameters of the block", block.parameters, infer.inputs);
  for (const Node* node : block.nodes)
    if (!node->op->is(Trait::elementwise) && node->op != &op::constant && node->op != &op::size &&
        !ops::reduction_of(*node) && !ops::is_reindexing(*node))
      infer.fail(cat(node->op->name, " is no operator of kernels"));
  return types_of(block.results);
}

const std::string& text_of(const Infer& infer, std::string_view name) {
  const AttributeValue* value = infer.attributes.find(name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (text == nullptr) infer.fail(cat("expected a string in attribute ", name));
  return *text;
}

std::vector<Type> infer_function(const Infer& infer) {
  if (text_of(infer, "name").empty()) infer.fail("expected a name");
  if (!infer.inputs.empty()) infer.fail("expected no operands");
  expect_blocks(infer, 1);
  return {};
}

/// The rule of calls. The verifier compares the types with the function, which may not exist yet.
void check_call(const Infer& infer) {
  if (text_of(infer, "callee").empty()) infer.fail("expected the name of a function");
}

/// The type in the block of `rows` for one operand: stacked rows, or a vector of numbers.
Type stacked_type(const Type& type, const Dim& rows) {
  Shape shape = type.shape;
  shape.insert(shape.begin(), rows);
  if (type.is_tensor()) return Type::tensor(type.dtype, shape);
  const bool whole = type.kind == Type::Kind::i64;
  return Type::tensor(whole                              ? DType::i64
                      : type.kind == Type::Kind::boolean ? DType::b1
                                                         : DType::f64,
                      {rows});
}

std::vector<Type> infer_rows(const Infer& infer) {
  const Dim rows = Dim::symbol(text_of(infer, "symbol"));
  const size_t sums = count_of(infer, "sums"), given = infer.inputs.size();
  expect_blocks(infer, 2);
  const Block &block = *infer.blocks[0], &single = *infer.blocks[1];
  if (sums > given || block.parameters.size() != given)
    infer.fail(cat("expected ", given, " parameters, got ", block.parameters.size()));
  if (sums > 0 && block.results.size() != sums)
    infer.fail(cat("expected ", sums, " results, got ", block.results.size()));
  for (size_t i = 0; i < given; ++i) {
    const Type& type = infer.type(i);
    if (!type.is_tensor() && !type.is_number())
      infer.fail(cat("operand ", i, " is ", type, ", expected a tensor or a number"));
    const Type expected = i < given - sums ? stacked_type(type, rows) : type;
    if (block.parameters[i]->type != expected)
      infer.fail(cat("parameter ", i, " is ", block.parameters[i]->type, ", expected ", expected));
  }
  if (sums > 0) expect_types(infer, "results", block.results, infer.inputs.subspan(given - sums));
  std::vector<Type> types = types_of(block.results);
  for (Type& type : types) {
    if (sums > 0) continue;
    if (!type.is_tensor() || type.shape.empty() || !(type.shape.front() == rows))
      infer.fail(cat("a result of the block is ", type, ", expected one with a row of each call"));
    type.shape.erase(type.shape.begin());
  }
  expect_types(infer, "parameters of the second block", single.parameters, infer.inputs);
  if (types_of(single.results) != types)
    infer.fail(cat("the second block gives ", describe(single.results)));
  return types;
}

// ---- Opaque calls -----------------------------------------------------------------------------

std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    result.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return result;
}

struct OperandName {
  std::string_view name;
  std::optional<size_t> list_length;
  size_t count() const { return list_length.value_or(1); }
};

/// Parses "self,tensors*3"; nullopt if it is malformed.
std::optional<std::vector<OperandName>> parse_operands(std::string_view text) {
  std::vector<OperandName> result;
  for (const std::string_view piece : pieces(text, ',')) {
    OperandName operand{.name = piece.substr(0, piece.find('*')), .list_length = {}};
    if (operand.name.empty()) return std::nullopt;
    if (operand.name.size() < piece.size()) {
      const std::string_view length = piece.substr(operand.name.size() + 1);
      size_t number = 0;
      const auto [end, error] =
          std::from_chars(length.data(), length.data() + length.size(), number);
      if (error != std::errc() || end != length.data() + length.size() ||
          number > policy::kLongestOperandList)
        return std::nullopt;
      operand.list_length = number;
    }
    result.push_back(operand);
  }
  return result;
}

/// The number of operands of the innermost call.
size_t operand_count(const Infer& infer) {
  const auto operands = parse_operands(text_of(infer, "operands"));
  if (!operands) infer.fail("attribute operands is malformed");
  size_t count = 0;
  for (const OperandName& operand : *operands) count += operand.count();
  return count;
}

void check_opaque(const Infer& infer) {
  if (text_of(infer, "operator").empty()) infer.fail("expected the name of an overload");
  if (const size_t count = operand_count(infer); infer.inputs.size() != count)
    infer.fail(cat("expected ", count, " operands, got ", infer.inputs.size()));
  if (!infer.blocks.empty()) infer.fail("it has no blocks");
}

bool is_recorded(const Attributes& attributes) {
  return !attributes.get_or<std::string>("_recorded", "").empty();
}

std::vector<Type> infer_opaque_backward(const Infer& infer) {
  text_of(infer, "operator");
  const size_t frames = is_recorded(infer.attributes) ? 1 : 0;
  size_t operands = operand_count(infer);
  size_t results = count_of(infer, "results");
  const auto layers = pieces(text_of(infer, "_layers"), ';');
  if (layers.empty()) infer.fail("expected at least one layer");
  std::vector<Type> types;
  for (const std::string_view layer : layers) {
    if (layer.size() != operands || layer.find_first_not_of("01") != std::string_view::npos)
      infer.fail(cat("expected a layer of ", operands, " flags, got \"", layer, "\""));
    operands += results;
    results = static_cast<size_t>(std::count(layer.begin(), layer.end(), '1'));
  }
  if (infer.inputs.size() != operands + frames)
    infer.fail(cat("expected ", operands + frames, " operands, got ", infer.inputs.size()));
  for (size_t i = 0; i < layers.back().size(); ++i)
    if (layers.back()[i] == '1') types.push_back(infer.type(i));
  return types;
}

bool is_differentiable_operand(const Value* value) {
  return value->type.is_tensor() && is_differentiable(value->type.dtype);
}

/// Autograd's record of the call with the operands of that layer; null if the call must be
/// recomputed.
Value* record_of(Vjp& vjp, const std::string& layer) {
  const Node& node = vjp.node();
  if (!ops::owns_results(node)) return nullptr;
  const std::string recorded = node.attributes.get_or<std::string>("_recorded", "");
  if (recorded.empty()) return vjp.add_output(Type::frame(), "_recorded", layer);
  return recorded == layer ? node.outputs.back() : nullptr;
}

/// The gradient rule: one more layer around the node, which is a call or a layer of its gradient.
void differentiate_opaque(Vjp& vjp) {
  const Node& node = vjp.node();
  const size_t frames = is_recorded(node.attributes) ? 1 : 0;
  const bool is_call = node.op == &op::opaque;
  const size_t given = node.inputs.size() - (is_call ? 0 : frames);
  const size_t results = node.outputs.size() - (is_call ? frames : 0);
  std::vector<Value*> operands;
  std::string layer;
  for (size_t i = 0; i < given; ++i) {
    operands.push_back(vjp.in(i));
    layer += vjp.needs(i) && is_differentiable_operand(vjp.in(i)) ? '1' : '0';
  }
  if (layer.find('1') == std::string::npos) return;
  std::vector<Type> types;
  for (size_t i = 0; i < layer.size(); ++i)
    if (layer[i] == '1') types.push_back(operands[i]->type);
  for (size_t i = 0; i < results; ++i) {
    Value* gradient = vjp.dout(i);
    operands.push_back(gradient != nullptr ? gradient : vjp.builder().none());
  }
  Value* record = record_of(vjp, layer);
  Attributes attributes = node.attributes;
  if (record == nullptr) {
    if (attributes.get_or<bool>("_draws", false))
      throw TypeError("opaque: no second gradient of a call that draws random numbers");
    attributes.set("_recorded", std::string());
  } else {
    operands.push_back(record);
  }
  const std::string inner = attributes.get_or<std::string>("_layers", "");
  attributes.set("_layers", inner.empty() ? layer : inner + ";" + layer);
  if (inner.empty()) attributes.set("results", static_cast<int64_t>(results));
  const Node* backward = vjp.builder().append_unchecked(op::opaque_backward, operands,
                                                        std::move(attributes), std::move(types));
  size_t next = 0;
  for (size_t i = 0; i < layer.size(); ++i)
    if (layer[i] == '1') vjp.add(i, backward->outputs[next++]);
}

Value* scatter_whole(const Scatter& scatter) { return scatter.replacement; }

}  // namespace

// ---- State and assumptions --------------------------------------------------------------------

constinit const OpDef op::state{
    .name = "state",
    .doc = "The value of a cell when the call begins: a tensor, or a Python number.",
    .schema = "(*, str cell) -> Tensor",
    .traits = Trait::pure,
    .role = Role::state,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
};

constinit const OpDef op::undefined{
    .name = "undefined",
    .doc =
        "A value that nobody reads: the result of a side of an `if` if only the other side's "
        "result is used.",
    .schema = "() -> Tensor",
    .traits = Trait::pure | Trait::no_gradient,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
};

constinit const OpDef op::commit{
    .name = "commit",
    .doc =
        "New contents of a cell's tensor: attributes cell, versions=1. `versions`: the number of "
        "in-place writes that it stands for. A second operand adds to that number at run time.",
    .schema = "",
    .traits = Trait::writes_state | Trait::no_gradient,
    .role = Role::commit,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_commit,
};

constinit const OpDef op::rebind{
    .name = "rebind",
    .doc =
        "What a cell refers to from now on: attributes cell, strides (none: contiguous), keeps=0. "
        "A second operand: whether it does; else to none. `keeps`: where it does, the cell stays "
        "what it is.",
    .schema = "",
    .traits = Trait::writes_state | Trait::no_gradient,
    .role = Role::rebind,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_rebind,
};

constinit const OpDef op::guard{
    .name = "guard",
    .doc =
        "Bails out of the run, without any effect of it, unless its operand is true. `id` tells "
        "the caller which assumption failed.",
    .schema = "(Scalar condition, *, int id, str reason='') -> ()",
    .traits = Trait::may_fail | Trait::no_gradient,
    .role = Role::guard,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_guard,
};

constinit const OpDef op::size{
    .name = "size",
    .doc = "The value of a dimension expression as a number.",
    .schema = "(*, int of) -> Scalar",
    .traits = Trait::pure | Trait::no_gradient | Trait::may_fail,
    .role = Role::size,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_size,
    .fold = fold_size,
};

constinit const OpDef op::dimension{
    .name = "dimension",
    .doc =
        "The operand, which becomes the value of the dimension symbol in attribute symbol. If it "
        "is less than 2, the run bails out.",
    .schema = "(Scalar size, *, str symbol) -> Scalar",
    .traits = Trait::may_fail | Trait::no_gradient,
    .role = Role::dimension,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_dimension,
};

// ---- Gradients --------------------------------------------------------------------------------

constinit const OpDef op::gradient{
    .name = "gradient",
    .doc =
        "Gradients of outputs (attribute outputs: their number) with the given seeds (none: one) "
        "with respect to targets (attribute targets). The differentiation pass expands it.",
    .schema = "",
    .traits = Trait::none,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_gradient,
};

constinit const OpDef op::detach{
    .name = "detach",
    .doc = "The same tensor, from which no gradient flows back.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "detach",
    .python = "Tensor.detach detach",
    .traits = Trait::pure | Trait::view | Trait::no_gradient,
    .computed_by = ComputedBy::executor,
    .sees = Sees::all,
    .infer = infer_same,
    .scatter = scatter_whole,
    .rows = ops::for_rows::identity,
};

// ---- Control flow -----------------------------------------------------------------------------

constinit const OpDef op::fused{
    .name = "fused",
    .doc =
        "Elementwise operators and reductions in one kernel. The block's parameters are the "
        "operands; it sees no other values.",
    .schema = "",
    .traits = Trait::pure,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_fused,
};

constinit const OpDef op::if_{
    .name = "if",
    .doc =
        "Runs its first block if the operand is true, else the second. Its results are those of "
        "the block.",
    .schema = "",
    .traits = Trait::control,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_if,
};

constinit const OpDef op::while_{
    .name = "while",
    .doc = "While the first block yields true for the carried values, the second replaces them.",
    .schema = "",
    .traits = Trait::control,
    .role = Role::loop,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_while,
};

constinit const OpDef op::function{
    .name = "function",
    .doc =
        "Defines the function that calls refer to by attribute `name`: its block. The node "
        "itself computes nothing.",
    .schema = "",
    .traits = Trait::control,
    .role = Role::function,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_function,
};

constinit const OpDef op::call{
    .name = "call",
    .doc =
        "Runs the block of the function named by attribute `callee`, with the operands as "
        "parameters. Its results are those of the block.",
    .schema = "",
    .traits = Trait::none,
    .role = Role::call,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .check = check_call,
};

constinit const OpDef op::rows{
    .name = "rows",
    .doc =
        "Computes its second block, or its first for the operands of many such nodes at once: the "
        "tensors of that have one more dimension in front, attribute `symbol`, for as many rows as "
        "there are. The last `sums` operands are what each row is added to. Nodes of one `kind` "
        "compute the same; what leads to another has no greater `rank`.",
    .schema = "",
    .traits = Trait::control,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_rows,
};

// ---- Opaque calls -----------------------------------------------------------------------------

constinit const OpDef op::opaque{
    .name = "opaque",
    .doc =
        "A call of any ATen overload (attribute operator) that has no effect outside its results.",
    .schema = "",
    .traits = Trait::may_fail | Trait::random,
    .role = Role::opaque,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .draws = Draws::elements,
    .check = check_opaque,
    .vjp = differentiate_opaque,
};

constinit const OpDef op::opaque_backward{
    .name = "opaque_backward",
    .doc = "Autograd's gradient of an opaque call, or of such a gradient.",
    .schema = "",
    .traits = Trait::may_fail,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_opaque_backward,
    .vjp = differentiate_opaque,
};

namespace ops {

Node* append_opaque(Builder& builder, const OpaqueCall& call, std::vector<Type> result_types) {
  Attributes attributes = call.attributes;
  attributes.set("operator", call.overload);
  if (call.draws) attributes.set("_draws", true);
  std::string names;
  std::vector<Value*> inputs;
  for (const OpaqueCall::Operand& operand : call.operands) {
    TORCHJANUS_CHECK(operand.is_list || operand.values.size() == 1, "opaque: argument ",
                     operand.name, " of ", call.overload, " is not a list");
    names += cat(names.empty() ? "" : ",", operand.name);
    if (operand.is_list) names += cat('*', operand.values.size());
    inputs.insert(inputs.end(), operand.values.begin(), operand.values.end());
  }
  attributes.set("operands", std::move(names));
  return builder.append_unchecked(op::opaque, inputs, std::move(attributes),
                                  std::move(result_types));
}

OpaqueCall opaque_call(const Attributes& attributes, std::span<Value* const> inputs) {
  OpaqueCall call;
  call.overload = attributes.get<std::string>("operator");
  call.draws = attributes.get_or<bool>("_draws", false);
  const auto operands = parse_operands(attributes.get<std::string>("operands"));
  TORCHJANUS_CHECK(operands, "opaque: attribute operands is malformed");
  size_t next = 0;
  for (const OperandName& operand : *operands) {
    TORCHJANUS_CHECK(next + operand.count() <= inputs.size(), "opaque: operands are missing");
    const auto values = inputs.subspan(next, operand.count());
    call.operands.push_back({.name = std::string(operand.name),
                             .values = {values.begin(), values.end()},
                             .is_list = operand.list_length.has_value()});
    next += operand.count();
  }
  for (const auto& [name, value] : attributes)
    if (name != "operator" && name != "operands" && name != "results" && !name.starts_with('_'))
      call.attributes.set(name, value);
  return call;
}

namespace {

std::vector<bool> flags_of(std::string_view text) {
  std::vector<bool> flags;
  for (const char flag : text) flags.push_back(flag == '1');
  return flags;
}

}  // namespace

bool is_torchs_own(std::string_view overload) {
  return overload.find("::") == overload.npos || overload.starts_with("aten::");
}

bool runs_foreign_code(const Node& node) {
  return (node.op == &op::opaque || node.op == &op::opaque_backward) &&
         !is_torchs_own(node.attributes.get<std::string>("operator"));
}

bool owns_results(const Node& node) {
  return node.op == &op::opaque && !node.attributes.get_or<bool>("_shares_memory", false);
}

std::vector<bool> recorded_operands(const Attributes& attributes) {
  return flags_of(attributes.get_or<std::string>("_recorded", ""));
}

std::vector<std::vector<bool>> opaque_layers(const Attributes& attributes) {
  std::vector<std::vector<bool>> layers;
  const std::string text = attributes.get_or<std::string>("_layers", "");
  for (const std::string_view layer : pieces(text, ';')) layers.push_back(flags_of(layer));
  return layers;
}

}  // namespace ops
}  // namespace janus
