#include "torch/materializer.h"

#if !TORCHJANUS_TORCH_SINCE_2_13

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/COW.h>
#include <c10/core/impl/COWDeleter.h>

#include <memory>
#include <utility>
#include <vector>

namespace janus::torch {

namespace {

using Context = c10::impl::cow::COWDeleterContext;
constexpr auto drop = c10::impl::cow::cow_deleter;

/// Contexts that torch uses on this thread while it copies a storage, which in truth calls us. It
/// says nothing when it has done so: they are dropped when it calls again.
class InUse {
 public:
  ~InUse() { drop_all(); }
  void enter(Context* context) {
    if (depth_ == 0) drop_all();
    context->increment_refcount();
    all_.push_back(context);
    ++depth_;
  }
  void leave() { --depth_; }

 private:
  void drop_all() {
    for (Context* const each : std::exchange(all_, {})) drop(each);
  }

  std::vector<Context*> all_;
  size_t depth_ = 0;
};

/// The allocator of a storage while it is watched. It belongs to the context, which is kept by the
/// storage's data pointer and once more by set_materializer(): torch copies only where there is
/// another owner.
class Watch final : public c10::Allocator {
 public:
  Watch(c10::StorageImpl& storage, Materializer function)
      : function(function), before(storage.allocator()), storage_(&storage) {
    data = std::move(storage._mutable_data_ptr_no_checks());
    context = new Context(std::unique_ptr<void, c10::DeleterFnPtr>(this, destroy));
    context->increment_refcount();
    storage.set_data_ptr_noswap(c10::DataPtr(data.get(), context, drop, data.device()));
    storage.set_allocator(this);
  }

  /// Null if the storage is not watched.
  static Watch* of(const c10::StorageImpl& storage) {
    if (!c10::impl::cow::is_cow_data_ptr(storage.data_ptr())) return nullptr;
    auto* const watch = allocator_of(storage);
    return watch != nullptr && watch->context == storage.data_ptr().get_context() ? watch : nullptr;
  }
  /// Also where somebody has given the storage other data since.
  static Watch* allocator_of(const c10::StorageImpl& storage) {
    auto* const watch = dynamic_cast<Watch*>(const_cast<c10::Allocator*>(storage.allocator()));
    return watch != nullptr && watch->storage_ == &storage ? watch : nullptr;
  }

  /// A copy has the storage's size; whoever resizes a storage asks for another one. Of a resize to
  /// the same size nothing is known here: it gets the memory that is there, and a context is lost.
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes != storage_->nbytes() || of(*storage_) != this)
      return (before == nullptr ? c10::GetCPUAllocator() : before)->allocate(bytes);
    static thread_local InUse in_use;
    in_use.enter(context);
    context->increment_refcount();  // torch has given up the data pointer's
    const std::unique_ptr<InUse, void (*)(InUse*)> leave(&in_use, [](InUse* all) { all->leave(); });
    c10::StorageImpl& storage = *storage_;
    function(&storage);
    clear_materializer(storage);
    // It may have been such a storage before.
    if (c10::impl::cow::is_cow_data_ptr(storage.data_ptr()))
      c10::impl::cow::materialize_cow_storage(storage);
    return std::move(storage._mutable_data_ptr_no_checks());
  }
  void copy_data(void*, const void*, size_t) const override {}  // it is the same memory
  c10::DeleterFnPtr raw_deleter() const override {
    return before == nullptr ? nullptr : before->raw_deleter();
  }

  Materializer function;
  c10::Allocator* before;
  c10::DataPtr data;
  Context* context;

 private:
  static void destroy(void* watch) { delete static_cast<Watch*>(watch); }

  c10::StorageImpl* storage_;
};

}  // namespace

bool has_materializer(const c10::StorageImpl& storage) { return Watch::of(storage) != nullptr; }

void set_materializer(c10::StorageImpl& storage, Materializer function) {
  clear_materializer(storage);
  new Watch(storage, function);  // NOLINT: the storage's data pointer owns it
}

void clear_materializer(c10::StorageImpl& storage) {
  Watch* const watch = Watch::allocator_of(storage);
  if (watch == nullptr) return;
  Context* const context = watch->context;
  storage.set_allocator(watch->before);
  if (storage.data_ptr().get_context() == context)
    storage.set_data_ptr_noswap(std::move(watch->data));
  drop(context);
}

const c10::DataPtr& data_of(const c10::StorageImpl& storage) {
  const Watch* const watch = Watch::of(storage);
  return watch == nullptr ? storage.data_ptr() : watch->data;
}

void replace_data(c10::StorageImpl& storage, c10::DataPtr data) {
  const Watch* const watch = Watch::of(storage);
  const Materializer function = watch == nullptr ? nullptr : watch->function;
  clear_materializer(storage);
  storage.set_data_ptr_noswap(std::move(data));
  if (function != nullptr) set_materializer(storage, function);
}

bool may_die_while_watched(const c10::StorageImpl& storage) {
  return dynamic_cast<const WatchableStorage*>(&storage) != nullptr;
}

WatchableStorage::~WatchableStorage() { clear_materializer(*this); }

void WatchableStorage::release_resources() {
  clear_materializer(*this);
  StorageImpl::release_resources();
}

}  // namespace janus::torch

#endif
