#include "torch/reducer.h"

#include <pybind11/conduit/pybind11_platform_abi_id.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <mutex>
#include <typeinfo>

#include "frontend/core/torch_objects.h"

namespace janus::torch {

namespace {

/// What a class keeps private may be named where a template is instantiated.
template <auto member>
struct Opened {
  friend bool is_hook_set(c10d::Reducer& reducer) { return reducer.*member != nullptr; }
};
bool is_hook_set(c10d::Reducer& reducer);
template struct Opened<&c10d::Reducer::comm_hook_>;

/// To see what classes derived from the reducer may.
struct Open : c10d::Reducer {
  static std::mutex& mutex_of(c10d::Reducer& reducer) { return reducer.*(&Open::mutex_); }
  static bool& expects(c10d::Reducer& reducer) { return reducer.*(&Open::expect_autograd_hooks_); }
  static const auto& buckets_of(c10d::Reducer& reducer) { return reducer.*(&Open::buckets_); }
  static bool must_finish(c10d::Reducer& reducer) { return reducer.*(&Open::require_finalize_); }
};

}  // namespace

/// By the protocol that pybind11 has for other libraries.
c10d::Reducer* reducer_of(PyObject* object) {
  using python::Object;
  const std::type_info& type = typeid(c10d::Reducer);
  const Object capsule = Object::steal(
      PyCapsule_New(const_cast<std::type_info*>(&type), typeid(std::type_info).name(), nullptr));
  const Object abi = Object::steal(PyBytes_FromString(PYBIND11_PLATFORM_ABI_ID));
  const Object kind = Object::steal(PyBytes_FromString("raw_pointer_ephemeral"));
  const Object method = python::try_attribute(object, "_pybind11_conduit_v1_");
  const Object found =
      method ? python::call(method.get(), {abi.get(), capsule.get(), kind.get()}) : Object();
  if (!found || !PyCapsule_CheckExact(found.get())) return nullptr;
  return static_cast<c10d::Reducer*>(PyCapsule_GetPointer(found.get(), type.name()));
}

c10d::Reducer* reducer_of_call() {
  static PyObject* const wrapper = frontend::imported("torch.nn.parallel.DistributedDataParallel");
  if (wrapper == nullptr) return nullptr;
  const python::Object called = python::try_attribute(wrapper, "_active_ddp_module");
  if (!called || called.is(Py_None)) return nullptr;
  const python::Object reducer = python::try_attribute(called.get(), "reducer");
  return reducer ? reducer_of(reducer.get()) : nullptr;
}

std::unordered_map<const void*, size_t> bucket_numbers(c10d::Reducer& reducer) {
  const std::lock_guard lock(Open::mutex_of(reducer));
  std::unordered_map<const void*, size_t> numbers;
  const auto& buckets = Open::buckets_of(reducer);
  for (size_t number = 0; number < buckets.size(); ++number)
    for (const at::Tensor& parameter : buckets[number].variables)
      numbers.emplace(parameter.unsafeGetTensorImpl(), number);
  return numbers;
}

void stop_waiting(c10d::Reducer& reducer) {
  const std::lock_guard lock(Open::mutex_of(reducer));
  Open::expects(reducer) = false;
}

void start_waiting(c10d::Reducer& reducer) { reducer.prepare_for_backward({}); }

bool is_reducing(c10d::Reducer& reducer) {
  const std::lock_guard lock(Open::mutex_of(reducer));
  return Open::must_finish(reducer);
}

bool is_waiting(c10d::Reducer& reducer) {
  const std::lock_guard lock(Open::mutex_of(reducer));
  return Open::expects(reducer);
}

bool has_communication_hook(c10d::Reducer& reducer) { return is_hook_set(reducer); }

}  // namespace janus::torch
