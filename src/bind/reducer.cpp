#include "bind/reducer.h"

#include <pybind11/conduit/pybind11_platform_abi_id.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <typeinfo>

#include "base/check.h"
#include "torch/reducer.h"

namespace nb = nanobind;

namespace janus::bind {

namespace {

/// The object of C++ behind one of pybind11's, by the protocol that it has for other libraries.
c10d::Reducer& reducer_of(nb::handle object) {
  const auto type = nb::capsule(&typeid(c10d::Reducer), typeid(std::type_info).name());
  const nb::object found = object.attr("_pybind11_conduit_v1_")(
      nb::bytes(PYBIND11_PLATFORM_ABI_ID), type, nb::bytes("raw_pointer_ephemeral"));
  void* const reducer = nb::isinstance<nb::capsule>(found)
                            ? PyCapsule_GetPointer(found.ptr(), typeid(c10d::Reducer).name())
                            : nullptr;
  TORCHJANUS_CHECK(reducer != nullptr, "a reducer that torch does not show");
  return *static_cast<c10d::Reducer*>(reducer);
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
