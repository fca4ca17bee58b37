#include "graph/interpreter.h"

#include <algorithm>

#include "base/policy.h"
#include "graph/element_code.h"
#include "graph/functions.h"
#include "graph/op.h"

namespace janus::graph {
namespace {

DType dtype_of(const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor:
      return type.dtype;
    case Type::Kind::i64:
      return DType::i64;
    case Type::Kind::boolean:
      return DType::b1;
    default:
      return DType::f64;
  }
}

Datum number_datum(Number number, const Type& type) {
  if (type.kind == Type::Kind::boolean) return number.integer != 0;
  if (type.kind == Type::Kind::i64) return number.integer;
  return number.real;
}

/// The element of `tensor` that takes part at `index` of the broadcast `sizes`.
size_t broadcast_offset(const DenseTensor& tensor, std::span<const int64_t> index) {
  size_t offset = 0;
  const size_t skipped = index.size() - tensor.sizes.size();
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    const int64_t place = tensor.sizes[i] == 1 ? 0 : index[skipped + i];
    offset = offset * static_cast<size_t>(tensor.sizes[i]) + static_cast<size_t>(place);
  }
  return offset;
}

TypedNumber element_of(const Datum& datum, std::span<const int64_t> index) {
  if (const auto* tensor = std::get_if<DenseTensor>(&datum))
    return {tensor->elements[broadcast_offset(*tensor, index)], tensor->dtype};
  return typed_number(datum);
}

bool step(std::vector<int64_t>& index, std::span<const int64_t> sizes) {
  for (size_t i = sizes.size(); i-- > 0;) {
    if (++index[i] < sizes[i]) return true;
    index[i] = 0;
  }
  return false;
}

class Run final : public ReferenceRun {
 public:
  Run(const Graph& graph, const std::map<std::string, Datum>& cells, const Reference& reference,
      std::span<const ObjectReference> objects)
      : graph_(graph),
        cells_(cells),
        reference_(reference),
        objects_(objects),
        values_(graph.value_count()) {}

  Outcome run(std::span<const Datum> inputs) {
    TORCHJANUS_CHECK(inputs.size() == graph_.inputs().size(), "interpreter: ", inputs.size(),
                     " inputs for ", graph_.inputs().size());
    bind_symbols(inputs);
    try {
      for (size_t i = 0; i < inputs.size(); ++i) set(graph_.inputs()[i], inputs[i]);
      block(graph_.body());
      for (const Value* result : graph_.results()) outcome_.results.push_back(get(result));
      return std::move(outcome_);
    } catch (const GuardFailure& failure) {
      return Outcome{.failed_guard = failure.id};
    } catch (const RunFailure& failure) {
      return Outcome{.failure = failure.what()};
    }
  }

  // ---- what operators ask for

  int64_t evaluate(const Dim& dim) const override {
    const auto value = dim.evaluate([&](const std::string& name) -> std::optional<int64_t> {
      const auto found = symbols_.find(name);
      return found == symbols_.end() ? std::nullopt : std::optional(found->second);
    });
    if (!value) throw RunFailure(cat("dimension ", dim, " cannot be computed"));
    return *value;
  }

  void set_symbol(const std::string& name, int64_t value) override { symbols_[name] = value; }

  bool fits(const Type& type, const Datum& datum) const override {
    switch (type.kind) {
      case Type::Kind::tensor: {
        const auto* tensor = std::get_if<DenseTensor>(&datum);
        return tensor != nullptr && tensor->dtype == type.dtype && tensor->sizes == sizes_of(type);
      }
      case Type::Kind::boolean:
        return std::holds_alternative<bool>(datum);
      case Type::Kind::i64:
        return std::holds_alternative<int64_t>(datum);
      case Type::Kind::f64:
        return std::holds_alternative<double>(datum);
      case Type::Kind::str:
        return std::holds_alternative<std::string>(datum);
      case Type::Kind::none:
        return std::holds_alternative<None>(datum);
      case Type::Kind::frame:
      case Type::Kind::list:
        return std::holds_alternative<SharedList>(datum);
      case Type::Kind::object:
        return std::holds_alternative<ObjectReference>(datum);
      default:
        return false;
    }
  }

  std::vector<Datum> run(const Block& inner, std::vector<Datum> arguments) override {
    for (size_t i = 0; i < inner.parameters.size(); ++i)
      set(inner.parameters[i], std::move(arguments[i]));
    block(inner);
    std::vector<Datum> results;
    for (const Value* result : inner.results) results.push_back(get(result));
    return results;
  }

  const ObjectReference& known_object(int64_t number) const override {
    return objects_[static_cast<size_t>(number)];
  }

 private:
  void bind_symbols(std::span<const Datum> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      bind(graph_.inputs()[i]->type, inputs[i]);
      if (const auto* number = std::get_if<int64_t>(&inputs[i]))
        symbols_.try_emplace(graph_.inputs()[i]->name, *number);
    }
    for_each_node(graph_.body(), [&](const Node& node) {
      if (node.op->role != Role::state) return;
      const auto cell = cells_.find(node.attributes.get<std::string>("cell"));
      if (cell != cells_.end()) bind(node.output()->type, cell->second);
    });
  }

  /// Only a bare symbol can be read off a size.
  void bind(const Type& type, const Datum& datum) {
    const auto* tensor = std::get_if<DenseTensor>(&datum);
    if (tensor == nullptr || type.shape.size() != tensor->sizes.size()) return;
    for (size_t i = 0; i < type.shape.size(); ++i) {
      const auto names = type.shape[i].symbols();
      if (names.size() == 1 &&
          (type.shape[i] == Dim::symbol(names[0]) || type.shape[i] == Dim::symbol(names[0], true)))
        symbols_.try_emplace(names[0], tensor->sizes[i]);
    }
  }

  const Datum& get(const Value* value) const { return values_[value->id]; }

  /// Every value is checked against its type: a shape rule that is wrong shows here.
  void set(const Value* value, Datum datum) {
    TORCHJANUS_CHECK(fits(value->type, datum), "interpreter: %", value->name, " should be ",
                     value->type, ", is ", datum);
    values_[value->id] = std::move(datum);
  }

  void set_all(const Node& node, std::vector<Datum> results) {
    TORCHJANUS_CHECK(results.size() == node.outputs.size(), "interpreter: ", node.op->name,
                     " gave ", results.size(), " results");
    for (size_t i = 0; i < results.size(); ++i) set(node.outputs[i], std::move(results[i]));
  }

  void block(const Block& block) {
    for (const Node* one : block.nodes) node(*one);
  }

  void node(const Node& node) {
    switch (node.op->role) {
      case Role::constant:
        return set(node.output(), constant(node));
      case Role::state:
        return set(node.output(), cell(node));
      case Role::commit:
        outcome_.committed[node.attributes.get<std::string>("cell")] = get(node.inputs[0]);
        return;
      case Role::rebind:
        return rebind(node);
      case Role::guard:
        return guard(node);
      case Role::size:
        return set(node.output(), size(node));
      case Role::dimension:
        return name_dimension(node);
      case Role::function:  // runs where it is called
        return;
      case Role::call:
        return invoke(node);
      case Role::none:
      case Role::loop:
      case Role::opaque:
        if (node.op->scalar != nullptr) return set(node.output(), elementwise(node));
        return call(node);
    }
  }

  static Datum constant(const Node& node) {
    const AttributeValue& value = *node.attributes.find("value");
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    return None{};
  }

  const Datum& cell(const Node& node) const {
    const std::string name = node.attributes.get<std::string>("cell");
    const auto found = cells_.find(name);
    TORCHJANUS_CHECK(found != cells_.end(), "interpreter: cell ", name, " is not given");
    return found->second;
  }

  void rebind(const Node& node) {
    const bool is_bound = node.inputs.size() == 1 || std::get<bool>(get(node.inputs[1]));
    if (is_bound && node.attributes.get_or<int64_t>("keeps", 0) != 0) return;
    outcome_.rebound[node.attributes.get<std::string>("cell")] =
        is_bound ? get(node.inputs[0]) : Datum(None{});
  }

  void guard(const Node& node) const {
    if (!std::get<bool>(get(node.inputs[0])))
      throw GuardFailure{node.attributes.get<int64_t>("id")};
  }

  void name_dimension(const Node& node) {
    const int64_t size = std::get<int64_t>(get(node.inputs[0]));
    if (size < 2) throw RunFailure("dimension: less than 2");
    set_symbol(node.attributes.get<std::string>("symbol"), size);
    set(node.output(), size);
  }

  int64_t size(const Node& node) const {
    const AttributeValue& of = *node.attributes.find("of");
    if (const auto* number = std::get_if<int64_t>(&of)) return *number;
    return evaluate(std::get<Dim>(of));
  }

  static void collect_values(const Block& block, std::vector<const Value*>& values) {
    values.insert(values.end(), block.parameters.begin(), block.parameters.end());
    for_each_node(block, [&](const Node& node) {
      values.insert(values.end(), node.outputs.begin(), node.outputs.end());
      for (const auto& nested : node.blocks)
        values.insert(values.end(), nested->parameters.begin(), nested->parameters.end());
    });
  }

  /// Calls a function. The values of the invocation around it are restored afterwards.
  void invoke(const Node& node) {
    const Node* function = callee(node);
    TORCHJANUS_CHECK(function != nullptr, "interpreter: function ", function_name(node),
                     " is not there");
    const Block& inner = *function->blocks.front();
    if (++depth_ > policy::kDeepestReferenceCall) throw RunFailure("calls nest too deeply");
    std::vector<const Value*> own;
    collect_values(inner, own);
    std::vector<Datum> arguments, kept;
    for (const Value* input : node.inputs) arguments.push_back(get(input));
    for (const Value* value : own) kept.push_back(std::move(values_[value->id]));
    std::vector<Datum> results = run(inner, std::move(arguments));
    for (size_t i = 0; i < own.size(); ++i) values_[own[i]->id] = std::move(kept[i]);
    set_all(node, std::move(results));
    --depth_;
  }

  /// Python's arithmetic on numbers: in floats if one operand is, else in integers.
  static DType compute_dtype_of_numbers(const Node& node) {
    const auto is_real = [](const Value* value) { return value->type.kind == Type::Kind::f64; };
    const bool real =
        is_real(node.output()) || std::any_of(node.inputs.begin(), node.inputs.end(), is_real);
    return real ? DType::f64 : DType::i64;
  }

  DType compute_dtype(const Node& node) const {
    if (!node.output()->type.is_tensor()) return compute_dtype_of_numbers(node);
    return reference_.compute_dtype(node);
  }

  Datum elementwise(const Node& node) const {
    TORCHJANUS_CHECK(node.outputs.size() == 1, node.op->name, ": elementwise with ",
                     node.outputs.size(), " results");
    const Type& type = node.output()->type;
    ElementCode code(node, compute_dtype(node), !type.is_tensor());
    std::vector<const Datum*> operands;
    for (const Value* input : node.inputs) operands.push_back(&get(input));
    std::vector<int64_t> index(type.shape.size(), 0);
    const auto compute = [&] {
      std::vector<TypedNumber> numbers;
      for (const Datum* operand : operands) numbers.push_back(element_of(*operand, index));
      return code.run(numbers, dtype_of(type));
    };
    if (!type.is_tensor()) return number_datum(compute(), type);
    DenseTensor result(type.dtype, sizes_of(type));
    for (Number& element : result.elements) {
      element = compute();
      step(index, result.sizes);
    }
    return result;
  }

  void call(const Node& node) {
    const auto function = reference_.functions.find(node.op);
    TORCHJANUS_CHECK(function != reference_.functions.end(), "interpreter: operator ",
                     node.op->name, " is not known to the reference");
    std::vector<Datum> inputs;
    for (const Value* input : node.inputs) inputs.push_back(get(input));
    set_all(node, function->second(ReferenceCall{.node = node, .inputs = inputs, .run = *this}));
  }

  const Graph& graph_;
  const std::map<std::string, Datum>& cells_;
  const Reference& reference_;
  const std::span<const ObjectReference> objects_;
  std::vector<Datum> values_;  // by Value::id; in a function those of the innermost invocation
  int64_t depth_ = 0;          // of calls
  std::map<std::string, int64_t> symbols_;
  Outcome outcome_;
};

}  // namespace

std::vector<int64_t> ReferenceRun::sizes_of(const Type& type) const {
  std::vector<int64_t> sizes;
  for (const Dim& dim : type.shape) {
    sizes.push_back(evaluate(dim));
    if (sizes.back() < 0) throw RunFailure(cat("dimension ", dim, " is negative"));
  }
  return sizes;
}

const DenseTensor& ReferenceCall::tensor(size_t input) const {
  const auto* tensor = std::get_if<DenseTensor>(&inputs[input]);
  TORCHJANUS_CHECK(tensor != nullptr, node.op->name, ": operand ", input, " is not a tensor");
  return *tensor;
}

double ReferenceCall::number(size_t input) const {
  const Datum& datum = inputs[input];
  if (const auto* flag = std::get_if<bool>(&datum)) return *flag ? 1 : 0;
  if (const auto* integer = std::get_if<int64_t>(&datum)) return static_cast<double>(*integer);
  const auto* real = std::get_if<double>(&datum);
  TORCHJANUS_CHECK(real != nullptr, node.op->name, ": operand ", input, " is not a number");
  return *real;
}

DenseTensor ReferenceCall::result(size_t index) const {
  const Type& type = node.outputs[index]->type;
  return DenseTensor(type.dtype, run.sizes_of(type));
}

Outcome interpret(const Graph& graph, std::span<const Datum> inputs,
                  const std::map<std::string, Datum>& cells, const Reference& reference,
                  std::span<const ObjectReference> objects) {
  return Run(graph, cells, reference, objects).run(inputs);
}

}  // namespace janus::graph
