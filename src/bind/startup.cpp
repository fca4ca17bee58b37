#include "bind/startup.h"

#include <nanobind/stl/string.h>

#include "base/options.h"
#include "bind/function.h"
#include "frontend/generate.h"
#include "speculate/entry.h"
#include "speculate/hooks.h"
#include "torch/initialise.h"

namespace nb = nanobind;

namespace janus::bind {

void start_up() {
  torch::initialise();
  speculate::set_library(&torch::library());
  speculate::set_generator(frontend::generate);
  speculate::CalleePolicy policy;
  policy.unwrap = function_behind;
  speculate::prepare_profiling(policy);
}

void bind_options(nb::module_& module) {
  module.def(
      "strict", [] { return options().strict; },
      "Whether an internal error is raised instead of survived.");
  module.def("set_strict", [](bool strict) { options().strict = strict; }, nb::arg("strict"));
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
  module.def("dump_folder", [] { return options().dump_folder; });
  module.def(
      "set_dump_folder", [](const std::string& folder) { options().dump_folder = folder; },
      nb::arg("folder"), "Empty: nothing is dumped.");
}

}  // namespace janus::bind
