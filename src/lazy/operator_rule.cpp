#include "lazy/operator_rule.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ops/list.h"
#include "torch/operator_facts.h"

namespace janus::lazy {

using c10::OperatorHandle;
using graph::Raises;
using graph::Trait;

namespace {

/// The graph's operators by the overload that computes the same.
const graph::OpDef* native_of(const std::string& overload) {
  static const auto* const all = [] {
    auto* const made = new std::map<std::string, const graph::OpDef*, std::less<>>;
    for (const graph::OpDef* op : ops::all())
      if (!op->aten.empty()) made->emplace(std::string(op->aten), op);
    return made;
  }();
  const auto found = all->find(overload);
  return found == all->end() ? nullptr : found->second;
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

std::string name_of(const c10::FunctionSchema& schema) {
  std::string name = schema.name().substr(std::string_view("aten::").size());
  if (!schema.overload_name().empty()) name += "." + schema.overload_name();
  return name;
}

/// "add_.Tensor" is "add.Tensor" in place; nothing of what has no such form.
std::optional<std::string> out_of_place(const c10::FunctionSchema& schema) {
  std::string name = schema.name().substr(std::string_view("aten::").size());
  if (!name.ends_with("_") || name.ends_with("__")) return std::nullopt;
  name.pop_back();
  if (!schema.overload_name().empty()) name += "." + schema.overload_name();
  return name;
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

/// Whether the results can be made later: they are tensors, of sizes that the operands' sizes say.
bool can_wait(const OperatorHandle& overload) {
  const c10::FunctionSchema& schema = overload.schema();
  if (has_any_tag(overload, {at::Tag::nondeterministic_seeded, at::Tag::data_dependent_output,
                             at::Tag::dynamic_output_shape, at::Tag::inplace_view}))
    return false;
  if (torch::operator_facts(schema.name()).writes_unsaid) return false;
  return std::ranges::all_of(schema.returns(), [](const c10::Argument& result) {
    return result.type()->kind() == c10::TypeKind::TensorType;
  });
}

Treatment treatment_of(const OperatorHandle& overload, const OperatorRule& rule) {
  const c10::FunctionSchema& schema = overload.schema();
  if (!schema.name().starts_with("aten::")) return Treatment::run;
  if (is_decomposed(overload)) return Treatment::decompose;
  const bool is_written = std::ranges::count(rule.writes, true) > 0;
  const bool is_view = std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr;
  });
  if (is_view && !is_written && !overload.hasTag(at::Tag::inplace_view)) return Treatment::view;
  return rule.native != nullptr && can_wait(overload) ? Treatment::note : Treatment::run;
}

OperatorRule make_rule(const OperatorHandle& overload) {
  OperatorRule rule{.overload = overload};
  const c10::FunctionSchema& schema = overload.schema();
  const bool is_factory = !has_tensors(schema);
  for (const c10::Argument& argument : schema.arguments()) {
    rule.writes.push_back(argument.alias_info() != nullptr && argument.alias_info()->isWrite());
    rule.varies.push_back(!is_factory && is_kind(argument, c10::TypeKind::NumberType));
  }
  if (!schema.name().starts_with("aten::")) return rule;
  const std::string name = name_of(schema);
  const bool is_written = std::ranges::count(rule.writes, true) > 0;
  if (!is_written) {
    rule.native = native_of(name);
  } else if (const auto base = out_of_place(schema); base && rule.writes.front()) {
    rule.native = native_of(*base);
  }
  const auto results = written_results(schema);
  if (results) rule.result_is = *results;
  const auto* const indices = std::ranges::find(kIndexRules, name, &NamedIndexRule::overload);
  if (indices != std::end(kIndexRules)) rule.indices = indices->rule;
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
  if (rule.native == nullptr) return false;
  const Raises raises = graph::raises_of(*rule.native);
  if (rule.indices || raises == Raises::own_indices) return true;  // looked at apart
  if (rule.native->is(Trait::random) || rule.native->is(Trait::may_fail)) return false;
  switch (raises) {
    case Raises::never:
    case Raises::not_for_contents:  // of these sizes it has run
    case Raises::outside_part:
    case Raises::outside_place:
      return true;
    case Raises::never_for_floats:
    case Raises::integer_zero:
      return !integers_in;
    default:
      return rule.native->is(Trait::elementwise) && (!integers_in || !integers_out);
  }
}

}  // namespace janus::lazy
