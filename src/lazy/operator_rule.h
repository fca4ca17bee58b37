// How the interception treats an overload of ATen's.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/op.h"

namespace janus::lazy {

enum class Treatment : uint8_t {
  run,        ///< at once, when what it reads has run
  decompose,  ///< it is made of other operators, which are intercepted
  view,       ///< at once: it looks at sizes and strides only
  note,       ///< later, once its results' sizes are known
};

/// An operand of indices that has to lie within a dimension of the operator's, or else it raises.
struct IndexRule {
  size_t indices = 0;             ///< the argument
  size_t bounded_by = 0;          ///< the argument whose size or value is the bound
  int dimension = 0;              ///< of a tensor
  std::optional<size_t> ignored;  ///< an argument: the index that need not lie there
};

struct OperatorRule {
  c10::OperatorHandle overload;
  Treatment treatment = Treatment::run;
  bool is_of_torch = false;  ///< one of ATen's
  std::vector<bool> writes;  ///< for each argument: it is a tensor that is written to
  std::vector<bool> varies;  ///< for each argument: a Python number that may vary from call to call
  /// Whether no number makes it raise on floats that the dtype can represent.
  bool takes_any_number = false;
  std::optional<size_t> dtype;  ///< the argument that says the dtype of the result
  /// The argument that is a tensor of one element, which is converted to the dtype of argument 0:
  /// where that can't represent it, the operator raises.
  std::optional<size_t> converted;
  /// For each result: the argument that it is, of operators that write to one.
  std::vector<std::optional<size_t>> result_is;
  /// The operator of graphs that computes the same; of operators in place, their values.
  const graph::OpDef* native = nullptr;
  /// The same operator out of place, of those in place.
  std::optional<c10::OperatorHandle> functional;
  /// An argument that is written to although the schema doesn't say so, as `native` gives it.
  struct UnsaidWrite {
    size_t argument = 0, result_of_native = 0;
  };
  std::vector<UnsaidWrite> unsaid;
  std::optional<IndexRule> indices;
  bool reads_nothing = false;      ///< of its operands, whenever it runs
  bool makes_indices = false;      ///< a pool: of the elements that it picks
  bool needs_own_indices = false;  ///< the backward pass of one: it raises for other indices

  bool is_in_place() const;
};

/// Made at first use, kept for good. Thread-safe.
const OperatorRule& rule_of(const c10::OperatorHandle& overload);

/// Whether the operator can't raise for what its operands hold. `integers_in`, `integers_out`:
/// whether it takes or gives tensors of integers.
bool never_raises(const OperatorRule& rule, bool integers_in, bool integers_out);

}  // namespace janus::lazy
