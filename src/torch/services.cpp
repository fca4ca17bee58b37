// What the frontend asks about operators: finding the overload, and what it gives for such
// arguments, by running it on tensors without data.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <map>
#include <set>

#include "ops/structure.h"
#include "python/integer.h"
#include "python/lock.h"
#include "torch/arguments.h"
#include "torch/grad_fn_name.h"
#include "torch/numbers_for_tensors.h"
#include "torch/operator_facts.h"
#include "torch/operator_names.h"
#include "torch/overload.h"
#include "torch/parts.h"
#include "torch/random_state.h"
#include "torch/resolved_memo.h"
#include "torch/saved_results.h"
#include "torch/shape_fit.h"
#include "torch/tensor.h"

namespace janus::torch {

using c10::Argument;
using c10::FunctionSchema;
using c10::IValue;
using c10::TypeKind;
using frontend::OperatorArgument;
using frontend::ResolvedOperator;
using frontend::WhyUnresolved;
using graph::AttributeValue;
using graph::Dim;
using graph::Shape;
using graph::Type;

namespace {

using Kind = OperatorArgument::Kind;

c10::TypePtr without_optional(c10::TypePtr type) {
  if (auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
  return type;
}

bool is_none(const OperatorArgument& argument) {
  return argument.kind == Kind::constant && argument.object.get() == Py_None;
}

/// A constant number, string, dtype, ... as an attribute; nullopt if it is something else.
std::optional<AttributeValue> attribute_of(PyObject* object) {
  if (object == Py_None) return graph::None{};
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_CheckExact(object)) return python::int64_of(object);
  if (PyFloat_CheckExact(object)) return PyFloat_AS_DOUBLE(object);
  if (PyUnicode_CheckExact(object)) return std::string(PyUnicode_AsUTF8(object));
  if (THPDtype_Check(object)) {
    const auto dtype = dtype_of(reinterpret_cast<THPDtype*>(object)->scalar_type);
    if (dtype) return *dtype;
    return std::nullopt;
  }
  const python::Object text = python::Object::steal(PyObject_Str(object));
  const std::string type = Py_TYPE(object)->tp_name;
  if (text && (type == "torch.device" || type == "torch.layout" || type == "torch.memory_format")) {
    return std::string(PyUnicode_AsUTF8(text.get()));
  }
  PyErr_Clear();
  return std::nullopt;
}

/// Whether a number (not a tensor) may stand for the type.
bool number_fits(const Type& type, TypeKind kind) {
  switch (kind) {
    case TypeKind::NumberType:
      return true;
    case TypeKind::FloatType:
      return type.kind != Type::Kind::boolean;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return type.kind == Type::Kind::i64;
    case TypeKind::BoolType:
      return type.kind == Type::Kind::boolean;
    default:
      return false;
  }
}

Type type_of_constant(PyObject* object) {
  if (PyBool_Check(object)) return Type::boolean();
  if (PyLong_CheckExact(object)) return Type::i64();
  if (PyFloat_CheckExact(object)) return Type::f64();
  return Type::none();
}

/// One attempt to bind the arguments of a call to a schema.
class Binding {
 public:
  /// `wrap`: numbers may stand for tensors.
  Binding(const FunctionSchema& schema, std::span<const OperatorArgument> arguments, bool wrap)
      : schema_(schema), wrap_(wrap) {
    ok_ = assign(arguments);
  }

  explicit operator bool() const { return ok_; }
  /// The argument of the call for each of the schema's; null: its default.
  const std::vector<const OperatorArgument*>& assigned() const { return assigned_; }

 private:
  bool assign(std::span<const OperatorArgument> arguments) {
    const auto& parameters = schema_.arguments();
    assigned_.assign(parameters.size(), nullptr);
    size_t next = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].keyword.empty()) {
        if (!assign_keyword(arguments[i])) return false;
        continue;
      }
      if (next >= parameters.size() || parameters[next].kwarg_only()) return false;
      if (!fits(arguments[i], parameters[next])) {
        // Sizes may be given one by one, as the last positional arguments.
        if (next == 0 || !gather(arguments, i, next)) return false;
        break;
      }
      assigned_[next++] = &arguments[i];
    }
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (assigned_[p] == nullptr && !parameters[p].default_value()) return false;
    }
    return true;
  }

  bool assign_keyword(const OperatorArgument& argument) {
    const auto& parameters = schema_.arguments();
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (!frontend::names_parameter(argument.keyword, parameters[p].name())) continue;
      if (assigned_[p] != nullptr || !fits(argument, parameters[p])) return false;
      assigned_[p] = &argument;
      return true;
    }
    return false;
  }

  bool gather(std::span<const OperatorArgument> arguments, size_t first, size_t parameter) {
    const c10::TypePtr type = without_optional(schema_.arguments()[parameter].real_type());
    if (type->kind() != TypeKind::ListType) return false;
    gathered_.kind = Kind::sequence;
    for (size_t i = first; i < arguments.size(); ++i) {
      if (!arguments[i].keyword.empty()) return false;
      gathered_.elements.push_back(arguments[i]);
    }
    if (!fits(gathered_, schema_.arguments()[parameter])) return false;
    assigned_[parameter] = &gathered_;
    return true;
  }

  bool fits(const OperatorArgument& argument, const Argument& parameter) const {
    if (is_none(argument)) {
      return parameter.type()->kind() == TypeKind::OptionalType;
    }
    return fits(argument, without_optional(parameter.real_type()), parameter.N().has_value());
  }

  bool fits(const OperatorArgument& argument, const c10::TypePtr& type, bool sized) const {
    if (type->kind() == TypeKind::ListType) return list_fits(argument, type, sized);
    switch (argument.kind) {
      case Kind::tensor:
        return type->kind() == TypeKind::TensorType;
      case Kind::number:
        if (type->kind() == TypeKind::TensorType) return wrap_;
        return number_fits(argument.type, type->kind());
      case Kind::dimension:
        return number_fits(Type::i64(), type->kind());
      case Kind::constant:
        return constant_fits(argument.object.get(), type);
      case Kind::sequence:
        return false;
    }
    return false;
  }

  bool constant_fits(PyObject* object, const c10::TypePtr& type) const {
    const Type number = type_of_constant(object);
    switch (type->kind()) {
      case TypeKind::TensorType:
        return wrap_ && number.is_number();
      case TypeKind::StringType:
        return PyUnicode_CheckExact(object) != 0;
      case TypeKind::ScalarTypeType:
        return THPDtype_Check(object);
      case TypeKind::DeviceObjType:
        return PyUnicode_CheckExact(object) != 0 ||
               std::string_view(Py_TYPE(object)->tp_name) == "torch.device";
      case TypeKind::LayoutType:
        return std::string_view(Py_TYPE(object)->tp_name) == "torch.layout";
      case TypeKind::MemoryFormatType:
        return std::string_view(Py_TYPE(object)->tp_name) == "torch.memory_format";
      default:
        return number.is_number() && number_fits(number, type->kind());
    }
  }

  bool list_fits(const OperatorArgument& argument, const c10::TypePtr& type, bool sized) const {
    const c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
    if (argument.kind != Kind::sequence) {
      // `int[2]` takes one number for all.
      return sized && element->kind() != TypeKind::TensorType && fits(argument, element, false);
    }
    const bool optional = element->kind() == TypeKind::OptionalType;
    const c10::TypePtr plain = without_optional(element);
    return std::all_of(argument.elements.begin(), argument.elements.end(), [&](const auto& one) {
      return is_none(one) ? optional : fits(one, plain, false);
    });
  }

  const FunctionSchema& schema_;
  bool wrap_;
  bool ok_ = false;
  std::vector<const OperatorArgument*> assigned_;
  OperatorArgument gathered_;

 public:
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;
};

/// Whether the argument holds something that varies from call to call.
bool is_operand(const OperatorArgument& argument) {
  if (argument.kind == Kind::tensor || argument.kind == Kind::number) return true;
  return argument.kind == Kind::sequence &&
         std::any_of(argument.elements.begin(), argument.elements.end(), is_operand);
}

/// A number or sequence of numbers as an attribute.
std::optional<AttributeValue> constant_of(const OperatorArgument& argument) {
  if (argument.kind == Kind::constant) return attribute_of(argument.object.get());
  if (argument.kind == Kind::dimension) return argument.dim;
  Shape integers;
  std::vector<double> floats;
  std::vector<bool> flags;
  for (const OperatorArgument& element : argument.elements) {
    if (element.kind == Kind::dimension) {
      integers.push_back(element.dim);
      continue;
    }
    const auto value = attribute_of(element.object.get());
    if (!value) return std::nullopt;
    if (const bool* flag = std::get_if<bool>(&*value)) {
      flags.push_back(*flag);
    } else if (const int64_t* integer = std::get_if<int64_t>(&*value)) {
      integers.emplace_back(*integer);
      floats.push_back(static_cast<double>(*integer));
    } else if (const double* number = std::get_if<double>(&*value)) {
      floats.push_back(*number);
    } else {
      return std::nullopt;
    }
  }
  const size_t count = argument.elements.size();
  if (!flags.empty())
    return flags.size() == count ? std::optional<AttributeValue>(flags) : std::nullopt;
  if (integers.size() == count) return integers;
  if (floats.size() == count) return floats;
  return std::nullopt;
}

/// Turns bound arguments into a node's operands and attributes.
class Encoder {
 public:
  Encoder(const FunctionSchema& schema, const Binding& binding, ResolvedOperator& result)
      : schema_(schema), result_(result) {
    for (size_t p = 0; p < schema.arguments().size(); ++p) {
      if (binding.assigned()[p] != nullptr) add(schema.arguments()[p], *binding.assigned()[p]);
    }
    std::string name = schema.name();
    if (!schema.overload_name().empty()) name += "." + schema.overload_name();
    result_.attributes.set("operator", std::move(name));
    result_.attributes.set("operands", std::move(names_));
  }

  const std::string& problem() const { return problem_; }

 private:
  void add(const Argument& parameter, const OperatorArgument& argument) {
    const c10::TypePtr type = without_optional(parameter.real_type());
    const bool list = type->kind() == TypeKind::ListType;
    const bool of_tensors =
        list ? without_optional(type->castRaw<c10::ListType>()->getElementType())->kind() ==
                   TypeKind::TensorType
             : type->kind() == TypeKind::TensorType;
    if (is_none(argument)) {
      result_.attributes.set(parameter.name(), graph::None{});
    } else if (of_tensors || is_operand(argument)) {
      add_operands(parameter, argument, list, of_tensors);
    } else if (const auto value = constant_of(argument)) {
      result_.attributes.set(parameter.name(), *value);
    } else {
      problem_ = cat("argument ", parameter.name(), " of ", schema_.name(), " is not a constant");
    }
  }

  void add_operands(const Argument& parameter, const OperatorArgument& argument, bool list,
                    bool of_tensors) {
    names_ += cat(names_.empty() ? "" : ",", parameter.name());
    if (!list) {
      if (!of_tensors && argument.type.kind == Type::Kind::i64 && is_shape_argument(parameter)) {
        problem_ = cat("argument ", parameter.name(), " of ", schema_.name(), " varies");
      }
      result_.operands.push_back(&argument);
      return;
    }
    if (!of_tensors)
      problem_ = cat("argument ", parameter.name(), " of ", schema_.name(), " varies");
    names_ += cat('*', argument.elements.size());
    for (const OperatorArgument& element : argument.elements) {
      result_.operands.push_back(is_none(element) ? nullptr : &element);
    }
  }

  /// An integer may decide about sizes.
  static bool is_shape_argument(const Argument& parameter) {
    const TypeKind kind = without_optional(parameter.real_type())->kind();
    return kind == TypeKind::IntType || kind == TypeKind::SymIntType;
  }

  const FunctionSchema& schema_;
  ResolvedOperator& result_;
  std::string names_;
  std::string problem_;
};

/// Runs the overload on tensors without data, once for each of several sets of values of the
/// dimension symbols.
class Trial {
 public:
  Trial(const c10::OperatorHandle& overload, const Binding& binding)
      : overload_(overload), binding_(binding) {}

  struct Outcome {
    std::vector<at::Tensor> tensors;
    std::vector<Type> numbers;                     ///< of results that are no tensors
    std::vector<const OperatorArgument*> same_as;  ///< by tensor: the argument that it is, or null
    bool list = false;
    bool tuple = false;
  };

  Outcome run(const SymbolChoice& symbols, bool on_meta) {
    symbols_ = &symbols;
    device_ = on_meta ? at::kMeta : at::kCPU;
    made_.clear();
    std::vector<IValue> stack;
    const auto& parameters = overload_.schema().arguments();
    for (size_t p = 0; p < parameters.size(); ++p) {
      const OperatorArgument* argument = binding_.assigned()[p];
      stack.push_back(argument == nullptr ? *parameters[p].default_value()
                                          : value_of(*argument, parameters[p]));
    }
    const c10::AutoGradMode with_gradients(!is_factory());
    overload_.callBoxed(&stack);
    Outcome outcome;
    outcome.tuple = overload_.schema().returns().size() > 1;
    for (const IValue& value : stack) {
      if (value.isTensorList()) {
        outcome.list = true;
        for (const at::Tensor& tensor : value.toTensorList()) outcome.tensors.push_back(tensor);
      } else if (value.isTensor()) {
        outcome.tensors.push_back(value.toTensor());
      } else {
        outcome.numbers.push_back(value.isDouble() ? Type::f64()
                                  : value.isBool() ? Type::boolean()
                                                   : Type::i64());
      }
    }
    for (const at::Tensor& tensor : outcome.tensors) outcome.same_as.push_back(same_as(tensor));
    return outcome;
  }

  /// What ints that vary are, and floats about; if it is 0, both exactly, as are dimensions.
  void use_number(int64_t number) { number_ = number; }

  /// The tensor made for an argument in the last run.
  at::Tensor tensor_for(const OperatorArgument* argument) const {
    const auto found = made_.find(argument);
    return found == made_.end() ? at::Tensor() : found->second;
  }

 private:
  /// Python calls `randint_like` and its like below autograd.
  bool is_factory() const {
    const std::string& name = overload_.schema().name();
    return ops::is_torchs_own(name) && name.ends_with("_like");
  }

  const OperatorArgument* same_as(const at::Tensor& tensor) const {
    for (const auto& [argument, made] : made_) {
      if (made.is_same(tensor)) return argument;
    }
    return nullptr;
  }

  at::Tensor make(const OperatorArgument& argument) {
    std::vector<int64_t> sizes;
    for (const Dim& dim : argument.type.shape) sizes.push_back(symbols_->evaluate(dim));
    const auto options = at::TensorOptions(scalar_type(argument.type.dtype)).device(device_);
    at::Tensor tensor = argument.strides.empty()
                            ? at::empty(sizes, options)
                            : at::empty_strided(sizes, argument.strides, options);
    if (device_ == at::kCPU) tensor.zero_();
    if (argument.requires_grad) tensor.requires_grad_();
    made_[&argument] = tensor;
    return tensor;
  }

  /// A value for a number that varies: any will do, if it is no size.
  execute::Slot example(const Type& type) const {
    if (type.kind == Type::Kind::f64)
      return execute::Slot::of(static_cast<double>(number_) - (number_ == 0 ? 0 : 0.5));
    if (type.kind == Type::Kind::boolean) return execute::Slot::of(true);
    return execute::Slot::of(number_);
  }

  IValue value_of(const OperatorArgument& argument, const Argument& parameter) {
    const c10::TypePtr type = without_optional(parameter.real_type());
    if (is_none(argument)) return {};
    if (type->kind() == TypeKind::ListType && argument.kind == Kind::sequence) {
      const c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
      if (element->kind() == TypeKind::TensorType) {
        c10::List<at::Tensor> list;
        for (const OperatorArgument& one : argument.elements) list.push_back(tensor_value(one));
        return list;
      }
      if (without_optional(element)->kind() == TypeKind::TensorType) {
        c10::List<std::optional<at::Tensor>> list;
        for (const OperatorArgument& one : argument.elements) {
          list.push_back(is_none(one) ? std::nullopt : std::optional(tensor_value(one)));
        }
        return list;
      }
    }
    if (type->kind() == TypeKind::TensorType) return tensor_value(argument);
    if (argument.kind == Kind::number) {
      return number_argument(example(argument.type), ArgumentSource::Number::scalar);
    }
    if (argument.kind == Kind::dimension && argument.is_varying_number() && number_ == 0)
      return number_argument(execute::Slot::of(number_), ArgumentSource::Number::scalar);
    return constant_argument(*constant_of(argument), parameter,
                             [this](const std::string& name) { return symbols_->find(name); });
  }

  at::Tensor tensor_value(const OperatorArgument& argument) {
    if (argument.kind == Kind::tensor) return make(argument);
    if (argument.kind == Kind::number) return wrapped_number(example(argument.type));
    const auto value = constant_of(argument);
    TORCHJANUS_CHECK(value, "resolve: an argument is no tensor");
    if (const bool* flag = std::get_if<bool>(&*value))
      return wrapped_number(execute::Slot::of(*flag));
    if (const int64_t* number = std::get_if<int64_t>(&*value)) {
      return wrapped_number(execute::Slot::of(*number));
    }
    if (const double* number = std::get_if<double>(&*value)) {
      return wrapped_number(execute::Slot::of(*number));
    }
    return wrapped_number(execute::Slot::of(symbols_->evaluate(std::get<Dim>(*value))));
  }

  const c10::OperatorHandle& overload_;
  const Binding& binding_;
  const SymbolChoice* symbols_ = nullptr;
  c10::Device device_{at::kMeta};
  int64_t number_ = 1;
  std::map<const OperatorArgument*, at::Tensor> made_;
};

/// All dimensions that tensors among the arguments have.
void collect_sizes(const OperatorArgument& argument, std::vector<Dim>& dims) {
  if (argument.kind == Kind::tensor) {
    dims.insert(dims.end(), argument.type.shape.begin(), argument.type.shape.end());
    if (argument.type.shape.size() > 1) dims.push_back(graph::element_count(argument.type.shape));
  }
  for (const OperatorArgument& element : argument.elements) collect_sizes(element, dims);
}

/// The numbers among the arguments that may be sizes.
void collect_numbers(const OperatorArgument& argument, std::vector<Dim>& dims) {
  if (argument.kind == Kind::dimension) dims.push_back(argument.dim);
  for (const OperatorArgument& element : argument.elements) collect_numbers(element, dims);
}

/// The names, without overloads, of what is computed by calling other operators.
std::set<std::string, std::less<>> composite_operators() {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::set<std::string, std::less<>> names;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto handle = dispatcher.findSchema(name);
    if (handle && handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
      names.insert(name.name);
  }
  return names;
}

class Services final : public frontend::TorchServices {
 public:
  std::optional<std::string> operator_name(PyObject* callable) const override {
    return torch::operator_name(callable);
  }

  frontend::OperatorFacts facts(std::string_view name) const override {
    return operator_facts(name);
  }

  bool is_composite(std::string_view name) const override {
    static const auto& all = *new auto(composite_operators());
    return all.contains(name.substr(0, name.find('.')));
  }

  bool takes_number(std::string_view name, size_t position,
                    std::string_view keyword) const override {
    return torch::takes_number(name, position, keyword);
  }

  std::string grad_fn_name(const frontend::ProducingCall& call) const override {
    return torch::grad_fn_name(call);
  }

  std::optional<ResolvedOperator> resolve(std::string_view name,
                                          std::span<const OperatorArgument> arguments,
                                          WhyUnresolved& why_not) const override {
    why_not.text = cat("torch has no overload of ", name, " for these arguments");
    try {
      return find(std::string(name), arguments, why_not);
    } catch (const c10::Error& error) {
      why_not.text = error.what_without_backtrace();
    } catch (const std::exception& error) {
      why_not.text = error.what();
    }
    return std::nullopt;
  }

 private:
  /// The overload that fits without turning numbers into tensors, else one that fits with that, of
  /// those operators for which torch does it.
  static std::optional<ResolvedOperator> find(const std::string& name,
                                              std::span<const OperatorArgument> arguments,
                                              WhyUnresolved& why) {
    const size_t dot = name.find('.');
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    const auto& operators =
        ::torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name.substr(0, dot)));
    for (const bool wrap : {false, true}) {
      if (wrap && !allows_numbers_as_tensors(name)) break;
      for (const auto& candidate : operators) {
        const FunctionSchema& schema = candidate->schema();
        if (!overload.empty() &&
            overload != (schema.overload_name().empty() ? "default" : schema.overload_name()))
          continue;
        if (is_out(schema)) continue;
        const Binding binding(schema, arguments, wrap);
        if (binding) return describe(schema, binding, arguments, why);
      }
    }
    return std::nullopt;
  }

  static bool is_out(const FunctionSchema& schema) {
    return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                       [](const Argument& argument) { return argument.is_out(); }) ||
           schema.overload_name().ends_with("Dimname") ||
           schema.overload_name().find("names") != std::string::npos;
  }

  /// For the dispatcher dtypes are numbers; for Python they are not.
  static bool names_a_type(const Argument& result) {
    return result.real_type()->kind() == c10::TypeKind::ScalarTypeType;
  }

  static std::optional<ResolvedOperator> describe(const FunctionSchema& schema,
                                                  const Binding& binding,
                                                  std::span<const OperatorArgument> arguments,
                                                  WhyUnresolved& why_not) {
    std::string& why = why_not.text;
    ResolvedOperator result;
    const Encoder encoder(schema, binding, result);
    if (!encoder.problem().empty()) {
      why = encoder.problem();
      return std::nullopt;
    }
    const auto overload = c10::Dispatcher::singleton().findSchema(schema.operator_name());
    if (!overload) return std::nullopt;
    if (std::ranges::any_of(schema.returns(), names_a_type)) {
      why = cat(schema.name(), " gives a dtype, not a number");
      return std::nullopt;
    }
    result.mutates = schema.is_mutable() || operator_facts(schema.name()).writes_unsaid;
    // Nothing says whether an operator of the program's or a library's draws.
    result.random =
        !ops::is_torchs_own(schema.name()) || (overload->hasTag(at::Tag::nondeterministic_seeded) &&
                                               !never_drops(schema, result.attributes));
    if (result.random) result.attributes.set("_draws", true);
    if (result.mutates) return result;
    if (asks_for_sparse_gradient(result.attributes) &&
        std::ranges::any_of(arguments, &OperatorArgument::requires_grad)) {
      why = cat(schema.name(), " has a gradient that is sparse");
      return std::nullopt;
    }
    static ResolvedMemo& memo = *new ResolvedMemo;  // holds Python's objects: lives to the end
    if (memo.recall(result)) return result;
    if (!try_out(schema, *overload, binding, arguments, result, why_not)) return std::nullopt;
    memo.note(result);
    return result;
  }

  static bool asks_for_sparse_gradient(const graph::Attributes& attributes) {
    return attributes.get_or<bool>("sparse", false) ||
           attributes.get_or<bool>("sparse_grad", false);
  }

  /// Completes `result` by what the overload gives; false if that is nothing for a graph.
  static bool try_out(const FunctionSchema& schema, const c10::OperatorHandle& overload,
                      const Binding& binding, std::span<const OperatorArgument> arguments,
                      ResolvedOperator& result, WhyUnresolved& why_not) {
    std::string& why = why_not.text;
    const KeptGenerator kept;
    Trial trial(overload, binding);
    std::vector<Dim> sizes;
    for (const OperatorArgument& argument : arguments) collect_sizes(argument, sizes);
    std::vector<Dim> dims = sizes;
    for (const OperatorArgument& argument : arguments) collect_numbers(argument, dims);
    ShapeFit fit(dims);
    std::vector<Trial::Outcome> outcomes;
    const bool on_meta = is_asked_without_data(schema);
    if (has_numbers(result) && numbers_are_sizes(trial, fit.choices().front(), on_meta)) {
      why = cat(schema.name(), " gives as much as a number says that varies");
      why_not.numbers_are_sizes = true;
      return false;
    }
    const auto small = fit.small_numbers(sizes);
    auto of_small = small ? attempt_small(trial, *small, on_meta) : std::nullopt;
    for (const SymbolChoice& choice : fit.choices())
      outcomes.push_back(attempt(trial, choice, on_meta));
    if (of_small) {  // the trial still has what came last
      outcomes.insert(outcomes.end() - 1, *std::move(of_small));
      fit.add(*small);
    }
    auto complete = conclude(schema, trial, fit, outcomes, std::move(result), why);
    if (!complete) return false;
    if (std::ranges::any_of(arguments, &OperatorArgument::is_varying_number) &&
        std::ranges::find(complete->differentiable, true) != complete->differentiable.end())
      complete->zero_ends_gradient = zero_ends_gradient(trial, fit, on_meta, *complete);
    if (outcomes.back().list &&
        std::ranges::any_of(arguments, &OperatorArgument::is_varying_number)) {
      why = cat(schema.name(), " gives as many tensors as a number says that varies");
      return false;
    }
    result = *std::move(complete);
    return true;
  }

  /// Numbers too small for the operator say nothing about larger ones.
  static std::optional<Trial::Outcome> attempt_small(Trial& trial, const SymbolChoice& small,
                                                     bool on_meta) {
    try {
      return attempt(trial, small, on_meta);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  /// Attention and recurrent layers draw only where they drop something: with a probability that
  /// is not 0, in training.
  static bool never_drops(const FunctionSchema& schema, const graph::Attributes& attributes) {
    return is_given_as_zero(schema, attributes, "dropout_p") ||
           is_given_as_zero(schema, attributes, "dropout") ||
           (schema.argumentIndexWithName("dropout") &&
            is_given_as_zero(schema, attributes, "train"));
  }

  /// Whether the argument exists, is no operand of the graph, and is 0 or False.
  static bool is_given_as_zero(const FunctionSchema& schema, const graph::Attributes& attributes,
                               const std::string& name) {
    const auto index = schema.argumentIndexWithName(name);
    if (!index) return false;
    const AttributeValue* given = attributes.find(name);
    if (given == nullptr) {
      const auto& otherwise = schema.arguments()[static_cast<size_t>(*index)].default_value();
      return attributes.get<std::string>("operands").find(name) == std::string::npos && otherwise &&
             otherwise->isDouble() && otherwise->toDouble() == 0;
    }
    if (const double* number = std::get_if<double>(given)) return *number == 0;
    if (const bool* flag = std::get_if<bool>(given)) return !*flag;
    const int64_t* number = std::get_if<int64_t>(given);
    return number != nullptr && *number == 0;
  }

  /// Whether torch is asked with tensors without data. Some results have other sizes there.
  /// Recurrent layers are composed of operators for each step, each of which takes milliseconds
  /// without data, as torch computes its sizes in Python; with data it takes microseconds.
  static bool is_asked_without_data(const FunctionSchema& schema) {
    const bool is_recurrent_layer = schema.argumentIndexWithName("num_layers").has_value();
    return !is_recurrent_layer && !operator_facts(schema.name()).needs_data;
  }

  static Trial::Outcome attempt(Trial& trial, const SymbolChoice& choice, bool on_meta) {
    try {
      return trial.run(choice, on_meta);
    } catch (const c10::NotImplementedError&) {
      return trial.run(choice, false);
    }
  }

  /// Whether results have other sizes if the numbers that vary are larger. What takes no such
  /// numbers has no sizes of them.
  static bool numbers_are_sizes(Trial& trial, const SymbolChoice& choice, bool on_meta) {
    try {
      trial.use_number(7);
      const Trial::Outcome one = attempt(trial, choice, on_meta);
      trial.use_number(11);
      const Trial::Outcome other = attempt(trial, choice, on_meta);
      trial.use_number(1);
      return !std::ranges::equal(one.tensors, other.tensors, [](const auto& a, const auto& b) {
        return !a.defined() || !b.defined() || a.sizes() == b.sizes();
      });
    } catch (const std::exception&) {
      trial.use_number(1);
      return false;
    }
  }

  /// Whether operands get no gradient if the numbers that vary are 0.
  static bool zero_ends_gradient(Trial& trial, const ShapeFit& fit, bool on_meta,
                                 const ResolvedOperator& result) {
    try {
      trial.use_number(0);
      const Trial::Outcome outcome = attempt(trial, fit.choices().back(), on_meta);
      trial.use_number(1);
      return without_gradient(outcome, trial, result.operands) != result.without_gradient;
    } catch (const std::exception&) {
      trial.use_number(1);
      return false;
    }
  }

  /// Adds result number `i`; else says why there is no such result in graphs.
  static std::optional<std::string> add_tensor(size_t i, const FunctionSchema& schema,
                                               const Trial& trial, const ShapeFit& fit,
                                               const std::vector<Trial::Outcome>& outcomes,
                                               ResolvedOperator& result) {
    const Trial::Outcome& last = outcomes.back();
    const at::Tensor& tensor = last.tensors[i];
    const std::string& name = schema.name();
    if (last.same_as[i] != nullptr && !operator_facts(name).gives_argument)
      return name + " gives its argument itself";
    const auto dtype = tensor.defined() ? dtype_of(tensor.scalar_type()) : std::nullopt;
    if (!dtype) return name + " gives something that graphs do not have";
    if (tensor.is_conj() || tensor.is_neg()) return name + " gives a lazy conjugate or negative";
    std::vector<std::vector<int64_t>> sizes;
    for (const Trial::Outcome& outcome : outcomes) {
      if (outcome.tensors.size() != last.tensors.size())
        return name + " gives a number of tensors that depends on sizes";
      if (outcome.same_as[i] != last.same_as[i])
        return name + " gives its argument itself for some sizes only";
      sizes.push_back(outcome.tensors[i].sizes().vec());
    }
    const auto shape = fit.shape(sizes);
    if (!shape) return cat("the result's size of ", name, " is not a simple expression");
    // How many parts there are depends on a size as well as how large they are.
    if (last.list && !fit.takes(*shape))
      return name + " gives parts of sizes that depend on a size";
    result.results.push_back(Type::tensor(*dtype, *shape));
    result.differentiable.push_back(tensor.requires_grad());
    result.grad_fn_names.push_back(tensor.grad_fn() ? tensor.grad_fn()->name() : "");
    result.alias_of.push_back(alias(tensor, trial, result.operands));
    result.is_saved.push_back(result.alias_of.back() < 0 && is_saved_result(tensor));
    result.same_as.push_back(last.same_as[i]);
    if (result.alias_of.back() >= 0 && has_numbers(result))
      return name + " gives a view at a place that a number of the run says";
    return std::nullopt;
  }

  static bool has_numbers(const ResolvedOperator& result) {
    return std::ranges::any_of(result.operands, [](const auto* operand) {
      return operand != nullptr && operand->kind == OperatorArgument::Kind::number;
    });
  }

  static std::optional<ResolvedOperator> conclude(const FunctionSchema& schema, const Trial& trial,
                                                  const ShapeFit& fit,
                                                  const std::vector<Trial::Outcome>& outcomes,
                                                  ResolvedOperator result, std::string& why) {
    const Trial::Outcome& last = outcomes.back();
    result.packing = last.list    ? ResolvedOperator::Packing::list
                     : last.tuple ? ResolvedOperator::Packing::tuple
                                  : ResolvedOperator::Packing::single;
    if (last.list && last.tuple) {
      why = cat(schema.name(), " gives a list among other results");
      return std::nullopt;
    }
    result.without_gradient = without_gradient(last, trial, result.operands);
    for (size_t i = 0; i < last.tensors.size(); ++i) {
      if (auto problem = add_tensor(i, schema, trial, fit, outcomes, result)) {
        why = *std::move(problem);
        return std::nullopt;
      }
    }
    for (const Type& number : last.numbers) {
      result.results.push_back(number);
      result.differentiable.push_back(false);
      result.grad_fn_names.emplace_back();
      result.alias_of.push_back(-1);
      result.is_saved.push_back(false);
      result.same_as.push_back(nullptr);
    }
    if (last.tuple) result.result_class = return_class(schema.name());
    return result;
  }

  /// The operands for which autograd gives None, not zeros. What can't be tried counts as none.
  static std::set<size_t> without_gradient(const Trial::Outcome& outcome, const Trial& trial,
                                           const std::vector<const OperatorArgument*>& operands) {
    std::vector<at::Tensor> results, seeds, watched;
    for (const at::Tensor& tensor : outcome.tensors) {
      if (!tensor.defined() || !tensor.requires_grad() || !tensor.is_meta()) continue;
      results.push_back(tensor);
      seeds.push_back(at::ones_like(tensor));
    }
    std::vector<size_t> places;
    for (size_t i = 0; i < operands.size(); ++i) {
      const at::Tensor tensor = trial.tensor_for(operands[i]);
      if (!tensor.defined() || !tensor.requires_grad()) continue;
      watched.push_back(tensor);
      places.push_back(i);
    }
    std::set<size_t> missing;
    if (results.empty() || watched.empty()) return missing;
    const python::WithoutLock unlocked;  // the engine refuses to be called with the lock
    try {
      const auto gradients = ::torch::autograd::grad(results, watched, seeds, /*retain_graph=*/true,
                                                     /*create_graph=*/false,
                                                     /*allow_unused=*/true);
      for (size_t i = 0; i < places.size(); ++i)
        if (!gradients[i].defined()) missing.insert(places[i]);
    } catch (const std::exception&) {
      return {};
    }
    return missing;
  }

  static int alias(const at::Tensor& tensor, const Trial& trial,
                   const std::vector<const OperatorArgument*>& operands) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const at::Tensor operand = trial.tensor_for(operands[i]);
      if (operand.defined() && operand.is_alias_of(tensor)) return static_cast<int>(i);
    }
    return -1;
  }

  /// torch.return_types.max for "aten::max", if there is one.
  static python::Object return_class(const std::string& name) {
    const python::Object module =
        python::Object::steal(PyImport_ImportModule("torch.return_types"));
    python::Object found;
    if (module) {
      found = python::Object::steal(
          PyObject_GetAttrString(module.get(), name.substr(name.find("::") + 2).c_str()));
    }
    PyErr_Clear();
    return found;
  }
};

}  // namespace

frontend::TorchServices& services() {
  static Services instance;
  return instance;
}

}  // namespace janus::torch
