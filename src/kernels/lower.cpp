#include "kernels/lower.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/check.h"
#include "graph/constant.h"
#include "graph/element_code.h"
#include "ops/index_space.h"
#include "ops/list.h"
#include "ops/promotion.h"
#include "ops/read.h"
#include "ops/shape_rules.h"

namespace janus::kernels {
namespace {

using graph::Block;
using graph::is_half;
using graph::meets_in_half;
using graph::Node;
using graph::ScalarCode;
using graph::Type;
using graph::Value;
using graph::widened;

DType dtype_of_operand(const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor:
      return type.dtype;
    case Type::Kind::i64:
      return DType::i64;
    case Type::Kind::f64:
      return DType::f64;
    case Type::Kind::boolean:
      return DType::b1;
    default:
      throw Unsupported{cat("an operand of type ", type)};
  }
}

/// ScalarCode over a LoopNest: every call appends an instruction.
class Lowering final : public ScalarCode {
 public:
  using Values = std::map<const Value*, Scalar>;

  Lowering(LoopNest& nest, const Values& values, const Node& node, const ops::IndexSpace* space)
      : nest_(nest),
        values_(values),
        node_(node),
        space_(space),
        narrow_(ops::compute_dtype(node)) {}

  const Node& node() const override { return node_; }
  size_t input_count() const override { return node_.inputs.size(); }
  DType compute_type() const override { return widened(narrow_); }

  Scalar input(size_t index) override {
    const Scalar raw = raw_input(index);
    return convert(meets_in_half(node_, index, narrow_) ? convert(raw, narrow_) : raw,
                   compute_type());
  }

  Scalar raw_input(size_t index) override {
    const Value* value = node_.inputs.at(index);
    const auto found = values_.find(space_ == nullptr ? value : space_->resolved(value));
    if (found == values_.end())
      throw Unsupported{cat(node_.op->name, ": operand ", index, " has no element")};
    return found->second;
  }

  Scalar constant(double value, DType dtype) override {
    if (is_half(dtype)) return convert(constant(value, DType::f32), dtype);
    Instruction instruction{.opcode = Opcode::constant, .dtype = dtype};
    if (graph::is_floating(dtype))
      instruction.bits = std::bit_cast<uint64_t>(value);
    else if (dtype == DType::b1)
      instruction.bits = value != 0;
    else
      instruction.bits = std::bit_cast<uint64_t>(static_cast<int64_t>(value));
    return add_instruction(instruction);
  }

  Scalar convert(Scalar a, DType dtype) override {
    if (a.dtype == dtype) return a;
    if (graph::is_complex(dtype)) throw Unsupported{"complex numbers"};
    // Half precision is reached and left through f32, as in eager.
    if (is_half(dtype) && a.dtype != DType::f32) return convert(convert(a, DType::f32), dtype);
    if (is_half(a.dtype) && dtype != DType::f32) return convert(convert(a, DType::f32), dtype);
    return append(Opcode::convert, dtype, {a});
  }

  Scalar add(Scalar a, Scalar b) override {
    return a.dtype == DType::b1 ? bit_or(a, b) : arithmetic(Opcode::add, a, b);
  }
  Scalar sub(Scalar a, Scalar b) override {
    if (a.dtype == DType::b1) throw Unsupported{"subtraction of booleans"};
    return arithmetic(Opcode::sub, a, b);
  }
  Scalar mul(Scalar a, Scalar b) override {
    return a.dtype == DType::b1 ? bit_and(a, b) : arithmetic(Opcode::mul, a, b);
  }
  Scalar div(Scalar a, Scalar b) override {
    if (graph::is_floating(a.dtype)) return arithmetic(Opcode::div, a, b);
    return integer_divisor(b) == -1 ? neg(a) : arithmetic(Opcode::div, a, b);
  }
  Scalar rem(Scalar a, Scalar b) override {
    if (graph::is_floating(a.dtype)) return call("fmod", std::array{a, b});
    return integer_divisor(b) == -1 ? constant(0, a.dtype) : arithmetic(Opcode::rem, a, b);
  }
  Scalar neg(Scalar a) override {
    if (a.dtype == DType::b1) throw Unsupported{"negative booleans"};
    check_computable(a);
    return append(Opcode::neg, a.dtype, {a});
  }
  Scalar bit_and(Scalar a, Scalar b) override { return bitwise(Opcode::bit_and, a, b); }
  Scalar bit_or(Scalar a, Scalar b) override { return bitwise(Opcode::bit_or, a, b); }
  Scalar bit_xor(Scalar a, Scalar b) override { return bitwise(Opcode::bit_xor, a, b); }

  Scalar compare(Compare how, Scalar a, Scalar b) override {
    check_same(a, b);
    if (is_half(a.dtype)) return compare(how, convert(a, DType::f32), convert(b, DType::f32));
    Instruction instruction{.opcode = Opcode::compare, .dtype = DType::b1, .comparison = how};
    instruction.operands = {a.id, b.id, -1};
    return add_instruction(instruction);
  }

  Scalar select(Scalar condition, Scalar a, Scalar b) override {
    check_same(a, b);
    TORCHJANUS_CHECK(condition.dtype == DType::b1, "select: the condition is ",
                     graph::name(condition.dtype));
    return append(Opcode::select, a.dtype, {condition, a, b});
  }

  Scalar call(std::string_view name, std::span<const Scalar> arguments) override {
    if (name == "position") return position();
    const Function* function = find_function(name);
    if (function == nullptr) throw Unsupported{cat("the function ", name)};
    TORCHJANUS_CHECK(static_cast<int>(arguments.size()) == function->arity, name, ": takes ",
                     function->arity, " arguments, not ", arguments.size());
    Instruction instruction{
        .opcode = Opcode::call, .dtype = arguments.front().dtype, .function = function};
    for (size_t i = 0; i < arguments.size(); ++i) {
      check_same(arguments.front(), arguments[i]);
      instruction.operands[i] = arguments[i].id;
    }
    if (instruction.dtype != DType::f32 && instruction.dtype != DType::f64)
      throw Unsupported{cat(name, " of ", graph::name(instruction.dtype))};
    return add_instruction(instruction);
  }

  /// Where the point is along a dimension of the space.
  Scalar position_along(uint32_t dim) {
    return position_from_last(static_cast<uint32_t>(space_->rank()) - dim);
  }

 private:
  /// Along the node's dimension, which may have size 1 where the space goes on.
  Scalar position() {
    const graph::Shape& shape = node_.output()->type.shape;
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t dim =
        rank == 0 ? 0 : ops::wrap_dim(ops::integer_attribute(node_.attributes, "dim"), rank);
    if (rank == 0 || shape[static_cast<size_t>(dim)].is(1)) return constant(0, DType::i64);
    if (space_ != nullptr)
      return position_along(
          static_cast<uint32_t>(space_->axes(node_.output())->at(static_cast<size_t>(dim))));
    return position_from_last(static_cast<uint32_t>(rank - dim));
  }

  Scalar position_from_last(uint32_t along) {
    if (std::ranges::find(nest_.positions, along) == nest_.positions.end())
      nest_.positions.push_back(along);
    return add_instruction({.opcode = Opcode::position, .dtype = DType::i64, .index = along});
  }

  Scalar add_instruction(const Instruction& instruction) {
    return {nest_.append(instruction), instruction.dtype};
  }

  Scalar append(Opcode opcode, DType dtype, std::initializer_list<Scalar> operands) {
    Instruction instruction{.opcode = opcode, .dtype = dtype};
    std::transform(operands.begin(), operands.end(), instruction.operands.begin(),
                   [](Scalar operand) { return operand.id; });
    return add_instruction(instruction);
  }

  Scalar arithmetic(Opcode opcode, Scalar a, Scalar b) {
    check_same(a, b);
    check_computable(a);
    return append(opcode, a.dtype, {a, b});
  }

  Scalar bitwise(Opcode opcode, Scalar a, Scalar b) {
    check_same(a, b);
    if (graph::is_floating(a.dtype)) throw Unsupported{"bits of floating numbers"};
    return append(opcode, a.dtype, {a, b});
  }

  void check_same(Scalar a, Scalar b) const {
    TORCHJANUS_CHECK(a.dtype == b.dtype, node_.op->name,
                     ": scalar operands differ: ", graph::name(a.dtype), " and ",
                     graph::name(b.dtype));
  }
  void check_computable(Scalar a) const {
    if (is_half(a.dtype)) throw Unsupported{cat("arithmetic in ", graph::name(a.dtype))};
  }

  /// Eager raises where an integer is divided by zero, and a kernel cannot: only division by a
  /// known number is taken.
  int64_t integer_divisor(Scalar b) const {
    const Instruction& divisor = nest_.code[static_cast<size_t>(b.id)];
    const auto value = std::bit_cast<int64_t>(divisor.bits);
    if (divisor.opcode != Opcode::constant || value == 0)
      throw Unsupported{"division of integers by what may be zero"};
    return value;
  }

  LoopNest& nest_;
  const Values& values_;
  const Node& node_;
  const ops::IndexSpace* space_;
  DType narrow_;
};

/// A loop nest in the making, with what the graph's values are in it.
class Nest {
 public:
  Nest() = default;
  explicit Nest(const ops::IndexSpace& space) : space_(&space) {
    nest_.has_rank = true;
    nest_.rank = static_cast<int>(space.rank());
    nest_.reduced = space.reduced();
  }

  /// An operand from outside: a tensor or a number. None operands have no element.
  void add_operand(const Value* value) {
    const Type& type = value->type;
    if (type.is_none() || values_.contains(value)) return;
    const DType dtype = dtype_of_operand(type);
    check_storable(dtype);
    auto& list = type.is_tensor() ? nest_.inputs : nest_.numbers;
    if (space_ != nullptr && space_->map(value) != nullptr) {
      mapped_[value] = static_cast<uint32_t>(list.size());
      list.push_back(dtype);
      return;
    }
    Instruction instruction{.opcode = type.is_tensor() ? Opcode::load : Opcode::number,
                            .dtype = dtype,
                            .index = static_cast<uint32_t>(list.size())};
    list.push_back(dtype);
    values_[value] = {nest_.append(instruction), dtype};
  }

  /// A `constant` node: its literal.
  void add_constant(const Node& node) {
    const Value* value = node.output();
    if (value->type.is_none()) return;
    Instruction instruction{.opcode = Opcode::constant, .dtype = dtype_of_operand(value->type)};
    const graph::AttributeValue* literal = node.attributes.find("value");
    TORCHJANUS_CHECK(literal != nullptr, "constant: no value");
    if (const auto* integer = std::get_if<int64_t>(literal))
      instruction.bits = std::bit_cast<uint64_t>(*integer);
    else if (const auto* floating = std::get_if<double>(literal))
      instruction.bits = std::bit_cast<uint64_t>(*floating);
    else if (const auto* boolean = std::get_if<bool>(literal))
      instruction.bits = *boolean ? 1 : 0;
    else
      throw Unsupported{"a constant that is not a number"};
    values_[value] = {nest_.append(instruction), instruction.dtype};
  }

  void add_node(const Node& node) {
    if (node.op->scalar == nullptr || node.outputs.size() != 1 || !ops::has_scalar_program(node))
      throw Unsupported{cat(node.op->name, " has no scalar program")};
    const DType dtype = dtype_of_operand(node.output()->type);
    check_storable(dtype);
    Lowering code(nest_, values_, node, space_);
    values_[node.output()] = code.convert(node.op->scalar(code), dtype);
  }

  // --- with reductions

  /// A value that another is, under another shape.
  void add_alias(const Value* value, const Value* other) {
    if (const auto found = values_.find(resolved(other)); found != values_.end())
      values_[value] = found->second;
  }

  /// A number, or how many elements are combined into one, give or take a number.
  void add_size(const Node& node) {
    const graph::Dim* size = node.attributes.find("of") == nullptr
                                 ? nullptr
                                 : std::get_if<graph::Dim>(node.attributes.find("of"));
    if (size == nullptr) throw Unsupported{"a size that varies"};
    Lowering code(nest_, values_, node, space_);
    const auto literal = [&](const graph::Dim& dim) {
      Instruction instruction{.opcode = Opcode::constant, .dtype = DType::i64};
      instruction.bits = std::bit_cast<uint64_t>(dim.value());
      return Lowering::Scalar{nest_.append(instruction), DType::i64};
    };
    if (size->is_constant()) {
      values_[node.output()] = literal(*size);
      return;
    }
    const graph::Dim beyond = *size - count_of_row();
    if (!beyond.is_constant()) throw Unsupported{"a size that varies"};
    values_[node.output()] = code.add(count(code), literal(beyond));
  }

  void add_reduction(const Node& node) {
    const auto operand = values_.find(resolved(node.inputs[0]));
    if (operand == values_.end()) throw Unsupported{"a reduction of nothing"};
    const DType dtype = dtype_of_operand(node.output()->type);
    if (is_half(dtype)) throw Unsupported{"a reduction to half precision"};
    const ops::Reduction reduction = *ops::reduction_of(node);
    const Combine combine = combine_of(node);
    if (combine == Combine::maximum || combine == Combine::minimum) {
      for (const int64_t dim : reduction.dims)
        if (reduction.space[static_cast<size_t>(dim)].lower_bound().value_or(0) < 1)
          throw Unsupported{"an extremum of what may be empty"};
    }
    Lowering code(nest_, values_, node, space_);
    Instruction instruction{.opcode = Opcode::reduce, .dtype = dtype, .combine = combine};
    instruction.operands[0] = code.convert(operand->second, dtype).id;
    Lowering::Scalar result{nest_.append(instruction), dtype};
    if (node.op->combines == graph::Combines::mean)
      result = code.div(result, code.convert(count(code), dtype));
    values_[node.output()] = result;
  }

  /// The element at the indices that the map and tensors of indices give, the number beside it
  /// where there is none.
  void add_read(const Node& node) {
    const Value* operand = resolved(node.inputs[0]);
    const ops::Read read = ops::read_of(node).value();
    const std::vector<int64_t>& first = space_->map(operand)->offset;
    const ops::IndexMap map{.space_rank = space_->rank(),
                            .factors = space_->map(operand)->factors,
                            .offset = read.map.offset};
    const uint32_t tensor = mapped_.at(operand);
    Lowering code(nest_, values_, node, space_);
    std::optional<Lowering::Scalar> inside, farther;
    const auto move = [&](size_t dim, Lowering::Scalar indices) {
      const auto way = code.mul(indices, number_of(TensorNumber::Kind::step, tensor, dim));
      farther = farther ? code.add(*farther, way) : way;
    };
    for (size_t k = 0; k < map.mapped_rank(); ++k) {
      const graph::Dim& known = operand->type.shape[k];
      const auto size = [&] { return size_of(code, known, tensor, k); };
      std::vector<Lowering::Scalar> wanted;
      if (const ops::LookUp* look_up = read.look_up(k)) {
        const auto index = looked_up(code, *look_up, size());
        wanted = {code.compare(Compare::ge, index, integer(code, 0)),
                  code.compare(Compare::lt, index, size())};
        move(k, index);
      } else if (read.turns(k)) {
        if (known.is_constant()) continue;
        const auto count = size(), one = integer(code, 1);
        move(k, code.sub(count, one));
      } else if (const ops::Division* division = read.division(k)) {
        const auto index = divided(code, *division, (*space_->axes(node.output()))[k]);
        wanted = conditions(code, *division, node.output()->type.shape[k], known, index);
        move(k, first[k] == 0 ? index : code.sub(index, integer(code, first[k])));
      } else {
        wanted = conditions(code, map, k, known);
        if (map.offset[k] != first[k]) move(k, integer(code, map.offset[k] - first[k]));
      }
      for (const auto& condition : wanted)
        inside = inside ? code.bit_and(*inside, condition) : condition;
    }
    const DType dtype = operand->type.dtype;
    Instruction load{.opcode = Opcode::load, .dtype = dtype, .index = tensor};
    if (inside) load.operands[0] = inside->id;
    if (farther) load.operands[1] = farther->id;
    load.may_fail = !read.look_ups.empty();
    Lowering::Scalar element{nest_.append(load), dtype};
    if (inside && node.op == &op::reindex) element = filled(code, node, *inside, element);
    values_[node.output()] = element;
  }

  Lowering::Scalar filled(Lowering& code, const Node& node, Lowering::Scalar inside,
                          Lowering::Scalar element) {
    const double fill = graph::constant_number(node.inputs[1]).value();
    if (fill == 0 && !std::signbit(fill)) return element;
    return code.select(inside, element, code.constant(fill, element.dtype));
  }

  /// What lies in memory is read at its place; what is computed is combined, all others being 0.
  void add_pick(const Node& node) {
    const auto operand = values_.at(resolved(node.inputs[0]));
    const auto index = values_.at(resolved(node.inputs[1]));
    const ops::Reduction reduction = *ops::reduction_of(node);
    const auto dim = static_cast<uint32_t>(reduction.dims.front());
    if (reduction.space[dim].lower_bound().value_or(0) < 1)
      throw Unsupported{"an element of what may be empty"};
    Lowering code(nest_, values_, node, space_);
    const Instruction& source = nest_.code[static_cast<size_t>(operand.id)];
    Instruction taken{.opcode = Opcode::pick, .dtype = operand.dtype, .index = source.index};
    if (source.opcode == Opcode::load && source.operands[0] < 0) {
      taken.operands[0] = in_range(code, index, dim).id;
    } else {
      const auto here = code.compare(Compare::eq, code.position_along(dim), index);
      const auto nothing = code.constant(0, operand.dtype);
      taken.opcode = Opcode::reduce;
      taken.operands[0] = code.select(here, operand, nothing).id;
    }
    values_[node.output()] = {nest_.append(taken), operand.dtype};
  }

  void add_result(const Value* value) {
    const auto found = values_.find(resolved(value));
    TORCHJANUS_CHECK(found != values_.end(), "fused: a result has no element");
    nest_.outputs.push_back(found->second.dtype);
    nest_.results.push_back(found->second.id);
  }

  LoopNest take() { return std::move(nest_); }

 private:
  static void check_storable(DType dtype) {
    if (graph::is_complex(dtype)) throw Unsupported{"complex numbers"};
  }

  static Combine combine_of(const Node& node) {
    switch (node.op->combines) {
      case graph::Combines::product:
        return Combine::product;
      case graph::Combines::maximum:
        return Combine::maximum;
      case graph::Combines::minimum:
        return Combine::minimum;
      case graph::Combines::any:
        return Combine::any;
      case graph::Combines::all:
        return Combine::all;
      default:
        return Combine::sum;
    }
  }

  /// The index, or the end of the dimension that it lies beyond.
  Lowering::Scalar in_range(Lowering& code, Lowering::Scalar index, uint32_t dim) {
    const auto low = code.constant(0, DType::i64);
    const Instruction extent{.opcode = Opcode::extent, .dtype = DType::i64, .index = dim};
    const auto high = code.sub({nest_.append(extent), DType::i64}, code.constant(1, DType::i64));
    index = code.select(code.compare(Compare::lt, index, low), low, index);
    return code.select(code.compare(Compare::gt, index, high), high, index);
  }

  // --- indices that tensors hold

  Lowering::Scalar number_of(TensorNumber::Kind kind, uint32_t tensor, size_t dim) {
    const uint32_t index = nest_.index_of_number({kind, tensor, static_cast<uint32_t>(dim)});
    return {nest_.append({.opcode = Opcode::number, .dtype = DType::i64, .index = index}),
            DType::i64};
  }

  Lowering::Scalar size_of(Lowering& code, const graph::Dim& known, uint32_t tensor, size_t dim) {
    if (known.is_constant()) return integer(code, known.value());
    return number_of(TensorNumber::Kind::size, tensor, dim);
  }

  /// The index that a tensor of indices has at the point.
  Lowering::Scalar looked_up(Lowering& code, const ops::LookUp& look_up, Lowering::Scalar size) {
    const auto given = values_.find(resolved(look_up.index));
    if (given == values_.end()) throw Unsupported{"indices without elements"};
    const auto index = code.convert(given->second, DType::i64);
    if (!look_up.wraps) return index;
    const auto is_negative = code.compare(Compare::lt, index, integer(code, 0));
    return code.select(is_negative, code.add(index, size), index);
  }

  /// The dimensions of the space that index k of the tensor depends on.
  static std::vector<uint32_t> followed_dims(const ops::IndexMap& map, size_t k) {
    std::vector<uint32_t> dims;
    for (uint32_t dim = 0; dim < map.space_rank; ++dim)
      if (map.factor(k, dim) != 0) dims.push_back(dim);
    return dims;
  }

  struct Bounds {
    int64_t lowest, highest;
  };

  /// Of index k of the tensor; nullopt where a dimension that it follows varies.
  std::optional<Bounds> bounds_of(const ops::IndexMap& map, size_t k,
                                  std::span<const uint32_t> followed) const {
    Bounds bounds{map.offset[k], map.offset[k]};
    for (const uint32_t dim : followed) {
      const graph::Dim& size = space_->shape()[dim];
      if (!size.is_constant()) return std::nullopt;
      const int64_t last = map.factor(k, dim) * (size.value() - 1);
      bounds.lowest += std::min<int64_t>(last, 0);
      bounds.highest += std::max<int64_t>(last, 0);
    }
    return bounds;
  }

  static Lowering::Scalar integer(Lowering& code, int64_t number) {
    return code.constant(static_cast<double>(number), DType::i64);
  }

  /// Index k of the tensor at the point.
  static Lowering::Scalar index_at(Lowering& code, const ops::IndexMap& map, size_t k,
                                   std::span<const uint32_t> followed) {
    Lowering::Scalar index = integer(code, map.offset[k]);
    for (const uint32_t dim : followed) {
      const auto factor = integer(code, map.factor(k, dim));
      index = code.add(index, code.mul(code.position_along(dim), factor));
    }
    return index;
  }

  /// Under which conditions index k of the tensor is one of its indices.
  std::vector<Lowering::Scalar> conditions(Lowering& code, const ops::IndexMap& map, size_t k,
                                           const graph::Dim& size) const {
    const std::vector<uint32_t> followed = followed_dims(map, k);
    for (const uint32_t dim : followed)
      if (map.is_same(k, dim) && size == space_->shape()[dim]) return {};
    // One that is only moved is compared as it is.
    const bool is_moved = followed.size() == 1 && map.factor(k, followed[0]) == 1;
    const auto index =
        is_moved ? code.position_along(followed[0]) : index_at(code, map, k, followed);
    const int64_t first = is_moved ? -map.offset[k] : 0;
    const std::optional<Bounds> bounds = bounds_of(map, k, followed);
    std::vector<Lowering::Scalar> conditions;
    if (!bounds || bounds->lowest < 0)
      conditions.push_back(code.compare(Compare::ge, index, integer(code, first)));
    if (!bounds || bounds->highest >= size.value())
      conditions.push_back(code.compare(Compare::lt, index, integer(code, first + size.value())));
    return conditions;
  }

  // --- an index of the space that is divided

  /// How much is added to a quotient whose numerator would be below 0: it is rounded to zero then.
  static int64_t quotients_below_zero(const ops::Division& division) {
    return division.offset >= 0 ? 0 : (-division.offset + division.divisor - 1) / division.divisor;
  }

  /// The index at the point, whose own is that along `axis`; 0 where there is no such dimension.
  static Lowering::Scalar divided(Lowering& code, const ops::Division& division, int axis) {
    const auto place =
        axis < 0 ? integer(code, 0) : code.position_along(static_cast<uint32_t>(axis));
    const int64_t more = quotients_below_zero(division);
    const auto numerator =
        code.add(place, integer(code, division.offset + more * division.divisor));
    return code.sub(code.div(numerator, integer(code, division.divisor)), integer(code, more));
  }

  /// Under which conditions it is one of `size`, for so many places.
  static std::vector<Lowering::Scalar> conditions(Lowering& code, const ops::Division& division,
                                                  const graph::Dim& places, const graph::Dim& size,
                                                  Lowering::Scalar index) {
    std::vector<Lowering::Scalar> conditions;
    if (division.offset < 0)
      conditions.push_back(code.compare(Compare::ge, index, integer(code, 0)));
    if (places.value() - 1 + division.offset >= size.value() * division.divisor)
      conditions.push_back(code.compare(Compare::lt, index, integer(code, size.value())));
    return conditions;
  }

  bool is_reduced(uint32_t dim) const { return (space_->reduced() >> dim & 1) != 0; }

  /// How many elements are combined into one.
  graph::Dim count_of_row() const {
    graph::Dim product = 1;
    for (uint32_t dim = 0; dim < space_->rank(); ++dim)
      if (is_reduced(dim)) product = product * space_->shape()[dim];
    return product;
  }
  Lowering::Scalar count(Lowering& code) {
    Lowering::Scalar product = code.constant(1, DType::i64);
    for (uint32_t dim = 0; dim < space_->rank(); ++dim) {
      if (!is_reduced(dim)) continue;
      const Instruction extent{.opcode = Opcode::extent, .dtype = DType::i64, .index = dim};
      product = code.mul(product, {nest_.append(extent), DType::i64});
    }
    return product;
  }

  const Value* resolved(const Value* value) const {
    return space_ == nullptr ? value : space_->resolved(value);
  }

  const ops::IndexSpace* space_ = nullptr;
  LoopNest nest_;
  Lowering::Values values_;
  std::map<const Value*, uint32_t> mapped_;  ///< operands that are read by a map
};

}  // namespace

namespace {

/// Element by element, or no computation at all.
bool is_plain(const Node* node) {
  return node->op == &op::constant ||
         (!ops::reduction_of(*node).has_value() && !ops::is_reindexing(*node));
}

void add_node(Nest& nest, const Node& node) {
  if (node.op->role == graph::Role::constant)
    nest.add_constant(node);
  else if (node.op == &op::size)
    nest.add_size(node);
  else if (node.op->combines == graph::Combines::picked)
    nest.add_pick(node);
  else if (ops::is_read(node))
    nest.add_read(node);
  else if (ops::is_plain_reduction(node))
    nest.add_reduction(node);
  else if (node.op->scalar != nullptr)
    nest.add_node(node);
  else
    nest.add_alias(node.output(), node.inputs[0]);
}

template <class Operands, class Nodes, class Results>
LoopNest lower_in_space(const Operands& operands, const Nodes& nodes, const Results& results) {
  const auto space =
      ops::IndexSpace::of(std::vector<const Node*>(std::begin(nodes), std::end(nodes)));
  if (!space) throw Unsupported{"operators of more than one space"};
  Nest nest(*space);
  std::vector<ops::Axes> axes;
  std::vector<ops::IndexMap> maps;
  for (const Value* operand : operands) {
    nest.add_operand(operand);
    if (!operand->type.is_tensor()) continue;
    const ops::Axes* seen = space->axes(operand);
    axes.push_back(seen != nullptr ? *seen : ops::Axes(operand->type.shape.size(), -1));
    const ops::IndexMap* map = space->map(operand);
    maps.push_back(map != nullptr ? *map : ops::IndexMap{});
  }
  for (const Node* node : space->nodes()) add_node(nest, *node);
  for (const Value* result : results) {
    nest.add_result(result);
    if (!space->is_storable(result)) throw Unsupported{"a result for a part of the space"};
    axes.push_back(*space->axes(result));
  }
  LoopNest lowered = nest.take();
  for (const uint32_t along : lowered.positions)
    axes.push_back({static_cast<int>(space->rank() - along)});
  lowered.axes = std::move(axes);
  if (std::ranges::any_of(maps, [](const auto& map) { return map.space_rank != 0; })) {
    lowered.maps = std::move(maps);
    lowered.sizes.assign(space->fixed_sizes().begin(), space->fixed_sizes().end());
  }
  return lowered;
}

}  // namespace

LoopNest lower_block(const Block& block) {
  if (!std::ranges::all_of(block.nodes, is_plain))
    return lower_in_space(block.parameters, block.nodes, block.results);
  Nest nest;
  for (const Value* parameter : block.parameters) nest.add_operand(parameter);
  for (const Node* node : block.nodes) add_node(nest, *node);
  for (const Value* result : block.results) nest.add_result(result);
  return nest.take();
}

std::optional<Unsupported> why_not(const Node& node) {
  try {
    if (!is_plain(&node)) {
      const Node* nodes[] = {&node};
      std::vector<const Value*> results;
      for (const Value* output : node.outputs)
        if (output->type.is_tensor()) results.push_back(output);
      lower_in_space(node.inputs, nodes, results);
      return std::nullopt;
    }
    Nest nest;
    for (const Value* input : node.inputs) nest.add_operand(input);
    nest.add_node(node);
    return std::nullopt;
  } catch (const Unsupported& unsupported) {
    return unsupported;
  }
}

}  // namespace janus::kernels
