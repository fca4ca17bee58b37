// What torch calls before it gives out a pointer to write to a storage by.
//
// Since 2.13 a storage has a place for such a function. Before, torch only knows storages that are
// copied when somebody writes to them; they are told by the deleter of their data pointer, and
// their allocator makes the copy. There a watched storage is such a one, whose allocator calls the
// function and gives the memory out that is there. data_of() and replace_data() see through that.
#pragma once

#include <c10/core/StorageImpl.h>

#include "torch/version.h"

namespace janus::torch {

using Materializer = void (*)(c10::StorageImpl*);

#if TORCHJANUS_TORCH_SINCE_2_13

using WatchableStorage = c10::StorageImpl;

inline bool has_materializer(const c10::StorageImpl& storage) { return storage.has_materializer(); }
inline void set_materializer(c10::StorageImpl& storage, Materializer function) {
  storage.set_materializer(function);
}
inline void clear_materializer(c10::StorageImpl& storage) { storage.clear_materializer(); }
inline const c10::DataPtr& data_of(const c10::StorageImpl& storage) { return storage.data_ptr(); }
inline void replace_data(c10::StorageImpl& storage, c10::DataPtr data) {
  storage.set_data_ptr_noswap(std::move(data));
}
constexpr bool may_die_while_watched(const c10::StorageImpl&) { return true; }

#else

/// A storage that may die while it is watched. Others have to be kept until clear_materializer().
struct WatchableStorage final : c10::StorageImpl {
  using StorageImpl::StorageImpl;
  ~WatchableStorage() override;
  void release_resources() override;
};

bool has_materializer(const c10::StorageImpl& storage);
/// Of a storage that has none. It is called once; if it throws, at the next write again.
void set_materializer(c10::StorageImpl& storage, Materializer function);
void clear_materializer(c10::StorageImpl& storage);

/// The data pointer that the storage was given.
const c10::DataPtr& data_of(const c10::StorageImpl& storage);
/// Gives it another one, without calling a function.
void replace_data(c10::StorageImpl& storage, c10::DataPtr data);
bool may_die_while_watched(const c10::StorageImpl& storage);

#endif

}  // namespace janus::torch
