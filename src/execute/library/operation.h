// One operator with its attributes, bound once and called many times: what Library::bind gives.
//
// An operation may do more than compute its results: write into tensors that it is given, or in
// place of its first input, tell before the call whether it will fail, and run on another thread.
// The planner asks what of this an operation can do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "execute/values/operands.h"

namespace janus::execute {

/// Gives the value of a dimension symbol.
using SymbolLookup = std::function<std::optional<int64_t>(const std::string&)>;

/// One operator call with its attributes; bound once, called many times, by one thread at a time.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Computes the outputs into tensors of its own making; they may share memory with inputs.
  virtual void run(const Operands& operands) = 0;
  /// Whether run_into exists and avoids the allocation of results.
  virtual bool can_run_into() const { return false; }
  /// Computes into the tensors that are the outputs already; they have the sizes and strides that
  /// `run` would have given them, and share no memory with inputs.
  virtual void run_into(const Operands& operands);
  /// Whether run_into may be given input 0 as output 0, the tensor or its memory: it is changed
  /// then.
  virtual bool can_run_in_place() const { return false; }
  /// The inputs, beside the first, by which alone `look` tells whether the call will fail; none
  /// where it can't tell.
  virtual std::span<const size_t> looked_at() const { return {}; }
  /// Throws what the call would throw.
  virtual void look(const Operands& operands);
  /// Whether run_into may be called on another thread while other such operations run.
  virtual bool can_run_beside() const { return false; }
};

struct OperationCall {
  Operation* operation = nullptr;
  Operands operands;
};

/// Where a result that an operator makes itself is to lie: `memory` of `bytes`, for the allocation
/// of that size which is number `ordinal` among those of the call.
struct Placement {
  void* memory = nullptr;
  int64_t bytes = 0;
  int64_t ordinal = 0;
  size_t output = 0;  ///< index among the call's outputs
};

}  // namespace janus::execute
