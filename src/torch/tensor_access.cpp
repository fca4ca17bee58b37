// What guards and the profiler ask of Python's tensors. `matches` runs for every tensor of every
// call: it reads TensorImpl's fields and nothing else.
#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_hook.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <string_view>
#include <typeinfo>

#include "speculate/elements_apart.h"
#include "torch/interception_keys.h"
#include "torch/materializer.h"
#include "torch/memory.h"
#include "torch/parts.h"
#include "torch/reducer.h"
#include "torch/tensor.h"

namespace janus::torch {

using execute::Slot;
using speculate::Environment;
using speculate::ExpectedTensor;
using speculate::TensorFact;
using speculate::TensorPattern;
using ::torch::autograd::AutogradMeta;

namespace {

/// The keys of an ordinary dense tensor of the CPU: not conjugated, wrapped, tracked by a mode, ...
c10::DispatchKeySet ordinary_keys() {
  static const c10::DispatchKeySet keys = [] {
    const c10::InferenceMode outside(false);
    return at::empty({0}, at::TensorOptions(at::kFloat)).unsafeGetTensorImpl()->key_set();
  }();
  return keys;
}

/// As ordinary_keys(), of a tensor made in inference mode.
c10::DispatchKeySet inference_keys() {
  static const c10::DispatchKeySet keys = [] {
    const c10::InferenceMode inside(true);
    return at::empty({0}, at::TensorOptions(at::kFloat)).unsafeGetTensorImpl()->key_set();
  }();
  return keys;
}

/// Where inference mode is active, tensors made in it are as good as others.
bool has_ordinary_keys(const at::TensorImpl* impl) {
  const c10::DispatchKeySet keys = impl->key_set().remove(kLazyTensor);
  return keys == ordinary_keys() || (keys == inference_keys() && c10::InferenceMode::is_enabled());
}

const at::TensorImpl* impl_of(PyObject* tensor) {
  return THPVariable_Unpack(tensor).unsafeGetTensorImpl();
}

const AutogradMeta* meta_of(const at::TensorImpl* impl) {
  return static_cast<const AutogradMeta*>(impl->autograd_meta());
}

bool is_empty_dictionary(PyObject* hooks) {
  return hooks != nullptr && PyDict_Check(hooks) && PyDict_GET_SIZE(hooks) == 0;
}

struct Hooks {
  bool any = false;
  bool hidden = false;  ///< some that no dictionary of Python's tells: of C++, of a gradient kept
};

/// Hooks that were removed, and tensors that were loaded from a file, leave an empty dictionary.
Hooks hooks_of(const at::TensorImpl* impl, const AutogradMeta& meta) {
  if (meta.retains_grad_) return {true, true};
  if (meta.hooks_.empty() && meta.post_acc_grad_hooks_ == nullptr) return {};
  const auto* object = reinterpret_cast<const THPVariable*>(impl->pyobj_slot()->load_pyobj());
  if (object == nullptr || meta.hooks_.size() > 1) return {true, true};
  const auto of = [](bool exists, PyObject* dictionary) {
    const bool any = exists && !is_empty_dictionary(dictionary);
    return Hooks{any, any && (dictionary == nullptr || !PyDict_Check(dictionary))};
  };
  const Hooks before = of(!meta.hooks_.empty(), object->backward_hooks);
  const Hooks after = of(meta.post_acc_grad_hooks_ != nullptr, object->post_accumulate_grad_hooks);
  return {before.any || after.any, before.hidden || after.hidden};
}

/// Whether it is a dictionary of Python's that is empty by now. Torch hides what would let its
/// class be compared in another way than by name.
template <class OfPython, class Hook>
bool is_removed(const Hook& hook, std::string_view name) {
  return typeid(hook).name() == name &&
         is_empty_dictionary(static_cast<const OfPython&>(hook).dict);
}

bool any_hook(const ::torch::autograd::Node& node) {
  using ::torch::autograd::PyFunctionPostHook;
  using ::torch::autograd::PyFunctionPreHook;
  const auto is_before = [](const auto& hook) {
    return !is_removed<PyFunctionPreHook>(*hook, "N5torch8autograd17PyFunctionPreHookE");
  };
  const auto is_after = [](const auto& hook) {
    return !is_removed<PyFunctionPostHook>(*hook, "N5torch8autograd18PyFunctionPostHookE");
  };
  return std::ranges::any_of(node.pre_hooks(), is_before) ||
         std::ranges::any_of(node.post_hooks(), is_after);
}

/// The node that adds gradients to a leaf's .grad may have hooks of its own, which only the engine
/// calls. It lives only while somebody refers to it: a graph of autograd's, or who has the hook.
bool accumulator_has_hooks(const AutogradMeta& meta) {
  if (meta.grad_accumulator_.expired()) return false;
  const auto node = meta.grad_accumulator_.lock();
  return node && any_hook(*node);
}

/// Whether the node has one hook, which is written in C++: DistributedDataParallel's reducer has
/// that form. Torch hides what would let the hook's class be compared in another way than by name.
bool accumulator_has_reducer(const AutogradMeta& meta) {
  if (meta.grad_accumulator_.expired()) return false;
  const auto node = meta.grad_accumulator_.lock();
  if (!node || !node->pre_hooks().empty() || node->post_hooks().size() != 1) return false;
  const auto& hook = *node->post_hooks().front();
  return std::string_view(typeid(hook).name()) == "N5torch8autograd5utils14LambdaPostHookE";
}

/// Views that were written in place make their grad_fn when asked.
bool is_leaf(const at::Tensor& tensor, const AutogradMeta& meta) {
  return meta.is_view_ ? tensor.is_leaf() : !meta.grad_fn_;
}

/// As torch's own: also of a view that was taken without gradients of what requires one.
bool requires_grad(const at::Tensor& tensor, const AutogradMeta& meta) {
  return meta.is_view_ ? tensor.requires_grad() : meta.requires_grad_ || meta.grad_fn_;
}

/// `pattern`: a TensorPattern or an ExpectedTensor.
template <class Pattern>
bool autograd_matches(const at::Tensor& tensor, const Pattern& pattern) {
  const at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const AutogradMeta* meta = meta_of(impl);
  if (meta == nullptr) {
    return !pattern.requires_grad && pattern.is_leaf && !pattern.has_hooks;
  }
  const Hooks hooks = hooks_of(impl, *meta);
  return (pattern.may_be_view || !meta->is_view_) && hooks.any == pattern.has_hooks &&
         !hooks.hidden && is_leaf(tensor, *meta) == pattern.is_leaf &&
         requires_grad(tensor, *meta) == pattern.requires_grad && meta->fw_grad_ == nullptr &&
         !(pattern.is_accumulated_into && accumulator_has_hooks(*meta)) &&
         (!pattern.is_reduced || accumulator_has_reducer(*meta));
}

/// As TensorPattern::any_strides says.
bool are_elements_apart(const at::TensorImpl* impl) {
  return impl->is_non_overlapping_and_dense() ||
         speculate::are_elements_apart(impl->sizes(), impl->strides());
}

bool strides_match(const at::TensorImpl* impl, const TensorPattern& pattern) {
  if (pattern.any_strides) return are_elements_apart(impl);
  if (!pattern.strides) return impl->is_contiguous();
  const at::IntArrayRef strides = impl->strides();
  return std::equal(strides.begin(), strides.end(), pattern.strides->begin(),
                    pattern.strides->end());
}

bool sizes_match(at::IntArrayRef found, const ExpectedTensor& expected) {
  if (found.size() != expected.rank) return false;
  for (size_t d = 0; d < found.size(); ++d) {
    const int64_t size = expected.sizes[d];
    if (size >= 0 ? found[d] != size : found[d] < 2) return false;
  }
  return true;
}

/// The `.grad` that the tensor has. Tensor::grad() would warn of those that are no leaves.
const at::Tensor& gradient_of(PyObject* object) {
  static const at::Tensor none;
  const AutogradMeta* meta = meta_of(impl_of(object));
  return meta == nullptr ? none : meta->grad_;
}

bool layout_matches(const at::TensorImpl* impl, const ExpectedTensor& expected) {
  if (!has_ordinary_keys(impl)) return false;
  if (at::typeMetaToScalarType(impl->dtype()) != scalar_type(expected.dtype)) return false;
  if (!sizes_match(impl->sizes(), expected)) return false;
  if (expected.any_strides) return are_elements_apart(impl);
  if (expected.strides == nullptr) return impl->is_contiguous();
  return std::equal(impl->strides().begin(), impl->strides().end(), expected.strides);
}

/// The tensor that is looked at; null if there is none of the class that is expected.
const at::Tensor* expected_among(PyObject* const* objects, const ExpectedTensor& expected) {
  PyObject* object = objects[expected.step];
  if (expected.of_grad) {
    if (!THPVariable_CheckExact(object)) return nullptr;
    const AutogradMeta* meta = meta_of(impl_of(object));
    if (meta == nullptr || !meta->grad_.defined()) return nullptr;
    PyObject* made = meta->grad_.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj();
    const bool plain =
        made == nullptr || reinterpret_cast<PyObject*>(Py_TYPE(made)) == THPVariableClass;
    return plain ? &meta->grad_ : nullptr;
  }
  PyObject* wanted = expected.is_parameter ? ParameterClass : THPVariableClass;
  const bool has_class = reinterpret_cast<PyObject*>(Py_TYPE(object)) == wanted;
  return has_class ? &THPVariable_Unpack(object) : nullptr;
}

void prefetch(const void* start, size_t bytes) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < bytes; at += kLine)
    __builtin_prefetch(static_cast<const char*>(start) + at);
}

/// Why a tensor is never converted; null if it can be.
const char* obstacle(PyObject* object) {
  if (!THPVariable_CheckExact(object)) return "it is of a subclass of torch.Tensor";
  const at::Tensor& tensor = THPVariable_Unpack(object);
  if (!tensor.defined()) return "it is undefined";
  if (!tensor.device().is_cpu()) return "it is not on the CPU";
  if (tensor.layout() != at::kStrided) return "its layout is not strided";
  if (tensor.is_inference() && !c10::InferenceMode::is_enabled())
    return "it was made in inference mode";
  if (tensor.is_conj() || tensor.is_neg()) return "it is a lazy conjugate or negative";
  if (!has_ordinary_keys(tensor.unsafeGetTensorImpl())) {
    return "it is quantised, nested, wrapped or of another special kind";
  }
  if (!dtype_of(tensor.scalar_type())) return "graphs do not have its dtype";
  if (!tensor.has_storage()) return "it has no memory";
  const AutogradMeta* meta = meta_of(tensor.unsafeGetTensorImpl());
  if (meta != nullptr && meta->fw_grad_ != nullptr) return "it has a forward-mode gradient";
  if (meta != nullptr && hooks_of(tensor.unsafeGetTensorImpl(), *meta).hidden)
    return "it keeps its gradient, or has hooks of C++";
  return nullptr;
}

bool unusual_keys() {
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  const c10::DispatchKeySet usual_included =
      c10::default_included_set | c10::autocast_dispatch_keyset | kInterceptionKeys;
  const c10::DispatchKeySet usual_excluded =
      c10::default_excluded_set | c10::autocast_dispatch_keyset | c10::autograd_dispatch_keyset |
      c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView) | kInterceptionKeys;
  return !(keys.included_ - usual_included).empty() || !(keys.excluded_ - usual_excluded).empty();
}

bool any_mode() {
  return at::impl::PythonTorchFunctionTLS::stack_len() > 0 ||
         at::impl::PythonTorchFunctionTLS::get_disabled_state() !=
             at::impl::TorchFunctionDisabledState::ENABLED ||
         c10::impl::TorchDispatchModeTLS::any_modes_set() || unusual_keys() ||
         at::SavedTensorDefaultHooks::get_hooks().has_value();
}

class Access final : public speculate::TensorAccess {
 public:
  std::shared_ptr<void> ordinary_execution() const override {
    return is_intercepted() ? std::make_shared<OrdinaryExecution>() : nullptr;
  }

  bool is_tensor(PyObject* object) const override {
    if (THPVariable_CheckExact(object)) return true;
    return PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(THPVariableClass)) !=
           0;
  }

  std::optional<TensorFact> describe(PyObject* object, std::string* why_not) const override {
    if (const char* why = obstacle(object)) {
      if (why_not != nullptr) *why_not = why;
      return std::nullopt;
    }
    const at::Tensor& tensor = THPVariable_Unpack(object);
    TensorFact fact;
    fact.dtype = *dtype_of(tensor.scalar_type());
    fact.sizes = tensor.sizes().vec();
    fact.strides = tensor.strides().vec();
    fact.storage_offset = tensor.storage_offset();
    fact.requires_grad = tensor.requires_grad();
    fact.is_leaf = tensor.is_leaf();
    fact.is_parameter = reinterpret_cast<PyObject*>(Py_TYPE(object)) == ParameterClass;
    const AutogradMeta* meta = meta_of(tensor.unsafeGetTensorImpl());
    fact.is_view = meta != nullptr && meta->is_view_;
    fact.has_hooks = meta != nullptr && hooks_of(tensor.unsafeGetTensorImpl(), *meta).any;
    fact.accumulator_has_hooks = meta != nullptr && accumulator_has_hooks(*meta);
    fact.accumulator_has_reducer = meta != nullptr && accumulator_has_reducer(*meta);
    fact.storage = storage_of(object);
    fact.identity = tensor.unsafeGetTensorImpl();
    return fact;
  }

  bool matches(PyObject* object, const TensorPattern& pattern, int64_t* sizes) const override {
    PyObject* wanted = pattern.is_parameter ? ParameterClass : THPVariableClass;
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != wanted) return false;
    const at::Tensor& tensor = THPVariable_Unpack(object);
    const at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    if (!has_ordinary_keys(impl)) return false;
    if (at::typeMetaToScalarType(impl->dtype()) != scalar_type(pattern.dtype)) return false;
    const at::IntArrayRef actual = impl->sizes();
    if (actual.size() != pattern.dims.size()) return false;
    for (size_t d = 0; d < actual.size(); ++d) {
      const graph::Dim& dim = pattern.dims[d];
      // A named dimension is at least 2: broadcasting depends on sizes 0 and 1.
      if (dim.is_constant() ? !dim.is(actual[d]) : actual[d] < 2) return false;
      sizes[d] = actual[d];
    }
    return strides_match(impl, pattern) && autograd_matches(tensor, pattern);
  }

  /// In several passes, so that prefetches of one tensor overlap with those of others: all this
  /// lies in memory that the last run has pushed out of the caches.
  bool all_match(std::span<const ExpectedTensor> expected, PyObject* const* objects, int64_t* sizes,
                 std::span<const void*> storages) const override {
    for (const ExpectedTensor& each : expected) __builtin_prefetch(objects[each.step]);
    for (const ExpectedTensor& each : expected) {
      PyObject* object = objects[each.step];
      if (!THPVariable_CheckExact(object)) return false;
      prefetch(impl_of(object), sizeof(at::TensorImpl));
    }
    for (const ExpectedTensor& each : expected)
      if (const AutogradMeta* meta = meta_of(impl_of(objects[each.step])))
        prefetch(meta, sizeof(AutogradMeta));
    for (const ExpectedTensor& each : expected) {
      const AutogradMeta* meta = each.of_grad ? meta_of(impl_of(objects[each.step])) : nullptr;
      if (meta != nullptr && meta->grad_.defined())
        prefetch(meta->grad_.unsafeGetTensorImpl(), sizeof(at::TensorImpl));
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const at::Tensor* tensor = expected_among(objects, expected[i]);
      if (tensor == nullptr) return false;
      const at::TensorImpl* impl = tensor->unsafeGetTensorImpl();
      if (!layout_matches(impl, expected[i]) || !autograd_matches(*tensor, expected[i]))
        return false;
      storages[i] = impl->unsafe_storage().unsafeGetStorageImpl();
      if (!expected[i].is_symbolic) continue;
      std::copy(impl->sizes().begin(), impl->sizes().end(), sizes + expected[i].first_size);
    }
    return true;
  }

  const void* storage_of(PyObject* object) const override {
    return impl_of(object)->unsafe_storage().unsafeGetStorageImpl();
  }

  speculate::Memory memory_of(const void* storage) const override {
    const auto* impl = static_cast<const c10::StorageImpl*>(storage);
    const c10::DataPtr& data = data_of(*impl);
    const auto* begin = static_cast<const char*>(data.get());
    return {begin, begin + impl->nbytes(), begin != nullptr && !is_allocators_own(data)};
  }

  Environment environment() const override {
    Environment environment;
    const c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
    environment.grad_enabled = autograd.get_grad_mode();
    environment.inference_mode = autograd.get_inference_mode();
    environment.autocast = at::autocast::is_autocast_enabled(at::kCPU);
    environment.autocast_dtype =
        dtype_of(at::autocast::get_autocast_dtype(at::kCPU)).value_or(graph::DType::bf16);
    environment.autocast_keeps_casts = at::autocast::is_autocast_cache_enabled();
    environment.default_dtype =
        dtype_of(c10::get_default_dtype_as_scalartype()).value_or(graph::DType::f32);
    environment.deterministic = at::globalContext().deterministicAlgorithms();
    environment.anomaly_mode = ::torch::autograd::AnomalyMode::is_enabled();
    environment.mode_active = any_mode();
    return environment;
  }

  PyObject* grad_of(PyObject* object) const override {
    const at::Tensor& grad = gradient_of(object);
    if (!grad.defined()) Py_RETURN_NONE;
    return THPVariable_Wrap(grad);
  }

  Slot grad_slot(PyObject* object) const override {
    const at::Tensor& grad = gradient_of(object);
    return grad.defined() ? Slot::borrow_tensor(grad.unsafeGetTensorImpl()) : Slot::none();
  }

  bool is_reducing(void* reducer) const override {
    return torch::is_reducing(*static_cast<c10d::Reducer*>(reducer));
  }
  bool is_waiting(void* reducer) const override {
    return torch::is_waiting(*static_cast<c10d::Reducer*>(reducer));
  }
  bool has_communication_hook(void* reducer) const override {
    return torch::has_communication_hook(*static_cast<c10d::Reducer*>(reducer));
  }

  void give_back_free_memory() const override { torch::give_back_free_memory(); }

  void set_grad(PyObject* object, const Slot& grad) const override {
    at::Tensor& place = THPVariable_Unpack(object).mutable_grad();
    place = grad.is_tensor() ? tensor_of(grad) : at::Tensor();
  }

  void set_data(PyObject* object, const Slot& data, int64_t writes) const override {
    const at::Tensor& tensor = THPVariable_Unpack(object);
    tensor.set_data(tensor_of(data));
    for (int64_t i = 0; i < writes; ++i) ::torch::autograd::impl::bump_version(tensor);
  }

  Slot alias_slot(PyObject* object) const override {
    return Slot::alias_tensor(THPVariable_Unpack(object).unsafeGetTensorImpl());
  }

  Slot to_slot(PyObject* object) const override {
    return Slot::borrow_tensor(THPVariable_Unpack(object).unsafeGetTensorImpl());
  }

  python::Object to_python(Slot tensor) const override {
    return python::check(THPVariable_Wrap(tensor_of(std::move(tensor))));
  }
};

}  // namespace

speculate::TensorAccess& tensor_access() {
  static Access access;
  return access;
}

}  // namespace janus::torch
