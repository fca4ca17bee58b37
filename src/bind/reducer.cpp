#include "bind/reducer.h"

#include "base/check.h"
#include "torch/reducer.h"

namespace nb = nanobind;

namespace janus::bind {

namespace {

c10d::Reducer& reducer_of(nb::handle object) {
  c10d::Reducer* const reducer = torch::reducer_of(object.ptr());
  TORCHJANUS_CHECK(reducer != nullptr, "a reducer that torch does not show");
  return *reducer;
}

}  // namespace

void bind_reducer(nb::module_& module) {
  module.def(
      "stop_waiting", [](nb::handle reducer) { torch::stop_waiting(reducer_of(reducer)); },
      nb::arg("reducer"),
      "Tells a reducer that no gradients are on their way, as the end of backward() does.");
  module.def(
      "start_waiting",
      [](nb::handle reducer) {
        c10d::Reducer& found = reducer_of(reducer);
        const nb::gil_scoped_release unlocked;
        torch::start_waiting(found);
      },
      nb::arg("reducer"),
      "Tells a reducer that gradients are on their way, as the end of a forward pass does.");
  module.def(
      "reducer_address",
      [](nb::handle reducer) { return reinterpret_cast<uintptr_t>(&reducer_of(reducer)); },
      nb::arg("reducer"), "Where the reducer of C++ is that this object stands for.");
}

}  // namespace janus::bind
