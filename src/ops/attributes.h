// Access to the attributes and constant operands of a node, in the forms that rules need.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/constant.h"
#include "graph/graph.h"
#include "graph/op.h"

namespace janus::ops {

/// An integer attribute that may be an expression of named dimensions.
graph::Dim dim_attribute(const graph::Attributes& attributes, std::string_view name);

/// An integer attribute that must be a number; TypeError if it is an expression.
int64_t integer_attribute(const graph::Attributes& attributes, std::string_view name);

bool flag_attribute(const graph::Attributes& attributes, std::string_view name);
std::string text_attribute(const graph::Attributes& attributes, std::string_view name);

/// A dtype attribute; nullopt for None.
std::optional<graph::DType> dtype_attribute(const graph::Attributes& attributes,
                                            std::string_view name = "dtype");

/// A list of integers. A single integer stands for one entry.
graph::Shape list_attribute(const graph::Attributes& attributes, std::string_view name);

/// A list of `count` integers, where a single one stands for all; an empty list stays empty.
graph::Shape list_attribute(const graph::Attributes& attributes, std::string_view name,
                            size_t count);

/// Which results a backward operator must compute.
std::vector<bool> mask_attribute(const graph::Attributes& attributes, std::string_view name);

/// The attribute value for a dimension expression: a number if it is constant.
graph::AttributeValue to_attribute(const graph::Dim& dim);

/// Whether an operand is the constant `number`, whatever its type.
bool is_constant(const graph::Value* value, double number);

}  // namespace janus::ops
