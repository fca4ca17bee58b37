#include "lazy/operator_rule.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <ranges>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ops/list.h"
#include "passes/analysis/certain.h"
#include "torch/operator_facts.h"

namespace janus::lazy {

using c10::OperatorHandle;
using graph::Raises;
using graph::Trait;

namespace {

/// Overloads of which the graph's operator goes by another name.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"_to_copy", "to.dtype"},
    {"sum", "sum.dim_IntList"},
    {"mean", "mean.dim"},
    {"div.Scalar_mode", "div.Tensor_mode"},
    {"pow_.Scalar", "pow.Tensor_Scalar"},
    {"pow_.Tensor", "pow.Tensor_Tensor"},
    {"native_batch_norm", "_native_batch_norm_legit_functional"},
};

/// Overloads with a number where those of the graph's operators take a tensor or a number.
constexpr std::string_view kWithNumbers[] = {"add", "sub", "mul", "div",  "eq",   "ne",       "lt",
                                             "le",  "gt",  "ge",  "rsub", "fmod", "remainder"};

/// Operators that read no element of their operands, but look at sizes only, or share memory
/// although their schema doesn't say so. They need not be noted.
constexpr std::string_view kLooksAtSizes[] = {"empty_like", "new_empty", "new_empty_strided",
                                              "_unsafe_view", "is_same_size"};

/// The same of operators that are noted, or draw random numbers.
constexpr std::string_view kMakesAlike[] = {"new_zeros",  "new_ones",   "new_full",
                                            "zeros_like", "ones_like",  "full_like",
                                            "rand_like",  "randn_like", "randint_like"};

/// Operators that never raise for what their operands hold, of all overloads or of the one that is
/// named, beside those of which the graph's own operator says so. Separated by spaces.
constexpr std::string_view kHarmless =
    "gelu_backward sigmoid_backward tanh_backward silu_backward mish_backward elu_backward "
    "leaky_relu_backward hardtanh_backward hardsigmoid_backward hardswish_backward "
    "softplus_backward softshrink softshrink_backward hardshrink hardshrink_backward "
    "log_sigmoid_forward log_sigmoid_backward glu glu_backward _prelu_kernel "
    "_prelu_kernel_backward mse_loss_backward smooth_l1_loss_backward huber_loss_backward "
    "native_group_norm native_group_norm_backward upsample_nearest1d "
    "upsample_nearest1d_backward upsample_nearest2d upsample_nearest2d_backward "
    "upsample_nearest3d upsample_nearest3d_backward upsample_linear1d "
    "upsample_linear1d_backward upsample_bilinear2d upsample_bilinear2d_backward "
    "upsample_bicubic2d upsample_bicubic2d_backward reflection_pad1d "
    "reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward replication_pad1d "
    "replication_pad1d_backward replication_pad2d replication_pad2d_backward any all norm "
    "linalg_vector_norm std var std_mean var_mean cumprod logcumsumexp logaddexp logaddexp2 "
    "grid_sampler_2d grid_sampler_2d_backward avg_pool3d avg_pool3d_backward im2col col2im "
    "nan_to_num hypot _weight_norm_interface _weight_norm_interface_backward addr lerp sgn "
    "diag_embed trace unfold_backward mean sum _to_copy clone copy zero fill masked_fill "
    "where add sub rsub mul addcmul eq ne lt le gt ge logical_and logical_or logical_xor "
    "logical_not bitwise_and bitwise_or bitwise_xor bitwise_not maximum minimum clamp "
    "clamp_min clamp_max neg abs sign cat stack tril triu flip roll repeat cumsum argmax "
    "argmin amax amin max min arange div.Tensor div.Scalar native_batch_norm_backward "
    "_scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_flash_attention_for_cpu_backward";

/// Operators on floats for which any number is as good as another, in all overloads.
constexpr std::string_view kTakesAnyNumber[] = {
    "add",         "sub",       "rsub",      "mul",       "div",    "addcmul",   "addcdiv",
    "lerp",        "addmm",     "addmv",     "baddbmm",   "addbmm", "pow",       "fill",
    "masked_fill", "full_like", "eq",        "ne",        "lt",     "le",        "gt",
    "ge",          "clamp",     "clamp_min", "clamp_max", "where",  "remainder", "fmod"};

const graph::OpDef* named(std::string_view overload) {
  static const auto* const all = [] {
    auto* const made = new std::map<std::string_view, const graph::OpDef*>;
    for (const graph::OpDef* op : ops::all())
      if (!op->aten.empty()) made->emplace(op->aten, op);
    return made;
  }();
  const auto found = all->find(overload);
  return found == all->end() ? nullptr : found->second;
}

/// The graph's operator that computes the same.
const graph::OpDef* native_of(const std::string& overload) {
  for (const auto& [name, other] : kOtherNames)
    if (name == overload) return named(other);
  if (const graph::OpDef* const found = named(overload)) return found;
  const size_t dot = overload.find('.');
  if (dot == overload.npos || overload.substr(dot) != ".Scalar") return nullptr;
  const std::string base = overload.substr(0, dot);
  return std::ranges::find(kWithNumbers, base) == std::end(kWithNumbers) ? nullptr
                                                                         : named(base + ".Tensor");
}

/// "add_" of aten::add_.Tensor.
std::string_view base_name(const c10::FunctionSchema& schema) {
  return std::string_view(schema.name()).substr(std::string_view("aten::").size());
}

/// "add" of aten::add.Tensor and aten::add_.Tensor.
std::string_view family_of(const c10::FunctionSchema& schema) {
  std::string_view name = base_name(schema);
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

/// "add.Tensor" of "add" and the schema of aten::add_.Tensor.
std::string overload_of(std::string_view name, const c10::FunctionSchema& schema) {
  std::string overload(name);
  if (!schema.overload_name().empty()) overload += "." + schema.overload_name();
  return overload;
}

/// Whether `name` is one of the `names`, which spaces separate.
bool is_among(std::string_view name, std::string_view names) {
  return std::ranges::any_of(std::views::split(names, ' '), [&](const auto& each) {
    return std::string_view(each.begin(), each.end()) == name;
  });
}

bool is_harmless(const c10::FunctionSchema& schema) {
  const std::string_view family = family_of(schema);
  return is_among(family, kHarmless) || is_among(overload_of(family, schema), kHarmless);
}

struct NamedIndexRule {
  std::string_view overload;
  IndexRule rule;
};

/// Operators whose operands of indices can be looked at when they are called.
constexpr NamedIndexRule kIndexRules[] = {
    {"embedding", {.indices = 1, .bounded_by = 0}},
    {"embedding_dense_backward", {.indices = 1, .bounded_by = 2}},
    {"nll_loss_forward", {.indices = 1, .bounded_by = 0, .dimension = -1, .ignored = 4}},
    {"nll_loss_backward", {.indices = 2, .bounded_by = 1, .dimension = -1, .ignored = 5}},
};

/// As "add_" does, the form in place of "add", but not "__iand__".
bool name_says_in_place(const c10::FunctionSchema& schema) {
  const std::string_view name = base_name(schema);
  return name.ends_with('_') && !name.ends_with("__");
}

bool is_kind(const c10::Argument& argument, c10::TypeKind wanted) {
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type->kind() == wanted;
}

bool has_tensors(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    c10::TypePtr type = argument.real_type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    if (const auto list = type->cast<c10::ListType>()) type = list->getElementType();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    return type->kind() == c10::TypeKind::TensorType;
  });
}

bool has_any_tag(const OperatorHandle& overload, std::initializer_list<at::Tag> tags) {
  return std::ranges::any_of(tags, [&](at::Tag tag) { return overload.hasTag(tag); });
}

bool is_decomposed(const OperatorHandle& overload) {
  using c10::DispatchKey;
  return overload.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
         !overload.hasKernelForDispatchKey(DispatchKey::CPU) &&
         !overload.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd);
}

/// For each result, the written argument that it is. Nothing if a result is not said to be one, or
/// if the operator gives none for what it writes.
std::optional<std::vector<std::optional<size_t>>> written_results(
    const c10::FunctionSchema& schema) {
  std::vector<std::optional<size_t>> results;
  for (const c10::Argument& result : schema.returns()) {
    if (result.alias_info() == nullptr) {
      results.emplace_back();
      continue;
    }
    std::optional<size_t> which;
    for (size_t i = 0; i < schema.arguments().size(); ++i)
      if (const auto* alias = schema.arguments()[i].alias_info();
          alias != nullptr && *alias == *result.alias_info())
        which = i;
    if (!which) return std::nullopt;
    results.push_back(which);
  }
  return results;
}

/// Of operators that write to arguments although their schema doesn't say so.
std::vector<OperatorRule::UnsaidWrite> unsaid_writes(const c10::FunctionSchema& schema) {
  if (schema.name() != "aten::native_batch_norm" || !schema.overload_name().empty()) return {};
  return {{.argument = 3, .result_of_native = 3}, {.argument = 4, .result_of_native = 4}};
}

bool same_arguments(const c10::FunctionSchema& one, const c10::FunctionSchema& other) {
  return std::ranges::equal(one.arguments(), other.arguments(), [](const auto& a, const auto& b) {
    return *a.real_type() == *b.real_type();
  });
}

/// What computes the same in new memory. Its overload mostly has the same name: "pow_.Scalar" is
/// that of "pow.Tensor_Scalar", and "pow.Scalar" takes the number first.
std::optional<OperatorHandle> functional_of(const c10::FunctionSchema& in_place) {
  const std::string name = "aten::" + std::string(family_of(in_place));
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto fitting = [&](const std::string& overload) -> std::optional<OperatorHandle> {
    auto found = dispatcher.findSchema({name, overload});
    return found && same_arguments(found->schema(), in_place) ? found : std::nullopt;
  };
  const std::string& overload = in_place.overload_name();
  for (const std::string& each : {overload, "Tensor_" + overload})
    if (auto found = fitting(each)) return found;
  return std::nullopt;
}

/// Whether the results can be made later: they are tensors, of sizes that the operands' sizes say.
bool can_wait(const OperatorHandle& overload) {
  const c10::FunctionSchema& schema = overload.schema();
  // It takes no dropout on the CPU, so it draws nothing.
  const bool is_seeded = overload.hasTag(at::Tag::nondeterministic_seeded) &&
                         schema.name() != "aten::_scaled_dot_product_flash_attention_for_cpu";
  if (is_seeded || has_any_tag(overload, {at::Tag::data_dependent_output,
                                          at::Tag::dynamic_output_shape, at::Tag::inplace_view}))
    return false;
  const bool writes_unsaid =
      torch::operator_facts(schema.name()).writes_unsaid && !schema.name().ends_with("_backward");
  if (writes_unsaid && unsaid_writes(schema).empty()) return false;
  return std::ranges::all_of(schema.returns(), [](const c10::Argument& result) {
    return result.type()->kind() == c10::TypeKind::TensorType;
  });
}

Treatment treatment_of(const OperatorHandle& overload, const OperatorRule& rule) {
  const c10::FunctionSchema& schema = overload.schema();
  if (!rule.is_of_torch) return Treatment::run;
  const bool is_loop = schema.name().starts_with("aten::_foreach_");  // over tensors, on the CPU
  if (is_loop || is_decomposed(overload)) return Treatment::decompose;
  const bool is_written = std::ranges::count(rule.writes, true) > 0;
  const bool is_view = std::ranges::any_of(
      schema.returns(), [](const c10::Argument& result) { return result.alias_info() != nullptr; });
  if (is_view && !is_written && !overload.hasTag(at::Tag::inplace_view)) return Treatment::view;
  if (std::ranges::find(kLooksAtSizes, overload_of(base_name(schema), schema)) !=
      std::end(kLooksAtSizes))
    return Treatment::view;
  const bool is_known = rule.native != nullptr || is_harmless(schema);
  return is_known && can_wait(overload) ? Treatment::note : Treatment::run;
}

OperatorRule make_rule(const OperatorHandle& overload) {
  OperatorRule rule{.overload = overload};
  const c10::FunctionSchema& schema = overload.schema();
  const bool is_factory = !has_tensors(schema);
  for (const c10::Argument& argument : schema.arguments()) {
    if (is_kind(argument, c10::TypeKind::ScalarTypeType)) rule.dtype = rule.writes.size();
    rule.writes.push_back(argument.alias_info() != nullptr && argument.alias_info()->isWrite());
    rule.varies.push_back(!is_factory && is_kind(argument, c10::TypeKind::NumberType));
  }
  rule.is_of_torch = schema.name().starts_with("aten::");
  if (!rule.is_of_torch) return rule;
  const std::string name = overload_of(base_name(schema), schema);
  rule.takes_any_number =
      std::ranges::find(kTakesAnyNumber, family_of(schema)) != std::end(kTakesAnyNumber);
  if (overload_of(family_of(schema), schema) == "masked_fill.Tensor") rule.converted = 2;
  const bool is_written = std::ranges::count(rule.writes, true) > 0;
  if (!is_written) {
    rule.native = native_of(name);
  } else if (name_says_in_place(schema) && rule.writes.front()) {
    const std::string_view family = family_of(schema);
    const graph::OpDef* const own = native_of(name);
    rule.native = own == nullptr ? native_of(overload_of(family, schema)) : own;
    rule.functional = functional_of(schema);
  }
  rule.unsaid = unsaid_writes(schema);
  for (const auto& each : rule.unsaid) rule.writes[each.argument] = true;
  const auto results = written_results(schema);
  if (results) rule.result_is = *results;
  const auto* const indices = std::ranges::find(kIndexRules, name, &NamedIndexRule::overload);
  if (indices != std::end(kIndexRules)) rule.indices = indices->rule;
  rule.reads_nothing = std::ranges::find(kMakesAlike, base_name(schema)) != std::end(kMakesAlike);
  rule.makes_indices = rule.native != nullptr && name.ends_with("_with_indices");
  rule.needs_own_indices =
      rule.native != nullptr && graph::raises_of(*rule.native) == Raises::own_indices;
  rule.treatment = treatment_of(overload, rule);
  if (rule.treatment == Treatment::note && !results) rule.treatment = Treatment::run;
  return rule;
}

}  // namespace

bool OperatorRule::is_in_place() const { return std::ranges::count(writes, true) > 0; }

const OperatorRule& rule_of(const OperatorHandle& overload) {
  thread_local std::unordered_map<OperatorHandle, const OperatorRule*> known;
  if (const auto found = known.find(overload); found != known.end()) return *found->second;
  static std::mutex mutex;
  static auto* const all = new std::unordered_map<OperatorHandle, std::unique_ptr<OperatorRule>>;
  const std::lock_guard lock(mutex);
  auto& made = (*all)[overload];
  if (!made) made = std::make_unique<OperatorRule>(make_rule(overload));
  known.emplace(overload, made.get());
  return *made;
}

bool never_raises(const OperatorRule& rule, bool integers_in, bool integers_out) {
  if (is_harmless(rule.overload.schema())) return true;
  const Raises raises = graph::raises_of(*rule.native);
  if (rule.indices || raises == Raises::own_indices) return true;  // looked at apart
  if (rule.native->is(Trait::random) || rule.native->is(Trait::may_fail)) return false;
  switch (raises) {
    case Raises::never:
    case Raises::not_for_contents:  // of these sizes it has run
    case Raises::outside_part:
    case Raises::outside_place:
      return true;
    default:
      return passes::is_safe_for_elements(*rule.native, integers_in, integers_out);
  }
}

}  // namespace janus::lazy
