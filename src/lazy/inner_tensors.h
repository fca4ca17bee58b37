// Tensors that a tensor of torch's own is made of: the indices and values of a sparse one, the
// scales of a quantised one, the sizes of a nested one. A program may have them, too, and write to
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace janus::lazy {

/// Whether the tensor is of such a kind.
inline bool may_have_inner_tensors(const at::Tensor& tensor) {
  using c10::DispatchKey;
  constexpr c10::DispatchKeySet kKinds =
      c10::DispatchKeySet(DispatchKey::Sparse) | c10::DispatchKeySet(DispatchKey::SparseCsr) |
      c10::DispatchKeySet(DispatchKey::Quantized) | c10::DispatchKeySet(DispatchKey::NestedTensor);
  return tensor.defined() && tensor.key_set().has_any(kKinds);
}

std::vector<at::Tensor> inner_tensors(const at::Tensor& tensor);

}  // namespace janus::lazy
