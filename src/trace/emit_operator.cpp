#include "trace/emit_operator.h"

#include <iterator>
#include <map>

#include "ops/list.h"
#include "ops/structure.h"

namespace janus::trace {

using namespace graph;

namespace {

constexpr std::string_view kAten = "aten::";

/// The operator's operands by the names of the schema's arguments.
using Arguments = std::vector<ops::OpaqueCall::Operand>;

std::optional<Arguments> arguments_of(const Operator& op, std::span<Value* const> operands) {
  const Attributes named = {{"operator", op.name}, {"operands", op.operands}};
  Arguments arguments = ops::opaque_call(named, operands).operands;
  size_t count = 0;
  for (const auto& argument : arguments) count += argument.values.size();
  if (count != operands.size()) return std::nullopt;
  return arguments;
}

/// The operators that compute an overload with the same arguments.
const std::multimap<std::string_view, const OpDef*>& operators_by_overload() {
  static const auto table = [] {
    std::multimap<std::string_view, const OpDef*> result;
    for (const OpDef* op : ops::all())
      if (!op->aten.empty()) result.emplace(op->aten, op);
    return result;
  }();
  return table;
}

/// A call of one of our operators.
class NativeCall {
 public:
  NativeCall(Builder& builder, const OpDef& op, const Operator& traced, const Arguments& arguments)
      : builder_(builder), op_(op), traced_(traced), arguments_(arguments) {}

  /// False if it does not take these arguments.
  bool bind() {
    for (const Parameter* parameter : op_.signature().operands())
      if (!bind_operand(*parameter)) return false;
    for (const Parameter* parameter : op_.signature().attributes())
      if (const AttributeValue* value = traced_.attributes.find(parameter->name)) {
        if (parameter->kind != Parameter::Kind::ignored)
          attributes_.set(parameter->name, *value);
        else if (!std::holds_alternative<None>(*value))
          return false;
        ++bound_;
      }
    const auto given =
        static_cast<size_t>(std::distance(traced_.attributes.begin(), traced_.attributes.end()) +
                            std::ssize(arguments_));
    fill_defaults(op_, attributes_);
    return bound_ == given;
  }

  /// The results; nothing if they have other types.
  std::optional<std::vector<Value*>> append(std::span<const Pattern> results) {
    try {
      // Constants that it needs are appended first: they are dead if the operator does not fit.
      const std::vector<Type> types = infer_results(op_, inputs_, attributes_);
      if (types.size() != results.size()) return std::nullopt;
      for (size_t i = 0; i < types.size(); ++i)
        if (!can_be(types[i], results[i])) return std::nullopt;
    } catch (const TypeError&) {
      return std::nullopt;
    }
    return builder_.append(op_, inputs_, attributes_)->outputs;
  }

 private:
  bool bind_operand(const Parameter& parameter) {
    for (const auto& argument : arguments_) {
      if (argument.name != parameter.name) continue;
      if (argument.is_list != (parameter.kind == Parameter::Kind::tensor_list)) return false;
      inputs_.insert(inputs_.end(), argument.values.begin(), argument.values.end());
      ++bound_;
      return true;
    }
    if (const AttributeValue* value = traced_.attributes.find(parameter.name)) {
      inputs_.push_back(builder_.constant_of(*value));
      ++bound_;
      return true;
    }
    if (parameter.kind == Parameter::Kind::tensor_list) return false;
    if (!parameter.default_value && !parameter.optional) return false;
    inputs_.push_back(parameter.default_value ? builder_.constant_of(*parameter.default_value)
                                              : builder_.none());
    return true;
  }

  Builder& builder_;
  const OpDef& op_;
  const Operator& traced_;
  const Arguments& arguments_;
  std::vector<Value*> inputs_;
  Attributes attributes_;
  size_t bound_ = 0;  // arguments that have a place
};

/// Takes back what was appended to a block since it had `count` nodes.
void take_back(Block& block, size_t count) { block.nodes.resize(count); }

}  // namespace

bool can_be(const Type& type, const Pattern& seen) {
  if (type.kind != seen.type.kind || type.rank() != seen.type.rank()) return false;
  if (!type.is_tensor()) return type == seen.type;
  if (type.dtype != seen.type.dtype) return false;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (type.shape[i].is_constant() && !(type.shape[i] == seen.type.shape[i])) return false;
  }
  return true;
}

std::variant<std::vector<Value*>, Refusal> emit_operator(Builder& builder, const Operator& op,
                                                         std::span<Value* const> operands,
                                                         std::span<const Pattern> results) {
  const auto arguments = arguments_of(op, operands);
  if (!arguments) return Refusal{cat(op, " has other operands than ", op.operands)};
  if (op.name.starts_with(kAten)) {
    const auto [first, last] =
        operators_by_overload().equal_range(std::string_view(op.name).substr(kAten.size()));
    for (auto candidate = first; candidate != last; ++candidate) {
      const size_t count = builder.block().nodes.size();
      NativeCall call(builder, *candidate->second, op, *arguments);
      if (call.bind())
        if (auto values = call.append(results)) return *std::move(values);
      take_back(builder.block(), count);
    }
  }
  std::vector<Type> types;
  for (const Pattern& result : results) {
    if (result.is_derived())
      return Refusal{cat("the sizes of a result of ", op, " vary, and nothing says how")};
    types.push_back(result.symbolic());
  }
  const ops::OpaqueCall call{
      .overload = op.name, .operands = *arguments, .attributes = op.attributes};
  return ops::append_opaque(builder, call, std::move(types))->outputs;
}

}  // namespace janus::trace
