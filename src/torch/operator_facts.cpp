// See operator_facts.h.
#include "torch/operator_facts.h"

#include <algorithm>

namespace janus::torch {

using frontend::OperatorFacts;

namespace {

struct Entry {
  std::string_view name;
  OperatorFacts facts;
};

constexpr Entry kOperators[] = {
    {"aten::conj", {.gives_argument = true}},
    {"aten::resolve_conj", {.gives_argument = true}},
    {"aten::resolve_neg", {.gives_argument = true}},
    {"aten::atleast_1d", {.gives_argument = true}},
    {"aten::atleast_2d", {.gives_argument = true}},
    {"aten::atleast_3d", {.gives_argument = true}},
    {"aten::sum_to_size", {.gives_argument = true}},
    {"aten::cartesian_prod", {.gives_argument = true}},
    {"aten::real", {.gives_argument = true}},
    {"aten::conj_physical", {.gives_argument = true, .always_writes = true}},
    {"aten::alpha_dropout", {.gives_argument = true}},
    {"aten::feature_alpha_dropout", {.gives_argument = true}},
    {"aten::repeat_interleave", {.gives_in_order = true}},
    {"aten::polygamma", {.takes_self_second = true}},
};

/// Of all operators whose names contain that.
constexpr Entry kFamilies[] = {
    {"batch_norm", {.writes_unsaid = true}},       {"instance_norm", {.writes_unsaid = true}},
    {"fused_moving_avg", {.writes_unsaid = true}}, {"aten::as_strided", {.looks_at_memory = true}},
    {"embedding_bag", {.needs_data = true}},       {"rrelu", {.overwrites_saved = true}},
    {"_foreach_", {.gives_apart = true}},          {"slogdet", {.gives_apart = true}},
};

}  // namespace

OperatorFacts operator_facts(std::string_view name) {
  if (const auto* known = std::ranges::find(kOperators, name, &Entry::name);
      known != std::end(kOperators))
    return known->facts;
  const auto* const family = std::ranges::find_if(
      kFamilies, [&](const Entry& entry) { return name.find(entry.name) != name.npos; });
  return family == std::end(kFamilies) ? OperatorFacts{} : family->facts;
}

}  // namespace janus::torch
