// Type promotion: the dtype in which an operator computes, by torch's rules. Python numbers
// (operands of type i64, f64, bool) are torch's "wrapped numbers": tensors with dimensions come
// first, tensors of rank 0 second, numbers last.
#pragma once

#include <span>

#include "graph/graph.h"
#include "graph/type.h"

namespace janus::ops {

/// torch's default dtype as the current graph assumes it: that of Python floats and creation
/// operators. f32 outside of a DefaultDtype.
graph::DType default_dtype();

/// Sets this thread's default dtype while a graph is generated, optimised and compiled.
class DefaultDtype {
 public:
  explicit DefaultDtype(graph::DType dtype);
  ~DefaultDtype();
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;

 private:
  graph::DType before_;
};

/// The smallest dtype that holds both.
graph::DType promote(graph::DType a, graph::DType b);

/// The dtype that a Python number has as a tensor.
graph::DType dtype_of_number(const graph::Type& number);

/// torch.result_type of tensors and numbers; operands of type none are left out.
graph::DType result_type(std::span<const graph::Type> operands);

/// `dtype` if it is floating or complex, else the default dtype: what `exp` or `/` gives.
graph::DType floating_result(graph::DType dtype);

/// The dtype in which an elementwise node computes (f16 and bf16 stay: the emitter widens them):
/// its result's, or for results of type b1 what its operands promote to.
graph::DType compute_dtype(const graph::Node& elementwise);

/// Whether a tensor of a real dtype can hold the number, up to rounding. Eager raises if it can't.
bool can_hold(graph::DType dtype, double number);

/// Whether the operator's scalar program does all that eager does for these operand types. That of
/// integer division does not: eager raises on a zero divisor.
bool has_scalar_program(const graph::Node& node);

}  // namespace janus::ops
