// How a tensor in a storage is a view of another one that covers it: which operators of graphs lead
// from one to the other, and back for writes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/builder.h"
#include "lazy/event.h"

namespace janus::lazy {

/// Views as three steps: the base's elements in the order of memory, in other dimensions; a part of
/// each of these; those in another order, with dimensions of size 1 and broadcast ones between
/// them.
class ViewChain {
 public:
  /// Nothing where the base has gaps, or the view is none of that form (`unfold`).
  static std::optional<ViewChain> between(const Geometry& base, const Geometry& view,
                                          int64_t offset);

  /// The view's value. `base`: of the base's sizes.
  graph::Value* read(graph::Builder& builder, graph::Value* base) const;
  /// The base's value once the view holds `value`; nothing of broadcast views.
  graph::Value* write(graph::Builder& builder, graph::Value* base, graph::Value* value) const;
  bool can_write() const { return !is_broadcast_; }

 private:
  struct Part {
    int64_t full = 0, start = 0, size = 0;
    bool is_whole() const { return start == 0 && size == full; }
  };

  graph::Value* in_memory_order(graph::Builder& builder, graph::Value* base) const;
  graph::Value* part(graph::Builder& builder, graph::Value* value, size_t dim) const;
  graph::Value* with_part(graph::Builder& builder, graph::Value* value, size_t dim,
                          graph::Value* replacement) const;
  std::vector<int64_t> full_sizes() const;

  std::vector<int64_t> base_order_;  ///< dimensions of the base by falling stride
  std::vector<int64_t> base_sizes_;
  std::vector<Part> parts_;         ///< by falling stride
  std::vector<int64_t> order_;      ///< of the parts, as the view has them
  std::vector<int64_t> with_ones_;  ///< sizes of the view, 1 where it is broadcast
  std::vector<int64_t> sizes_;
  bool is_broadcast_ = false;
};

}  // namespace janus::lazy
