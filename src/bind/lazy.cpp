#include "bind/lazy.h"

#include <nanobind/stl/string.h>
#include <torch/csrc/autograd/python_variable.h>

#include "bind/torch_methods.h"
#include "lazy/interception.h"
#include "lazy/session.h"
#include "speculate/replaced_kernels.h"
#include "torch/interception_keys.h"

namespace nb = nanobind;

namespace janus::bind {

namespace {

void begin_lazy() {
  if (lazy::may_begin()) lazy::begin(&lazy::Session::of_this_thread().own_choice());
}

void synchronize() { lazy::Session::of_this_thread().run_all(lazy::Look::end); }

/// What is noted runs, whichever thread's it is.
void run_pending() {
  if (lazy::has_begun()) synchronize();
  lazy::Session::run_all_sessions(lazy::Look::function);
}

nb::dict families_of(const lazy::FamilyCounts& counts) {
  nb::dict dict;
  dict["families"] = counts.families;
  dict["graphs"] = counts.graphs;
  dict["calls"] = counts.calls;
  dict["given_up"] = counts.given_up;
  add_form(dict, counts.last);
  nb::dict misses;
  for (const auto& [what, count] : counts.misses) misses[what.c_str()] = count;
  dict["misses"] = misses;
  return dict;
}

nb::dict lazy_counts() {
  const lazy::Session& session = lazy::Session::of_this_thread();
  const lazy::SessionCounts counts = session.counts();
  nb::dict dict;
  dict["noted"] = counts.noted;
  dict["at_once"] = counts.at_once;
  dict["never_run"] = counts.never_run;
  dict["looks"] = counts.looks;
  dict["run_eagerly"] = counts.run_eagerly;
  dict["run_in_graphs"] = counts.run_in_graphs;
  dict["structures"] = counts.structures;
  dict["graphs"] = counts.graphs;
  dict["given_up"] = counts.given_up;
  dict["moved_to_files"] = counts.moved_to_files;
  dict["kinds"] = counts.kinds;
  dict["ahead"] = counts.ahead;
  dict["seconds_ahead"] = counts.seconds_ahead;
  dict["seconds_waited"] = counts.seconds_waited;
  nb::dict looked_at_by;
  for (const auto& [what, looks] : counts.looked_at_by) looked_at_by[what.c_str()] = looks;
  dict["looked_at_by"] = looked_at_by;
  dict["families"] = families_of(counts.families);
  dict["pending"] = session.pending();
  return dict;
}

/// What torch calls the keys of its dispatcher that lazy execution uses.
nb::list interception_keys() {
  nb::list names;
  for (const c10::DispatchKey key : torch::kInterceptionKeys) names.append(c10::toString(key));
  return names;
}

bool is_pending(nb::handle tensor) {
  if (!THPVariable_Check(tensor.ptr())) throw nb::type_error("is_pending: expected a tensor");
  const at::Tensor& value = THPVariable_Unpack(tensor.ptr());
  return value.has_storage() && lazy::Session::is_pending(*value.storage().unsafeGetStorageImpl());
}

}  // namespace

void add_form(nb::dict& dict, const lazy::FamilyGraph::Form& form) {
  dict["traces"] = form.traces;
  dict["operators"] = form.operators;
  dict["branches"] = form.branches;
  dict["feeds"] = form.feeds;
  dict["fetches"] = form.fetches;
  dict["sizes"] = form.symbols;
}

void bind_lazy(nb::module_& module) {
  watch_torch_methods();
  module.def("kernel_registered", speculate::kernel_registered);
  module.def("kernel_removed", speculate::kernel_removed);
  module.def("run_pending", run_pending);
  module.def("begin_lazy", begin_lazy);
  module.def("end_lazy", lazy::end);
  module.def("synchronize", synchronize);
  module.def("interception_keys", interception_keys);
  module.def("is_pending", is_pending, nb::arg("tensor"));
  module.def("lazy_counts", lazy_counts);
}

}  // namespace janus::bind
