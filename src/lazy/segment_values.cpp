#include "lazy/segment_values.h"

#include <ATen/ops/empty_strided.h>

#include <utility>

namespace janus::lazy {

using execute::Slot;

Slot slot_of(const c10::Scalar& number) {
  if (number.isFloatingPoint()) return Slot::of(number.toDouble());
  if (number.isBoolean()) return Slot::of(number.toBool());
  return Slot::of(number.toLong());
}

at::Tensor tensor_of(const Segment& segment, size_t storage, const Geometry& geometry,
                     int64_t offset) {
  return tensor_in(segment.memory_of(storage), geometry, offset);
}

void install(const Segment& segment, size_t storage, const Geometry& geometry, at::Tensor made) {
  const bool is_as_wanted = geometry.is_of(made) && made.storage_offset() == 0 &&
                            made.use_count() == 1 && made.storage().use_count() == 1;
  if (!is_as_wanted) {
    at::Tensor copy = at::empty_strided(geometry.sizes, geometry.strides, made.options());
    made = copy.copy_(made);
  }
  segment.storages[storage].node->install(made.storage());
}

}  // namespace janus::lazy
