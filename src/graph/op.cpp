#include "graph/op.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace janus::graph {
namespace {

using Kind = Parameter::Kind;

/// Signatures by the address of their operator. They live as long as the process, as operators do.
class SignatureCache {
 public:
  const Signature& get(const OpDef& op) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = signatures_.find(&op); found != signatures_.end())
        return *found->second;
    }
    auto parsed = std::make_unique<const Signature>(parse_signature(op.schema));
    const std::unique_lock lock(mutex_);
    return *signatures_.try_emplace(&op, std::move(parsed)).first->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<const OpDef*, std::unique_ptr<const Signature>> signatures_;
};

/// Whether an i64 holds how many bytes the known sizes make.
bool has_countable_bytes(const Type& type) {
  int64_t bytes = byte_size(type.dtype);
  for (const Dim& dim : type.shape)
    if (dim.is_constant() && dim.value() > 0 && __builtin_mul_overflow(bytes, dim.value(), &bytes))
      return false;
  return true;
}

bool accepts(const Parameter& parameter, const Type& type) {
  switch (parameter.kind) {
    case Kind::tensor:
      return type.is_tensor() || type.is_number() || (parameter.optional && type.is_none());
    case Kind::tensor_list:
      return type.is_tensor() || type.is_number() || (parameter.element_optional && type.is_none());
    case Kind::scalar:
    case Kind::floating:
      return type.is_number() || (parameter.optional && type.is_none());
    default:
      return false;
  }
}

bool accepts(const Parameter& parameter, const AttributeValue& value) {
  if (std::holds_alternative<None>(value)) return parameter.optional;
  switch (parameter.kind) {
    case Kind::integer:
      return std::holds_alternative<int64_t>(value) || std::holds_alternative<Dim>(value);
    case Kind::integer_list:
      return std::holds_alternative<Shape>(value);
    case Kind::boolean:
      return std::holds_alternative<bool>(value);
    case Kind::boolean_list:
      return std::holds_alternative<std::vector<bool>>(value);
    case Kind::floating_list:
      return std::holds_alternative<std::vector<double>>(value);
    case Kind::string:
      return std::holds_alternative<std::string>(value);
    case Kind::dtype:
      return std::holds_alternative<DType>(value);
    case Kind::ignored:
      return true;
    default:
      return false;
  }
}

[[noreturn]] void refuse(const OpDef& op, const std::string& message) {
  throw TypeError(cat(op.name, ": ", message));
}

void check_operands(const OpDef& op, std::span<Value* const> inputs) {
  const auto operands = op.signature().operands();
  const auto list = std::find_if(operands.begin(), operands.end(), [](const Parameter* parameter) {
    return parameter->kind == Kind::tensor_list;
  });
  const bool has_list = list != operands.end();
  const size_t fixed = operands.size() - (has_list ? 1 : 0);
  if (has_list ? inputs.size() < fixed : inputs.size() != fixed)
    refuse(op,
           cat("expected ", has_list ? "at least " : "", fixed, " operands, got ", inputs.size()));
  const size_t list_length = inputs.size() - fixed;
  size_t next = 0;
  for (const Parameter* parameter : operands) {
    const size_t count = parameter->kind == Kind::tensor_list ? list_length : 1;
    for (size_t i = 0; i < count; ++i, ++next) {
      if (!accepts(*parameter, inputs[next]->type))
        refuse(op, cat("operand ", parameter->name, " cannot be ", inputs[next]->type));
    }
  }
}

void check_attributes(const OpDef& op, const Attributes& attributes) {
  const Signature& signature = op.signature();
  for (const auto& [name, value] : attributes) {
    if (name.starts_with('_')) continue;
    const Parameter* parameter = signature.find(name);
    if (parameter == nullptr || parameter->is_operand())
      refuse(op, cat("there is no attribute ", name));
    if (!accepts(*parameter, value)) refuse(op, cat("attribute ", name, " cannot be ", value));
  }
  for (const Parameter* parameter : signature.attributes()) {
    if (parameter->kind != Kind::ignored && !attributes.has(parameter->name))
      refuse(op, cat("attribute ", parameter->name, " is missing"));
  }
}

}  // namespace

void Infer::fail(const std::string& message) const { refuse(op, message); }

const Signature& OpDef::signature() const {
  static SignatureCache cache;
  return cache.get(*this);
}

void check_signature(const OpDef& op, std::span<Value* const> inputs,
                     const Attributes& attributes) {
  if (op.signature().free_form) return;
  check_operands(op, inputs);
  check_attributes(op, attributes);
}

void fill_defaults(const OpDef& op, Attributes& attributes) {
  for (const Parameter* parameter : op.signature().attributes()) {
    if (parameter->kind == Kind::ignored) continue;
    const AttributeValue* value = attributes.find(parameter->name);
    if (value == nullptr) {
      if (parameter->default_value) attributes.set(parameter->name, *parameter->default_value);
    } else if (const Dim* dim = std::get_if<Dim>(value); dim != nullptr && dim->is_constant()) {
      if (parameter->kind == Kind::integer) attributes.set(parameter->name, dim->value());
    }
  }
}

std::vector<Type> infer_results(const OpDef& op, std::span<Value* const> inputs,
                                const Attributes& attributes,
                                std::span<const std::unique_ptr<Block>> blocks) {
  TORCHJANUS_CHECK(op.infer != nullptr, op.name, ": result types are not inferred but given");
  check_signature(op, inputs, attributes);
  try {
    std::vector<Type> types =
        op.infer(Infer{.op = op, .inputs = inputs, .attributes = attributes, .blocks = blocks});
    const int expected = op.signature().result_count;
    TORCHJANUS_CHECK(expected < 0 || types.size() == static_cast<size_t>(expected), op.name,
                     ": infer gave ", types.size(), " results, the schema says ", expected);
    for (const Type& type : types)
      if (type.is_tensor() && !has_countable_bytes(type)) refuse(op, cat("the size of ", type));
    return types;
  } catch (const DimError& error) {
    refuse(op, error.what());
  }
}

void check_given(const OpDef& op, std::span<Value* const> inputs, const Attributes& attributes,
                 std::span<const std::unique_ptr<Block>> blocks) {
  check_signature(op, inputs, attributes);
  if (op.check != nullptr)
    op.check(Infer{.op = op, .inputs = inputs, .attributes = attributes, .blocks = blocks});
}

Layout layout_of(const OpDef& op) {
  if (op.layout != Layout::unstated) return op.layout;
  if (op.is(Trait::view)) return Layout::view;
  if (op.is(Trait::product)) return Layout::contiguous;
  if (op.number != nullptr) return Layout::none;
  return op.is(Trait::elementwise) ? Layout::operands : Layout::unstated;
}

Raises raises_of(const OpDef& op) {
  if (op.raises != Raises::unstated) return op.raises;
  if (op.is(Trait::view)) return Raises::never;
  return op.is(Trait::product) ? Raises::never_for_floats : Raises::unstated;
}

Saves saves_of(const OpDef& op) {
  if (op.saves != Saves::unstated) return op.saves;
  return op.is(Trait::view) ? Saves::nothing : Saves::unstated;
}

OpTable::OpTable(std::span<const OpDef* const> ops) : ops_(ops.begin(), ops.end()) {
  std::sort(ops_.begin(), ops_.end(),
            [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  const auto twice = std::adjacent_find(
      ops_.begin(), ops_.end(), [](const OpDef* a, const OpDef* b) { return a->name == b->name; });
  TORCHJANUS_CHECK(twice == ops_.end(), "operator table: two operators are named ", (*twice)->name);
}

const OpDef* OpTable::find(std::string_view name) const {
  const auto found =
      std::lower_bound(ops_.begin(), ops_.end(), name,
                       [](const OpDef* op, std::string_view wanted) { return op->name < wanted; });
  return found != ops_.end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace janus::graph
