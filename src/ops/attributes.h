// Reading the attributes and the constant operands of a node in the shapes that rules want them.
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

/// An integer attribute that has to be a number; TypeError if it is an expression.
int64_t integer_attribute(const graph::Attributes& attributes, std::string_view name);

bool flag_attribute(const graph::Attributes& attributes, std::string_view name);
std::string text_attribute(const graph::Attributes& attributes, std::string_view name);

/// A dtype attribute; nullopt for None.
std::optional<graph::DType> dtype_attribute(const graph::Attributes& attributes,
                                            std::string_view name = "dtype");

/// A list of integers. A single integer stands for one entry.
graph::Shape list_attribute(const graph::Attributes& attributes, std::string_view name);

/// A list of integers of which one may stand for `count` equal ones; empty stays empty.
graph::Shape list_attribute(const graph::Attributes& attributes, std::string_view name,
                            size_t count);

/// Which of the results a backward operator has to compute.
std::vector<bool> mask_attribute(const graph::Attributes& attributes, std::string_view name);

/// The attribute value for a dimension expression: a number where it is one.
graph::AttributeValue to_attribute(const graph::Dim& dim);

/// Whether an operand is the constant `number`, whatever its type.
bool is_constant(const graph::Value* value, double number);

}  // namespace janus::ops
