// What the frontend asks about operators: finding the overload, and what it gives for such
// arguments, by running it on tensors without data.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <set>

#include "ops/structure.h"
#include "python/lock.h"
#include "torch/bound_arguments.h"
#include "torch/grad_fn_name.h"
#include "torch/numbers_for_tensors.h"
#include "torch/operator_facts.h"
#include "torch/operator_names.h"
#include "torch/overload.h"
#include "torch/overload_trial.h"
#include "torch/parts.h"
#include "torch/random_state.h"
#include "torch/resolved_memo.h"
#include "torch/saved_results.h"
#include "torch/schema_binding.h"
#include "torch/shape_fit.h"
#include "torch/tensor.h"

namespace janus::torch {

using c10::Argument;
using c10::FunctionSchema;
using frontend::OperatorArgument;
using frontend::ResolvedOperator;
using frontend::WhyUnresolved;
using graph::AttributeValue;
using graph::Dim;
using graph::Type;

namespace {

using Kind = OperatorArgument::Kind;

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
        const SchemaBinding binding(schema, arguments, wrap);
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
                                                  const SchemaBinding& binding,
                                                  std::span<const OperatorArgument> arguments,
                                                  WhyUnresolved& why_not) {
    std::string& why = why_not.text;
    ResolvedOperator result;
    if (auto problem = encode(schema, binding, result)) {
      why = *std::move(problem);
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
                      const SchemaBinding& binding, std::span<const OperatorArgument> arguments,
                      ResolvedOperator& result, WhyUnresolved& why_not) {
    std::string& why = why_not.text;
    const KeptGenerator kept;
    OverloadTrial trial(overload, binding);
    std::vector<Dim> sizes;
    for (const OperatorArgument& argument : arguments) collect_sizes(argument, sizes);
    std::vector<Dim> dims = sizes;
    for (const OperatorArgument& argument : arguments) collect_numbers(argument, dims);
    ShapeFit fit(dims);
    std::vector<OverloadTrial::Outcome> outcomes;
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
  static std::optional<OverloadTrial::Outcome> attempt_small(OverloadTrial& trial,
                                                             const SymbolChoice& small,
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

  static OverloadTrial::Outcome attempt(OverloadTrial& trial, const SymbolChoice& choice,
                                        bool on_meta) {
    try {
      return trial.run(choice, on_meta);
    } catch (const c10::NotImplementedError&) {
      return trial.run(choice, false);
    }
  }

  /// Whether results have other sizes if the numbers that vary are larger. What takes no such
  /// numbers has no sizes of them.
  static bool numbers_are_sizes(OverloadTrial& trial, const SymbolChoice& choice, bool on_meta) {
    try {
      trial.use_number(7);
      const OverloadTrial::Outcome one = attempt(trial, choice, on_meta);
      trial.use_number(11);
      const OverloadTrial::Outcome other = attempt(trial, choice, on_meta);
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
  static bool zero_ends_gradient(OverloadTrial& trial, const ShapeFit& fit, bool on_meta,
                                 const ResolvedOperator& result) {
    try {
      trial.use_number(0);
      const OverloadTrial::Outcome outcome = attempt(trial, fit.choices().back(), on_meta);
      trial.use_number(1);
      return without_gradient(outcome, trial, result.operands) != result.without_gradient;
    } catch (const std::exception&) {
      trial.use_number(1);
      return false;
    }
  }

  /// Adds result number `i`; else says why there is no such result in graphs.
  static std::optional<std::string> add_tensor(size_t i, const FunctionSchema& schema,
                                               const OverloadTrial& trial, const ShapeFit& fit,
                                               const std::vector<OverloadTrial::Outcome>& outcomes,
                                               ResolvedOperator& result) {
    const OverloadTrial::Outcome& last = outcomes.back();
    const at::Tensor& tensor = last.tensors[i];
    const std::string& name = schema.name();
    if (last.same_as[i] != nullptr && !operator_facts(name).gives_argument)
      return name + " gives its argument itself";
    const auto dtype = tensor.defined() ? dtype_of(tensor.scalar_type()) : std::nullopt;
    if (!dtype) return name + " gives something that graphs do not have";
    if (tensor.is_conj() || tensor.is_neg()) return name + " gives a lazy conjugate or negative";
    std::vector<std::vector<int64_t>> sizes;
    for (const OverloadTrial::Outcome& outcome : outcomes) {
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

  static std::optional<ResolvedOperator> conclude(
      const FunctionSchema& schema, const OverloadTrial& trial, const ShapeFit& fit,
      const std::vector<OverloadTrial::Outcome>& outcomes, ResolvedOperator result,
      std::string& why) {
    const OverloadTrial::Outcome& last = outcomes.back();
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
  static std::set<size_t> without_gradient(const OverloadTrial::Outcome& outcome,
                                           const OverloadTrial& trial,
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

  static int alias(const at::Tensor& tensor, const OverloadTrial& trial,
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
