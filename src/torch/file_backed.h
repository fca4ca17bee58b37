// Contents of storages that lie in a file, so that their memory is free for others.
#pragma once

#include <c10/core/StorageImpl.h>

#include "torch/materializer.h"

namespace janus::torch {

/// Moves the contents into a temporary file that has no name, in TMPDIR. They can be read as
/// before, by pages that the system may drop. torch calls `before_writing`, or what it calls
/// already, before it gives out a pointer to write by; that has to call move_to_memory(). False,
/// with nothing changed, if the file can't be made, or the storage can't be watched until it dies.
bool move_to_file(c10::StorageImpl& storage, Materializer before_writing);

/// Whether the contents lie in a file.
bool is_in_file(const c10::StorageImpl& storage);

/// Moves them back. Nothing if they lie in memory. Throws what torch's allocator throws.
void move_to_memory(c10::StorageImpl& storage);

}  // namespace janus::torch
