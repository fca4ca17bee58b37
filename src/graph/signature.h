// The signature of an operator, written as in torch's native operator schemas:
//
//   (Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
//
// Which parameters are operands (inputs of the node, in order) and which are attributes follows
// from their type: tensors (`Tensor`, `Tensor?`, `Tensor[]`) and numbers that may vary from call to
// call (`Scalar`, `Scalar?`, `float`, `float?`) are operands; sizes, flags, strings and dtypes are
// attributes. A missing optional operand is a `constant` of type none. `Tensor` operands also
// accept Python numbers where the operator's `infer` does (torch's wrapped numbers). At most one
// parameter is a Tensor[]; its length is what the others leave over. Layout, device, memory_format,
// generator and pin_memory parameters are `ignored`: they are bound, but only to their default.
// An attribute `int` may also hold a dimension expression, and `Scalar[]` is a list of doubles.
//
// The empty schema is `free_form`: the operator's own `infer` says what it accepts (control flow,
// opaque operators, constants).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attribute.h"

namespace janus::graph {

struct Parameter {
  enum class Kind {
    tensor,
    tensor_list,
    scalar,
    floating,  // operands
    integer,
    integer_list,
    boolean,
    boolean_list,  // attributes from here
    floating_list,
    string,
    dtype,
    ignored,
  };
  std::string name;
  Kind kind = Kind::tensor;
  bool optional = false;                        ///< `?`: accepts None
  bool keyword_only = false;                    ///< after `*`
  bool element_optional = false;                ///< `Tensor?[]`: elements may be None
  int list_size = 0;                            ///< `int[2]`: a single int stands for two
  std::optional<AttributeValue> default_value;  ///< absent: required

  bool is_operand() const { return kind <= Kind::floating; }
};

struct Signature {
  std::vector<Parameter> parameters;
  int result_count = 1;  ///< -1: varies (a list)
  bool free_form = false;

  const Parameter* find(std::string_view name) const;
  /// Operands and attributes, each in the order of the schema.
  std::vector<const Parameter*> operands() const;
  std::vector<const Parameter*> attributes() const;
};

/// Parses a schema; InternalError with position and text if it is malformed.
Signature parse_signature(std::string_view schema);

}  // namespace janus::graph
