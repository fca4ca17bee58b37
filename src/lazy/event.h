// A noted call of an operator, and what all calls with its key have in common.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lazy/call_key.h"
#include "lazy/storage_node.h"

namespace janus::lazy {

/// Where the elements of a tensor lie in its storage, up to the place of the first one.
struct Geometry {
  at::ScalarType dtype = at::kFloat;
  c10::SmallVector<int64_t, 5> sizes, strides;

  static Geometry of(const at::Tensor& tensor);
  bool is_of(const at::Tensor& tensor) const;
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// A tensor with this geometry in a storage, at an offset. It is nobody's but the caller's.
at::Tensor tensor_in(const c10::Storage& storage, const Geometry& geometry, int64_t offset,
                     c10::DispatchKeySet more_keys = {});

/// A result that is no operand.
struct ResultShape {
  bool is_defined = true;
  Geometry geometry;
  size_t bytes = 0;  ///< of its storage
};

/// What is known of all calls with one key, from the first one.
struct CallKind {
  const OperatorRule* rule = nullptr;
  std::vector<uint64_t> key;
  /// The arguments in the schema's order; those that events have are empty.
  std::vector<c10::IValue> arguments;
  /// How the arguments that events have are put together, in order.
  std::vector<OperandPlace> places;
  std::vector<Geometry> operands;  ///< as places
  std::vector<NumberPlace> numbers;
  std::vector<ResultShape> results;  ///< for each result; empty shapes of written operands
  bool can_wait = false;
  bool came_again = false;  ///< if not, no event has it

  /// Whether operand `operand` is written to.
  bool writes(size_t operand) const { return rule->writes[places[operand].argument]; }
};

struct Event {
  const CallKind* kind = nullptr;
  struct Operand {
    StorageNode::Pointer node;
    int64_t offset = 0;
  };
  c10::SmallVector<Operand, 4> operands;              ///< as kind->places
  c10::SmallVector<c10::Scalar, 2> numbers;           ///< as kind->numbers
  c10::SmallVector<StorageNode::Pointer, 1> results;  ///< of the new results
  bool has_failed = false;                            ///< when it was to run
};

/// Runs the operator on what its operands hold now, and installs its results. Within NotedDispatch.
void run_eagerly(const Event& event);

}  // namespace janus::lazy
