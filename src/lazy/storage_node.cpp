#include "lazy/storage_node.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <atomic>
#include <utility>

#include "base/check.h"
#include "torch/file_backed.h"

namespace janus::lazy {

namespace {

/// The deleter of a pending storage's data pointer: the storage has died, or has its contents.
void drop_node(void* context) {
  c10::intrusive_ptr<StorageNode>::reclaim(static_cast<StorageNode*>(context));
}

torch::Materializer materialize = nullptr;

/// Addresses for storages without memory: parts of torch take null for a storage that is broken.
/// Whoever reads there stops at once, instead of going on with wrong values.
class Reserved {
 public:
  Reserved() {
    for (bytes_ = size_t{1} << 40; bytes_ > 4096; bytes_ /= 2) {
      void* const made =
          mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (made == MAP_FAILED) continue;
      begin_ = static_cast<char*>(made);
      return;
    }
  }
  /// Different from those of other storages that are pending.
  void* next(size_t bytes) {
    constexpr size_t kAlignment = 64;
    const size_t wanted = (bytes / kAlignment + 1) * kAlignment;
    size_t at = at_.fetch_add(wanted);
    if (at + wanted >= bytes_) at_ = at = 0;
    return begin_ + at;
  }

 private:
  char* begin_ = nullptr;
  size_t bytes_ = 0;
  std::atomic<size_t> at_ = 0;
};

void* placeholder(size_t bytes) {
  static auto* const reserved = new Reserved;
  return reserved->next(bytes);
}

c10::weak_intrusive_ptr<c10::StorageImpl> weak_of(
    const c10::intrusive_ptr<c10::StorageImpl>& storage) {
  return c10::weak_intrusive_ptr<c10::StorageImpl>(storage);
}

}  // namespace

void set_materializer(torch::Materializer materializer) { materialize = materializer; }
torch::Materializer materializer() { return materialize; }

uint64_t next_numbering() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

StorageNode::Pointer StorageNode::make_pending(Session& session, size_t bytes,
                                               c10::Storage& storage) {
  auto impl = c10::make_intrusive<torch::WatchableStorage>(
      c10::StorageImpl::use_byte_size_t(), c10::SymInt(static_cast<int64_t>(bytes)),
      c10::DataPtr(nullptr, c10::Device(c10::kCPU)), c10::GetCPUAllocator(), /*resizable=*/true);
  auto node = c10::make_intrusive<StorageNode>(session, weak_of(impl));
  node->address_ = impl.get();
  node->is_pending_ = true;
  StorageNode* const context = Pointer(node).release();
  impl->set_data_ptr_noswap(
      c10::DataPtr(placeholder(bytes), context, drop_node, c10::Device(c10::kCPU)));
  torch::set_materializer(*impl, materialize);
  storage = c10::Storage(std::move(impl));
  return node;
}

StorageNode::Pointer StorageNode::of_ready(Session& session, const c10::Storage& storage) {
  const auto impl =
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage.unsafeGetStorageImpl());
  auto node = c10::make_intrusive<StorageNode>(session, weak_of(impl));
  node->address_ = impl.get();
  node->kept_ = impl;
  node->watch();
  return node;
}

StorageNode* StorageNode::of_pending(const c10::StorageImpl& storage) {
  if (!torch::has_materializer(storage)) return nullptr;
  const c10::DataPtr& data = torch::data_of(storage);
  return data.get_deleter() == drop_node ? static_cast<StorageNode*>(data.get_context()) : nullptr;
}

c10::Storage StorageNode::contents() const {
  if (kept_) return c10::Storage(kept_);
  if (own_) return own_;
  auto alive = weak_.lock();
  TORCHJANUS_CHECK(alive && !is_pending_, "lazy: the contents of a storage are missing");
  return c10::Storage(std::move(alive));
}

c10::Storage StorageNode::memory(bool is_written) const {
  const c10::Storage all = contents();
  if (is_written) torch::move_to_memory(*all.unsafeGetStorageImpl());
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), c10::SymInt(static_cast<int64_t>(all.nbytes())),
      c10::DataPtr(const_cast<void*>(all.data()), c10::Device(c10::kCPU)),
      /*allocator=*/nullptr, /*resizable=*/false));
}

void StorageNode::install(c10::Storage made) {
  is_pending_ = false;
  const auto alive = weak_.lock();
  if (!alive) {
    own_ = std::move(made);
    return;
  }
  torch::clear_materializer(*alive);
  alive->set_data_ptr_noswap(
      made.unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr(nullptr, c10::Device(c10::kCPU))));
}

void StorageNode::keep() {
  if (is_pending_ || kept_) return;
  kept_ = weak_.lock();
  watch();
}

void StorageNode::watch() {
  if (const auto alive = weak_.lock(); alive && !torch::has_materializer(*alive))
    torch::set_materializer(*alive, materialize);
}

void StorageNode::unwatch() {
  // One in a file is moved back before anybody writes to it.
  if (const auto alive = weak_.lock(); alive && !torch::is_in_file(*alive))
    torch::clear_materializer(*alive);
}

void StorageNode::release() {
  if (is_pending_) return;
  unwatch();
  kept_.reset();
}

}  // namespace janus::lazy
