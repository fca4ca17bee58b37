// Storages whose memory somebody else may look at or change without torch: NumPy arrays over a
// tensor, addresses that a program has asked for, memory that others have allocated.
//
// Lazy execution (src/lazy/) never notes operators on them. What reads them notes a copy.
#pragma once

#include <c10/core/StorageImpl.h>

#include <cstdint>

namespace janus::torch {

/// Notes that somebody has got the address of its memory. Thread-safe.
void note_exposed(const c10::StorageImpl& storage);

/// Whether anybody has, or the memory is not of torch's allocator.
bool is_exposed(const c10::StorageImpl& storage);

/// How many weak references to the storage this register holds.
uint32_t weak_references_of_register(const c10::StorageImpl& storage);

}  // namespace janus::torch
