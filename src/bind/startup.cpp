#include "bind/startup.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "base/ahead_choice.h"
#include "base/background.h"
#include "base/check.h"
#include "base/collectives_switch.h"
#include "base/conversion_account.h"
#include "base/graph_runner.h"
#include "base/options.h"
#include "base/time_budget.h"
#include "bind/co_execution.h"
#include "bind/entry_points.h"
#include "bind/function.h"
#include "frontend/output/generate.h"
#include "kernels/sharing.h"
#include "lazy/interception.h"
#include "lazy/made_storages.h"
#include "lazy/session.h"
#include "passes/pipeline/registry.h"
#include "speculate/entry.h"
#include "speculate/hooks.h"
#include "speculate/tensor_class.h"
#include "torch/gradient_graph.h"
#include "torch/initialise.h"

namespace nb = nanobind;

namespace janus::bind {

namespace {

/// Raises on unknown names: nobody would notice a typing error.
template <class Names, class IsKnown>
void warn_about_unknown(const char* variable, const Names& names, const IsKnown& is_known,
                        const std::string& valid) {
  for (const auto& name : names) {
    if (is_known(name)) continue;
    std::fputs(cat("torchjanus: ", variable, " names ", name, ", which does not exist; there are ",
                   valid, "\n")
                   .c_str(),
               stderr);
  }
}

/// All switches by name, with their meanings.
const std::map<std::string, std::string>& switches() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> made;
    for (const Switch& each : kSwitches) made.emplace(each.name, each.meaning);
    for (const Switch& each :
         {kBackgroundSwitch, kBudgetSwitch, kernels::kThreadCostSwitch, kEntryPointsSwitch,
          kLazySwitch, lazy::kInterceptionSwitch, lazy::kCrossIterationSwitch, kGraphRunnerSwitch,
          torch::kBucketedBackwardSwitch, kCollectivesSwitch})
      made.emplace(each.name, each.meaning);
    for (const auto& each : passes::all_passes())
      if (each.name != "optimise") made.emplace(each.name, "the pass of that name");
    return made;
  }();
  return all;
}

void check_switches() {
  std::string channels, names;
  for (const std::string_view each : kLogChannels)
    channels += cat(channels.empty() ? "" : ", ", each);
  for (const auto& [name, meaning] : switches()) names += cat(names.empty() ? "" : ", ", name);
  std::vector<std::string> logged;
  for (const auto& [channel, level] : options().log_levels) logged.push_back(channel);
  warn_about_unknown(
      "TORCHJANUS_LOG", logged,
      [](const std::string& name) { return std::ranges::count(kLogChannels, name) > 0; }, channels);
  warn_about_unknown(
      "TORCHJANUS_DISABLE", options().disabled,
      [](const std::string& name) { return switches().contains(name); }, names);
}

}  // namespace

void start_up() {
  check_switches();
  torch::initialise();
  speculate::remember_tensor_class();
  speculate::set_library(&torch::library());
  frontend::install();
  speculate::CalleePolicy policy;
  policy.unwrap = function_behind;
  speculate::prepare_profiling(policy);
  Py_AtExit([] {
    BackgroundWork::stop();
    GraphRunner::stop();
  });
}

void bind_options(nb::module_& module) {
  module.def(
      "strict", [] { return options().strict; },
      "Whether fallbacks and internal errors are raised instead of survived.");
  module.def("set_strict", [](bool strict) { options().strict = strict; }, nb::arg("strict"));
  module.def(
      "log_channels",
      [] { return std::vector<std::string>(std::begin(kLogChannels), std::end(kLogChannels)); },
      "What can be printed to stderr.");
  module.def(
      "log_level",
      [](const std::string& channel) {
        const auto found = options().log_levels.find(channel);
        return found == options().log_levels.end() ? 0 : found->second;
      },
      nb::arg("channel"));
  module.def(
      "set_log_level",
      [](const std::string& channel, int level) { options().log_levels[channel] = level; },
      nb::arg("channel"), nb::arg("level"), "0 switches the channel off.");
  module.def("switches", switches, "What can be left out by name, and what that means.");
  module.def("disabled", [] {
    return std::set<std::string>(options().disabled.begin(), options().disabled.end());
  });
  module.def("set_disabled", [](const std::set<std::string>& names) {
    const auto lock = BackgroundWork::between_steps();
    set_disabled({names.begin(), names.end()});
  });
  module.def("limits", [] {
    return std::map<std::string, int64_t>{{"rounds", options().most_rounds},
                                          {"inlining", options().deepest_inlining},
                                          {"operations", options().most_operations},
                                          {"seconds", most_seconds_of_generation},
                                          {"memory", lazy::memory_limit},
                                          {"trace_graph", lazy::merges_traces}};
  });
  module.def("set_limit", [](const std::string& name, int64_t limit) {
    if (name == "rounds") options().most_rounds = limit;
    if (name == "inlining") options().deepest_inlining = limit;
    if (name == "operations") options().most_operations = limit;
    if (name == "seconds") most_seconds_of_generation = limit;
    if (name == "memory") lazy::memory_limit = limit;
    if (name == "trace_graph") lazy::merges_traces = limit != 0;
  });
  module.def("dump_folder", [] { return options().dump_folder; });
  module.def(
      "set_dump_folder",
      [](const std::string& folder) {
        const auto lock = BackgroundWork::between_steps();
        options().dump_folder = folder;
      },
      nb::arg("folder"), "Empty: nothing is dumped.");
}

}  // namespace janus::bind
