// Makes, reads and copies tensors.
#include "torch/aten_library.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/PyObjectSlot.h>

#include <algorithm>
#include <cstring>

#include "base/policy.h"
#include "base/thread_pool.h"
#include "passes/analysis/certain.h"
#include "torch/certain_part.h"
#include "torch/exposed.h"
#include "torch/layout_copy.h"
#include "torch/materializer.h"
#include "torch/memory.h"
#include "torch/operators.h"
#include "torch/random_state.h"
#include "torch/run_scope.h"
#include "torch/tensor.h"
#include "torch/ways.h"

namespace janus::torch {

using execute::Layout;
using execute::Slot;

namespace {

at::DataPtr unowned(void* memory) { return {memory, at::Device(at::kCPU)}; }

class TorchLibrary final : public execute::Library {
 public:
  Layout layout(const Slot& tensor) const override {
    const at::TensorImpl* impl = impl_of(tensor);
    Layout layout;
    const auto dtype = dtype_of(at::typeMetaToScalarType(impl->dtype()));
    TORCHJANUS_CHECK(dtype, "layout: a tensor of an element type that graphs do not have");
    layout.dtype = *dtype;
    layout.sizes = impl->sizes().vec();
    layout.strides = impl->strides().vec();
    return layout;
  }

  using Library::has_layout;
  bool has_layout(const Slot& tensor, graph::DType dtype, std::span<const int64_t> sizes,
                  std::span<const int64_t> strides) const override {
    const at::TensorImpl* impl = impl_of(tensor);
    const at::IntArrayRef found = impl->sizes(), found_strides = impl->strides();
    return std::equal(found.begin(), found.end(), sizes.begin(), sizes.end()) &&
           std::equal(found_strides.begin(), found_strides.end(), strides.begin(), strides.end()) &&
           at::typeMetaToScalarType(impl->dtype()) == scalar_type(dtype);
  }

  void* data(const Slot& tensor) const override {
    const at::TensorImpl* impl = impl_of(tensor);
    char* start = static_cast<char*>(impl->unsafe_storage().unsafeGetStorageImpl()->mutable_data());
    if (start == nullptr) return nullptr;
    return start + impl->storage_offset() * static_cast<int64_t>(impl->dtype().itemsize());
  }

  const void* storage(const Slot& tensor) const override {
    return impl_of(tensor)->unsafe_storage().unsafeGetStorageImpl();
  }

  bool has_no_other_owner(const Slot& tensor) const override {
    const at::TensorImpl* impl = impl_of(tensor);
    return !tensor.is_alias() &&
           c10::raw::intrusive_ptr::use_count(const_cast<at::TensorImpl*>(impl)) == 1 &&
           impl->unsafe_storage().use_count() == 1;
  }

  Slot take_over(Slot& tensor) override {
    at::TensorImpl* impl = impl_of(tensor);
    // A Python object that nobody refers to counts as an owner.
    const auto* object = impl->pyobj_slot();
    const bool has_object = object->load_pyobj() != nullptr;
    const uint32_t owners = has_object ? 3 : 2;
    if (c10::raw::intrusive_ptr::use_count(impl) != owners || impl->storage_offset() != 0 ||
        (has_object && !object->has_unique_reference()) || !is_plain(impl) ||
        !owns_memory_alone(impl->unsafe_storage()))
      return {};
    const c10::VariableVersion& version = impl->version_counter();
    if (!has_object && impl->autograd_meta() == nullptr && version.unique() &&
        version.current_version() == 0)
      return std::move(tensor);
    return share(tensor, 0, layout(tensor));
  }

  Slot allocate(const Layout& layout) override {
    return slot_of(at::empty_strided(layout.sizes, layout.strides, scalar_type(layout.dtype)));
  }

  Slot over_memory(void* memory, const Layout& layout) override {
    c10::Storage storage(c10::Storage::use_byte_size_t(), layout.span_bytes(), unowned(memory),
                         /*allocator=*/nullptr, /*resizable=*/false);
    return slot_of(make_view(std::move(storage), 0, layout));
  }

  void repoint(Slot& tensor, void* memory) override {
    impl_of(tensor)->unsafe_storage().unsafeGetStorageImpl()->set_data_ptr_noswap(unowned(memory));
  }

  Slot share(const Slot& base, int64_t byte_offset, const Layout& layout) override {
    const at::TensorImpl* impl = impl_of(base);
    const int64_t start = impl->storage_offset() * static_cast<int64_t>(impl->dtype().itemsize());
    return slot_of(make_view(impl->storage(), start + byte_offset, layout));
  }

  void copy(Slot& to, const Slot& from) override {
    Borrowed target(to), source(from);
    const int64_t bytes = static_cast<int64_t>(target->nbytes());
    if (bytes <= policy::kLargestPlainCopy && target->is_contiguous() && source->is_contiguous()) {
      if (bytes > 0) std::memcpy(data(to), data(from), static_cast<size_t>(bytes));
      return;
    }
    if (copy_between_layouts(*target, *source)) return;
    at::_ops::copy_::call(*target, *source, false);
  }

  Slot sum(const Slot& one, const Slot& other) override {
    return slot_of(at::_ops::add_Tensor::call(tensor_of(one), tensor_of(other), 1));
  }

  bool has_compared_ways() const override { return ways_were_compared; }
  void give_back_free_memory() override { torch::give_back_free_memory(); }

  void bump_version(Slot& tensor, int64_t by) override {
    for (; by > 0; --by) impl_of(tensor)->bump_version();
  }

  std::unique_ptr<execute::Operation> bind(const graph::Node& node,
                                           const execute::SymbolLookup& symbols) override {
    return bind_operation(node, symbols);
  }

  void run_placed(execute::Operation& operation, const execute::Operands& operands,
                  std::span<execute::Placement> placements) override {
    const PlacedScope scope(placements);
    operation.run(operands);
    for (execute::Placement& placement : placements) {
      const Slot& result = operands.out(placement.output);
      if (result.is_tensor() && data(result) != placement.memory) {
        scope.correct(placement, data(result));
      }
    }
  }

  void run_beside(std::span<const execute::OperationCall> calls) override {
    parallel_for(std::ssize(calls), 1, [&](int64_t begin, int64_t end) {
      const at::AutoDispatchBelowADInplaceOrView below;  // a worker has no run's scope around it
      for (int64_t i = begin; i < end; ++i) {
        const execute::OperationCall& call = calls[static_cast<size_t>(i)];
        call.operation->run_into(call.operands);
      }
    });
  }

  std::unique_ptr<execute::RandomState> random_state() override { return make_random_state(); }

  std::optional<execute::Failure> protect(execute::Unlock unlock, void (*body)(void*),
                                          void* context) override {
    return run_protected(unlock, body, context);
  }

  bool is_certain(const graph::Node& node) const override {
    return passes::fails_only_for_memory(node);
  }
  void enter_certain_part() override { torch::enter_certain_part(); }
  void check_interrupt() override { torch::check_interrupt(); }

 private:
  /// Of the kind that `allocate` makes, weakly referred to by nobody.
  static bool is_plain(at::TensorImpl* impl) {
    static const c10::DispatchKeySet keys =
        at::empty({0}, at::TensorOptions(at::kFloat)).unsafeGetTensorImpl()->key_set();
    return impl->key_set() == keys &&
           has_no_weak_owner<at::TensorImpl, at::UndefinedTensorImpl>(impl);
  }

  /// Beside `known` ones. All owners together count as one weak one.
  template <class Target, class Null = c10::detail::intrusive_target_default_null_type<Target>>
  static bool has_no_weak_owner(Target* target, uint32_t known = 0) {
    auto owner = c10::intrusive_ptr<Target, Null>::reclaim(target);
    const bool none = owner.weak_use_count() == 1 + known;
    owner.release();
    return none;
  }

  static bool owns_memory_alone(const c10::Storage& storage) {
    c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
    return c10::raw::intrusive_ptr::use_count(impl) == 1 &&
           has_no_weak_owner(impl, weak_references_of_register(*impl)) &&
           impl->pyobj_slot()->load_pyobj() == nullptr && is_allocators_own(data_of(*impl));
  }

  static at::Tensor make_view(c10::Storage storage, int64_t byte_offset, const Layout& layout) {
    at::Tensor tensor = at::detail::make_tensor<at::TensorImpl>(
        std::move(storage), at::DispatchKeySet(at::DispatchKey::CPU),
        at::scalarTypeToTypeMeta(scalar_type(layout.dtype)));
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(
        layout.sizes, layout.strides, byte_offset / graph::byte_size(layout.dtype));
    return tensor;
  }
};

}  // namespace

execute::Library& library() {
  static TorchLibrary instance;
  return instance;
}

}  // namespace janus::torch
