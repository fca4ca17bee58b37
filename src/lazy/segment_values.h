// What a segment gives to the program of a graph, and takes from it.
#pragma once

#include "execute/values/slot.h"
#include "lazy/segment.h"

namespace janus::lazy {

execute::Slot slot_of(const c10::Scalar& number);

/// What a storage of the segment holds, as a tensor in its memory. The segment outlives it.
at::Tensor tensor_of(const Segment& segment, size_t storage, const Geometry& geometry,
                     int64_t offset);

/// Gives a storage that the segment makes its contents. The memory of `made` becomes its own,
/// unless somebody else has it, or it lies there otherwise.
void install(const Segment& segment, size_t storage, const Geometry& geometry, at::Tensor made);

}  // namespace janus::lazy
