// What speculation asks of tensors, without torch's headers. torch/ implements it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execute/values/slot.h"
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
  bool is_parameter = false;  ///< exactly torch.nn.Parameter; else exactly torch.Tensor
  bool is_view = false;       ///< shares autograd version with a base (differentiable view)
  bool has_hooks = false;     ///< tensor hooks, post-accumulate hooks, retains_grad
  bool accumulator_has_hooks = false;  ///< hooks of the node that adds to its .grad
  /// One of C++ and no other, as DistributedDataParallel's reducer has it.
  bool accumulator_has_reducer = false;
  const void* storage = nullptr;   ///< identity of the memory: equal for tensors that share it
  const void* identity = nullptr;  ///< identity of the tensor (TensorImpl)
};

/// The thread state that changes what operators do. Guards compare it as a whole.
struct Environment {
  bool grad_enabled = true;
  bool inference_mode = false;
  bool autocast = false;  ///< autocast enabled for the CPU
  graph::DType autocast_dtype = graph::DType::bf16;
  bool autocast_keeps_casts = true;  ///< of weights, until the context is left
  graph::DType default_dtype = graph::DType::f32;
  bool deterministic = false;
  bool anomaly_mode = false;
  bool mode_active = false;  ///< a __torch_function__ or dispatch mode, functorch, vmap, tracing
  friend bool operator==(const Environment&, const Environment&) = default;
};

/// Where a storage lies.
struct Memory {
  const void* begin = nullptr;  ///< null: it has none
  const void* end = nullptr;
  /// Somebody else has allocated it, NumPy for instance: other storages may lie in it too.
  bool is_foreign = false;
};

/// The expectation of one tensor among many, in compact form; see TensorPattern.
struct ExpectedTensor {
  uint32_t step = 0;     ///< step of the tensor, or of the tensor whose .grad it is
  bool of_grad = false;  ///< it is that tensor's .grad, exactly a torch.Tensor
  graph::DType dtype = graph::DType::f32;
  uint8_t rank = 0;
  bool requires_grad = false, is_leaf = true, is_parameter = false, may_be_view = false,
       has_hooks = false, is_accumulated_into = false, is_reduced = false;
  bool is_symbolic = false;          ///< its sizes are wanted
  uint32_t first_size = 0;           ///< where they go
  const int64_t* sizes = nullptr;    ///< -1: at least 2
  const int64_t* strides = nullptr;  ///< null: contiguous
  bool any_strides = false;          ///< ... or whatever TensorPattern::any_strides allows
};

class TensorAccess {
 public:
  virtual ~TensorAccess() = default;
  /// While the result lives, no tensor's contents are pending, and operators of this thread run
  /// when they are called. Null where that is so in any case.
  virtual std::shared_ptr<void> ordinary_execution() const { return nullptr; }
  virtual bool is_tensor(PyObject* object) const = 0;  ///< any subclass
  /// The fact, or why this tensor is never converted (subclass, device, layout, conj/neg bit,
  /// quantised, ...).
  virtual std::optional<TensorFact> describe(PyObject* tensor, std::string* why_not) const = 0;
  /// The fast path of guards: compares class, dtype, rank, requires_grad, leaf; fills
  /// sizes[0..rank). `contiguous`: whether the strides are contiguous.
  virtual bool matches(PyObject* tensor, const struct TensorPattern& pattern,
                       int64_t* sizes) const = 0;
  /// Whether all tensors match. Fills `storages` (storage_of of each) and the wanted sizes.
  /// `objects` has the tensors by step, among other objects.
  virtual bool all_match(std::span<const ExpectedTensor> expected, PyObject* const* objects,
                         int64_t* sizes, std::span<const void*> storages) const = 0;
  /// Identity of the tensor's memory, as TensorFact::storage.
  virtual const void* storage_of(PyObject* tensor) const;
  /// Where the storage of that identity lies.
  virtual Memory memory_of(const void* storage) const;
  virtual Environment environment() const = 0;
  virtual PyObject* grad_of(PyObject* tensor) const = 0;  ///< new reference: `tensor.grad` or None
  /// The same as a slot, without a new Python object: a tensor or none.
  virtual execute::Slot grad_slot(PyObject* tensor) const = 0;
  /// `tensor.grad = grad` (a tensor or none), without checks.
  virtual void set_grad(PyObject* tensor, const execute::Slot& grad) const = 0;
  /// `tensor.data = data`, without checks; adds `writes` in-place writes to its version.
  virtual void set_data(PyObject* tensor, const execute::Slot& data, int64_t writes) const = 0;
  virtual execute::Slot to_slot(PyObject* tensor) const = 0;
  /// The same without a reference: valid while the object lives and holds that tensor.
  virtual execute::Slot alias_slot(PyObject* tensor) const = 0;
  /// The Python object of the tensor. A new object takes over the reference.
  virtual python::Object to_python(execute::Slot tensor) const = 0;
  /// Whether a backward() that ran in Python has left this c10d::Reducer without some gradients.
  virtual bool is_reducing(void* /*reducer*/) const { return false; }
  /// Whether it shares the gradients of the next backward() that runs in Python.
  virtual bool is_waiting(void* /*reducer*/) const { return false; }
  /// Whether the program has given it a hook, which communicates in its place.
  virtual bool has_communication_hook(void* /*reducer*/) const { return false; }
  /// Returns cached free memory to the system.
  virtual void give_back_free_memory() const {}
};

/// The assumptions of a graph about one tensor at entry.
struct TensorPattern {
  graph::DType dtype = graph::DType::f32;
  std::vector<graph::Dim> dims;  ///< numbers must match; symbols are bound or must agree
  /// Exact strides; if not set, the tensor must be contiguous.
  std::optional<std::vector<int64_t>> strides;
  /// Instead: any at which no two elements share memory. They differ from call to call.
  bool any_strides = false;
  bool requires_grad = false;
  bool is_leaf = true;
  bool is_parameter = false;
  bool may_be_view = false;  ///< the tensor is only read, so it may be a view
  bool has_hooks = false;
  /// The run adds to its .grad, so the accumulator node, which eager would run, must have no hooks.
  bool is_accumulated_into = false;
  /// The run does what the one hook of that node, of DistributedDataParallel's reducer, would do.
  bool is_reduced = false;
};

/// torch/ sets it once at start-up.
TensorAccess& tensor_access();
bool has_tensor_access();
void set_tensor_access(TensorAccess* access);

}  // namespace janus::speculate
