// The extension module torchjanus._core: start-up of the rooms, and what the Python package uses.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/options.h"
#include "bind/function.h"
#include "bind/region.h"
#include "bind/snapshot.h"
#include "bind/startup.h"
#include "bind/testing.h"
#include "speculate/dispatch.h"
#include "speculate/reason.h"

namespace nb = nanobind;
using namespace janus;  // NOLINT: the whole file binds it

namespace {

nb::list all_stats() {
  nb::list all;
  for (const speculate::Dispatcher* each : speculate::Dispatcher::all())
    all.append(nb::steal(python::check(bind::stats_of(*each)).release()));
  return all;
}

nb::list all_snapshots() {
  nb::list all;
  for (const speculate::Dispatcher* each : speculate::Dispatcher::all())
    all.append(nb::steal(python::check(bind::snapshot_of(*each)).release()));
  return all;
}

nb::object seconds_until_first_graph() {
  const double seconds = speculate::Dispatcher::seconds_until_first_graph();
  return seconds < 0 ? nb::none() : nb::object(nb::float_(seconds));
}

}  // namespace

NB_MODULE(_core, module) {
  bind::start_up();
  module.doc() = "The compiled part of torchjanus.";
  module.attr("Function") = nb::borrow(bind::function_type());
  module.attr("Region") = nb::borrow(bind::region_type());
  module.def("all_stats", all_stats, "stats() of each function and region of the process.");
  module.def("all_snapshots", all_snapshots, "snapshot() of each function and region.");
  module.def("seconds_until_first_graph", seconds_until_first_graph,
             "From the first profile run to the first graph run; None before.");
  module.def("reason_codes", speculate::reason_codes, "All reason codes.");
  bind::bind_options(module);
  bind::bind_testing(module);
}
