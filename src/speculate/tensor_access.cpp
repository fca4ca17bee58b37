// Holds the implementation that torch/ provides at start-up.
#include "speculate/tensor_access.h"

#include "base/check.h"

namespace janus::speculate {
namespace {

TensorAccess* access_of_process = nullptr;

}  // namespace

TensorAccess& tensor_access() {
  TORCHJANUS_CHECK(access_of_process != nullptr, "tensor access was not set at start-up");
  return *access_of_process;
}

bool has_tensor_access() { return access_of_process != nullptr; }

void set_tensor_access(TensorAccess* access) { access_of_process = access; }

const void* TensorAccess::storage_of(PyObject* tensor) const {
  const auto fact = describe(tensor, nullptr);
  return fact ? fact->storage : nullptr;
}

Memory TensorAccess::memory_of(const void* storage) const {
  return {storage, static_cast<const char*>(storage) + 1, false};
}

}  // namespace janus::speculate
