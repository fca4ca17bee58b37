// The extension module torchjanus._core: start-up of the rooms, and what the Python package uses.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <tuple>
#include <utility>

#include "base/conversion_account.h"
#include "base/options.h"
#include "base/printable.h"
#include "base/timeline.h"
#include "bind/entry_points.h"
#include "bind/function.h"
#include "bind/lazy.h"
#include "bind/picture.h"
#include "bind/reducer.h"
#include "bind/region.h"
#include "bind/scope_type.h"
#include "bind/snapshot.h"
#include "bind/startup.h"
#include "bind/testing.h"
#include "execute/memory/shared_arena.h"
#include "jit/object_cache.h"
#include "speculate/dispatch.h"
#include "speculate/earlier_runs.h"
#include "speculate/instrument.h"
#include "speculate/reason.h"
#include "speculate/stages.h"
#include "speculate/tensor_access.h"
#include "syntax/source.h"

namespace nb = nanobind;
using namespace janus;  // NOLINT: the whole file binds it

namespace {

/// The report data of each function and region of the process, with their parts.
nb::list all_told(speculate::Dispatcher::Describe describe) {
  nb::list all;
  for (const speculate::Dispatcher* each : speculate::Dispatcher::all()) {
    if (each->is_part) continue;
    PyObject* told = each->tell ? each->tell(describe) : describe(*each);
    all.append(nb::steal(python::check(told).release()));
  }
  return all;
}

nb::list all_stats() { return all_told(bind::stats_of); }
nb::list all_snapshots() { return all_told(bind::snapshot_of); }
nb::list all_details() { return all_told(bind::details_of); }

/// Category, name, details, start, end and thread of each event.
nb::list end_timeline() {
  nb::list all;
  for (const Timeline::Event& each : Timeline::end())
    all.append(nb::make_tuple(each.category, printable(each.name), printable(each.details),
                              each.start, each.end, each.thread));
  return all;
}

nb::object seconds_until_first_graph() {
  const double seconds = speculate::Dispatcher::seconds_until_first_graph();
  return seconds < 0 ? nb::none() : nb::object(nb::float_(seconds));
}

nb::object told_account() {
  const ConversionAccount* const account = conversion_account();
  if (account == nullptr) return nb::none();
  nb::dict dict;
  dict["spent"] = account->spent();
  dict["saved"] = account->saved();
  return dict;
}

void listen_to_stages(const nb::object& callable) {
  speculate::listen_to_stages(callable.is_none() ? python::Object()
                                                 : python::Object::borrow(callable.ptr()));
}

/// Elements: (name, file, line, milliseconds spent, saved and passed).
void recall(
    const std::vector<std::tuple<std::string, std::string, int, double, double, double>>& told) {
  std::map<speculate::RegionKey, speculate::EarlierRun> runs;
  for (const auto& [name, file, line, spent, saved, passed] : told)
    runs[{name, file, line}] = {spent, saved, passed};
  speculate::recall(std::move(runs));
}

/// Elements: (module, name, file, line).
void expect_entry_points(
    const std::vector<std::tuple<std::string, std::string, std::string, int>>& told) {
  std::vector<bind::ExpectedEntryPoint> expected;
  for (const auto& [module, name, file, line] : told)
    expected.push_back({module, name, file, line});
  bind::expect_entry_points(std::move(expected));
}

nb::object seen_by_watch() {
  const auto report = bind::watch_report();
  return report ? nb::steal(python::check(bind::watch_told(*report)).release()) : nb::none();
}

/// (each of the region's statements with hooks, {placeholder: object}).
nb::tuple instrument_statements(nb::handle region) {
  if (bind::dispatcher_of_region(region.ptr()) == nullptr)
    throw nb::type_error("instrument_statements: expected a Region");
  const bind::RegionParts parts = bind::parts_of_region(region.ptr());
  auto made = speculate::instrument_statements(*parts.tree, parts.module);
  return nb::make_tuple(nb::steal(made.statements.release()), nb::steal(made.constants.release()));
}

/// For functions of rewritten scripts: reports, profiles and graphs refer to the original code.
void note_copy(nb::handle code, nb::handle original) {
  if (!PyCode_Check(code.ptr()) || !PyCode_Check(original.ptr()))
    throw nb::type_error("note_copy: expected code objects");
  syntax::note_copy(code.ptr(), original.ptr());
}

nb::object patch_constants(nb::handle code, nb::handle constants) {
  return nb::steal(speculate::patch_constants(code.ptr(), constants.ptr()).release());
}

void give_back_free_memory() {
  execute::SharedArena::give_back_unused_pages();
  speculate::tensor_access().give_back_free_memory();
}

/// The cache of one kind of objects, in the folder that the environment names now.
jit::ObjectCache& files_of(const std::string& kind) {
  static auto* const all = new std::map<std::string, jit::ObjectCache>;
  const std::string folder = jit::ObjectCache::default_folder(kind);
  return all->try_emplace(folder, folder).first->second;
}

nb::object find_kept(const std::string& kind, const std::string& key) {
  const auto found = files_of(kind).find(key);
  return found ? nb::object(nb::bytes(found->data(), found->size())) : nb::none();
}

void keep(const std::string& kind, const std::string& key, const nb::bytes& object) {
  files_of(kind).keep(key, {object.c_str(), object.size()});
}

/// Turns the C++ exceptions of the rooms into Python exceptions.
void translate(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const python::ErrorSet&) {
    // The exception is set already.
  }
}

}  // namespace

NB_MODULE(_core, module) {
  nb::register_exception_translator(translate);
  bind::start_up();
  bind::bind_lazy(module);
  module.doc() = "The compiled part of torchjanus.";
  module.attr("Function") = nb::borrow(bind::function_type());
  module.attr("Region") = nb::borrow(bind::region_type());
  module.attr("CoExecutionScope") = nb::borrow(bind::co_execution_scope_type());
  module.def("find_kept", find_kept, nb::arg("kind"), nb::arg("key"),
             "The bytes kept on disk for the key, or None.");
  module.def("keep", keep, nb::arg("kind"), nb::arg("key"), nb::arg("object"));
  module.def("all_stats", all_stats, "stats() of each function and region of the process.");
  module.def("all_snapshots", all_snapshots, "snapshot() of each function and region.");
  module.def("all_details", all_details, "_details() of each function and region.");
  module.def("begin_timeline", Timeline::begin, nb::arg("most"),
             "From now on events are kept, until there are so many.");
  module.def("end_timeline", end_timeline, "Ends that, and gives the events.");
  module.def("left_out_of_timeline", Timeline::left_out, "How many there were beyond those.");
  module.def("listen_to_stages", listen_to_stages, nb::arg("listener").none(),
             "From now on it is called with (stage, name, file, line) while graphs are made.");
  module.def("seconds_until_first_graph", seconds_until_first_graph,
             "From the first profile run to the first graph run; None before.");
  module.def("reason_codes", speculate::reason_codes, "All reason codes.");
  module.def("instrument_statements", instrument_statements, nb::arg("region"),
             "A region's statements with profiling hooks, and the constants to patch in.");
  module.def("patch_constants", patch_constants, nb::arg("code"), nb::arg("constants"),
             "The code with those of its constants that are keys replaced by the values.");
  module.def("note_copy", note_copy, nb::arg("code"), nb::arg("original"),
             "From now on the source of `code` is that of `original`.");
  module.def(
      "open_conversion_account", open_conversion_account, nb::arg("spent"),
      "From now on, converting regions may cost a share of the time; so many ms already have.");
  module.def("spend", spend_on_conversion, nb::arg("milliseconds"),
             "The account, if there is one, pays for this.");
  module.def("conversion_account", told_account,
             "What converting has cost and saved, in ms, as a dict; None if it is not bounded.");
  module.def("watch_for_entry_points", bind::watch_for_entry_points,
             "Finds functions that packages call in loops, and lets them run as graphs. False: it "
             "is switched off.");
  module.def("stop_watching", bind::stop_watching,
             "Takes back a call of `watch_for_entry_points` that gave True.");
  module.def("recall", recall, nb::arg("runs"),
             "What an earlier run has spent on regions and saved: (name, file, line, spent, saved, "
             "passed), in ms.");
  module.def("expect_entry_points", expect_entry_points, nb::arg("functions"),
             "Functions that an earlier run has found: (module, name, file, line).");
  module.def("seen_by_watch", seen_by_watch,
             "What the watch for entry points has seen, as a dict; None if nobody watches.");
  module.def("give_back_free_memory", give_back_free_memory,
             "Gives the system back what runs keep free for the next ones, and what malloc has.");
  bind::bind_reducer(module);
  bind::bind_options(module);
  bind::bind_testing(module);
}
