// Start-up of this room.
#include "torch/initialise.h"

#include <ATen/Parallel.h>

#include "base/thread_pool.h"
#include "execute/values/slot.h"
#include "frontend/core/torch_services.h"
#include "python/object.h"
#include "speculate/differentiable.h"
#include "speculate/tensor_access.h"
#include "torch/eager_arithmetic.h"
#include "torch/eager_rules.h"
#include "torch/memory.h"
#include "torch/parts.h"
#include "torch/run_warnings.h"
#include "torch/tensor.h"

namespace janus::torch {

namespace {

void retain_tensor(void* handle) {
  c10::raw::intrusive_ptr::incref(
      static_cast<c10::intrusive_ptr_target*>(static_cast<at::TensorImpl*>(handle)));
}

void release_tensor(void* handle) {
  c10::intrusive_ptr<at::TensorImpl>::reclaim(static_cast<at::TensorImpl*>(handle));
}

void retain_object(void* handle) { Py_INCREF(static_cast<PyObject*>(handle)); }
void release_object(void* handle) { Py_DECREF(static_cast<PyObject*>(handle)); }

}  // namespace

void initialise() {
  execute::tensor_operations() = {retain_tensor, release_tensor};
  execute::object_operations() = {retain_object, release_object};
  speculate::set_tensor_access(&tensor_access());
  speculate::set_differentiation(&differentiation());
  speculate::set_warnings_deferrer(defer_warnings);
  frontend::set_torch_services(&services());
  ask_for_eager_arithmetic();
  ops::eager_rules() = rules_of_this_version();
  install_allocator();
  set_thread_count(at::get_num_threads());
}

}  // namespace janus::torch
