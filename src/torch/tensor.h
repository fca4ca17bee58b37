// Tensors between the executor's slots and ATen: handles, element types, borrowed references.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "execute/values/slot.h"
#include "graph/type.h"

namespace janus::torch {

inline at::TensorImpl* impl_of(const execute::Slot& slot) {
  return static_cast<at::TensorImpl*>(slot.tensor());
}

/// An at::Tensor for a handle that somebody else holds; does not count.
class Borrowed {
 public:
  explicit Borrowed(const execute::Slot& slot)
      : tensor_(
            c10::intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>::reclaim(impl_of(slot))) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() { tensor_.unsafeReleaseTensorImpl(); }

  at::Tensor& operator*() { return tensor_; }
  at::Tensor* operator->() { return &tensor_; }

 private:
  at::Tensor tensor_;
};

/// Whether the two are one tensor, or lie in one memory.
inline bool share_memory(const execute::Slot& one, const execute::Slot& other) {
  if (impl_of(one) == impl_of(other)) return true;
  Borrowed a(one), b(other);
  return a->const_data_ptr() == b->const_data_ptr();
}

/// A new reference.
inline at::Tensor tensor_of(const execute::Slot& slot) {
  return at::Tensor(
      c10::intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>::reclaim_copy(impl_of(slot)));
}

/// The slot's reference.
inline at::Tensor tensor_of(execute::Slot&& slot) {
  return at::Tensor(c10::intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>::reclaim(
      static_cast<at::TensorImpl*>(slot.take_tensor())));
}

/// Takes over the reference.
inline execute::Slot slot_of(at::Tensor tensor) {
  return execute::Slot::steal_tensor(tensor.unsafeReleaseTensorImpl());
}

/// The tensor with its numbers in memory: autograd gives lazy ones, which are zeros without memory,
/// or conjugates or negatives of what lies there.
at::Tensor in_memory(const at::Tensor& tensor);

at::ScalarType scalar_type(graph::DType dtype);
/// Nullopt for element types that graphs do not have.
std::optional<graph::DType> dtype_of(at::ScalarType type);

}  // namespace janus::torch
