// How a tensor in a storage is a view of another one that covers it: which operators of graphs lead
// from one to the other, and back for writes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/builder.h"
#include "lazy/event.h"

namespace janus::lazy {

/// Views as three steps: the base's elements in the order of memory, in other dimensions; a part of
/// each of these; those in another order, with dimensions of size 1 and broadcast ones between
/// them.
class ViewChain {
 public:
  /// Nothing where the base has gaps or is broadcast, or the view is none of that form (`unfold`).
  static std::optional<ViewChain> between(const Geometry& base, const Geometry& view,
                                          int64_t offset);

  /// The view's value. `base`: of the base's sizes.
  graph::Value* read(graph::Builder& builder, graph::Value* base) const;
  /// The base's value once the view holds `value`; nothing of broadcast views.
  graph::Value* write(graph::Builder& builder, graph::Value* base, graph::Value* value) const;
  bool can_write() const { return !is_broadcast_; }

  /// All sizes and places in it, and what of it is left without them: chains of the same form
  /// differ in sizes only.
  std::vector<int64_t> sizes() const;
  std::vector<uint64_t> form() const;
  /// The chain of that form with other sizes.
  ViewChain with_sizes(std::span<const graph::Dim> sizes) const;

 private:
  struct Part {
    graph::Dim full, start, size;
    bool is_whole = false;
  };

  template <class Self, class Visit>
  static void visit_sizes(Self& self, const Visit& visit);

  graph::Value* in_memory_order(graph::Builder& builder, graph::Value* base) const;
  graph::Value* part(graph::Builder& builder, graph::Value* value, size_t dim) const;
  graph::Value* with_part(graph::Builder& builder, graph::Value* value, size_t dim,
                          graph::Value* replacement) const;
  graph::Shape full_sizes() const;

  std::vector<int64_t> base_order_;  ///< dimensions of the base by falling stride
  graph::Shape base_sizes_;
  std::vector<Part> parts_;     ///< by falling stride
  std::vector<int64_t> order_;  ///< of the parts, as the view has them
  graph::Shape with_ones_;      ///< sizes of the view, 1 where it is broadcast
  graph::Shape sizes_;
  bool is_broadcast_ = false;
};

/// Whether one of a storage's tensors is a better base for views of the others: it covers more of
/// the storage, and each element once.
bool covers_more(const Geometry& one, const Geometry& other);

}  // namespace janus::lazy
