// What speculation needs to know of tensors, without torch's headers. torch/ implements it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execute/slot.h"
#include "graph/type.h"
#include "python/object.h"

namespace janus::speculate {

/// One tensor as it is now.
struct TensorFact {
  graph::DType dtype = graph::DType::f32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t storage_offset = 0;
  bool requires_grad = false;
  bool is_leaf = true;
  bool is_parameter = false;       ///< exactly torch.nn.Parameter; else exactly torch.Tensor
  bool is_view = false;            ///< shares autograd version with a base (differentiable view)
  bool has_hooks = false;          ///< tensor hooks, post-accumulate hooks, retains_grad
  const void* storage = nullptr;   ///< identity of the memory: equal for tensors that share it
  const void* identity = nullptr;  ///< identity of the tensor (TensorImpl)
};

/// The surroundings of a call that decide what operators do. Compared as a whole at entry.
struct Environment {
  bool grad_enabled = true;
  bool inference_mode = false;
  bool autocast = false;  ///< autocast enabled for the CPU
  graph::DType autocast_dtype = graph::DType::bf16;
  graph::DType default_dtype = graph::DType::f32;
  bool deterministic = false;
  bool anomaly_mode = false;
  bool mode_active = false;  ///< a __torch_function__ or dispatch mode, functorch, vmap, tracing
  friend bool operator==(const Environment&, const Environment&) = default;
};

class TensorAccess {
 public:
  virtual ~TensorAccess() = default;
  virtual bool is_tensor(PyObject* object) const = 0;  ///< any subclass
  /// The fact, or why this tensor is never converted (subclass, device, layout, conj/neg bit,
  /// quantised, ...).
  virtual std::optional<TensorFact> describe(PyObject* tensor, std::string* why_not) const = 0;
  /// Fast path of guards: exact class, dtype, rank, requires_grad, leaf; fills sizes[0..rank).
  /// `contiguous` tells whether strides are the contiguous ones.
  virtual bool matches(PyObject* tensor, const struct TensorPattern& pattern,
                       int64_t* sizes) const = 0;
  /// Identity of the tensor's memory, as TensorFact::storage.
  virtual const void* storage_of(PyObject* tensor) const;
  virtual Environment environment() const = 0;
  virtual PyObject* grad_of(PyObject* tensor) const = 0;  ///< new reference: `tensor.grad` or None
  /// `tensor.grad = grad` (a tensor or None). Throws python::ErrorSet where that raises.
  virtual void set_grad(PyObject* tensor, PyObject* grad) const;
  virtual execute::Slot to_slot(PyObject* tensor) const = 0;
  virtual python::Object to_python(const execute::Slot& tensor) const = 0;
  /// Process-wide events that make every graph doubtful (e.g. torch.set_default_device); cheap to
  /// poll.
};

/// What a graph assumes of one tensor at entry.
struct TensorPattern {
  graph::DType dtype = graph::DType::f32;
  std::vector<graph::Dim> dims;  ///< numbers must match; symbols are bound or must agree
  /// Exact strides if set; without it the tensor must be contiguous.
  std::optional<std::vector<int64_t>> strides;
  bool requires_grad = false;
  bool is_leaf = true;
  bool is_parameter = false;
  bool is_view = false;
  bool has_hooks = false;
};

/// Set once by torch/ at start-up.
TensorAccess& tensor_access();
bool has_tensor_access();
void set_tensor_access(TensorAccess* access);

}  // namespace janus::speculate
