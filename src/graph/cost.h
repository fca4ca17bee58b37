// The cost model: what tensors, calls of operators and traffic through memory are taken to cost,
// where passes, the executor and the dispatcher weigh one form of a program against another.
//
// It has three units, as three questions are asked:
//
//   elements      the time to read one element of a tensor along a row. Passes ask whether fewer
//                 products are worth copies of their operands.
//   views         the time to make a view, on small tensors. The dispatcher asks whether a graph
//                 is worth its entry, the executor whether a batch of calls is.
//   instructions  simple instructions for one element; a cycle of the processor does one for each
//                 lane of a vector. Kernels ask whether work is worth another thread: see
//                 kernels::cost() for theirs, kernels/sharing.h for a thread's.
//
// Bytes through memory, which fusion and the schedule compare, need no unit: typical_bytes().
// Sizes that only the run knows are taken to be kTypicalSize.
#pragma once

#include "graph/graph.h"
#include "graph/op.h"

namespace janus::graph {

// ---- Sizes --------------------------------------------------------------------------------------

/// What a named dimension is taken to be. Chosen, not measured.
inline constexpr int64_t kTypicalSize = 64;

inline int64_t typical_size(const Dim& dim) {
  return dim.evaluate([](const std::string&) { return kTypicalSize; }).value_or(0);
}

/// Elements of a tensor.
inline int64_t typical_elements(const Type& tensor) {
  return typical_size(element_count(tensor.shape));
}

/// Bytes of a tensor; 0 of anything else.
inline int64_t typical_bytes(const Type& type) {
  return type.is_tensor() ? typical_elements(type) * byte_size(type.dtype) : 0;
}

// ---- In elements --------------------------------------------------------------------------------

/// The call of an operator. Chosen, not measured: about a microsecond of reading.
inline constexpr int64_t kElementsOfCall = 5000;
/// An element that is copied beside others. Chosen, not measured.
inline constexpr int64_t kElementsOfCopied = 4;
/// An element of a matrix that is kept for later and then copied, in memory that no iteration uses
/// again, where one that is read and written in a sum costs 1. Measured on LSTM cells: keeping 8
/// rows of 256 units gained a fifth, keeping 20 rows of 128 lost a seventh.
inline constexpr int64_t kElementsOfKept = 8;

// ---- In views -----------------------------------------------------------------------------------

/// By the times of small tensors: a view makes an object, a kernel computes, an operator of the
/// library looks for its code as well, a product does more before it begins. Chosen, not measured,
/// near the times of ATen's calls on one thread.
inline constexpr double kViewCost = 1, kKernelCost = 2, kOperatorCost = 3, kProductCost = 8;
/// Bytes of a matrix that a product reads in the time of a view.
inline constexpr int64_t kBytesOfView = 8 << 10;

/// The call of a node's operator before anything is fused.
inline double call_cost(const Node& node) {
  return node.op->is(Trait::view) ? kViewCost : kOperatorCost;
}

/// A product whose larger matrix has so many bytes.
inline double product_cost(double bytes) {
  return kProductCost + bytes / static_cast<double>(kBytesOfView);
}

// ---- In instructions ----------------------------------------------------------------------------

/// An element that loops outside of kernels move or add up: not all of it is done by vectors. And
/// one that is added to another along rows, as kernels count it. Chosen, not measured.
inline constexpr int64_t kInstructionsOfMoved = 16, kInstructionsOfAdded = 4;

}  // namespace janus::graph
