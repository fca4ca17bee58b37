// From a graph node to the arguments of an ATen overload: which are operands, which are constants.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "execute/library/library.h"
#include "graph/graph.h"

namespace janus::torch {

/// Where one argument of the overload comes from.
struct ArgumentSource {
  enum class Kind : uint8_t {
    constant,     ///< `value`
    tensor,       ///< operand `first`: a tensor, or a number that becomes a wrapped one, or none
    number,       ///< operand `first`: a number, or none
    tensor_list,  ///< operands `first` to `first + count`
    optional_tensor_list,
    number_list
  };
  Kind kind = Kind::constant;
  c10::IValue value;
  size_t first = 0;
  size_t count = 0;
  /// numbers: what the schema wants
  enum class Number : uint8_t { scalar, floating, integer, boolean } number = Number::scalar;
};

/// The node's arguments in the schema's order.
std::vector<ArgumentSource> argument_sources(const graph::Node& node,
                                             const c10::FunctionSchema& schema,
                                             const execute::SymbolLookup& symbols);

/// An attribute's value as the schema's argument wants it.
c10::IValue constant_argument(const graph::AttributeValue& value, const c10::Argument& argument,
                              const execute::SymbolLookup& symbols);

/// A number in a slot as an IValue / as a zero-dimensional tensor that does not take part in type
/// promotion.
c10::IValue number_argument(const execute::Slot& slot, ArgumentSource::Number wanted);
at::Tensor wrapped_number(const execute::Slot& slot);

/// The argument made of its operands.
c10::IValue operand_argument(const ArgumentSource& source, const execute::Operands& operands);

}  // namespace janus::torch
