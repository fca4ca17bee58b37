// Binds the arguments of a call to one overload of an operator: Python's values become operands and
// attributes, as the signature of the operator says.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "frontend/core/interpreter.h"
#include "graph/op.h"

namespace janus::frontend {

using graph::AttributeValue;
using graph::Parameter;

/// One attempt to fit a call to one overload. `takes_elements`: a tensor without dimensions may
/// stand for its element where a number is asked for.
class OperatorCall {
 public:
  OperatorCall(Interpreter& interpreter, const graph::OpDef& op, const CallArguments& arguments,
               PyObject* callable, bool takes_elements)
      : interpreter_(interpreter),
        signature_(op.signature()),
        arguments_(arguments),
        function_(callable != nullptr && PyFunction_Check(callable) ? callable : nullptr),
        takes_elements_(takes_elements) {}

  /// False: the arguments do not fit.
  bool bind();
  std::vector<graph::Value*> operands;
  graph::Attributes attributes;
  std::vector<std::shared_ptr<Tensor>> tensors;  // that are operands
  std::vector<std::shared_ptr<Tensor>> values;   // by operand; null: no tensor
  bool requires_grad = false;                    // `requires_grad=True` of a factory function
  bool in_place_flag = false;                    // `inplace=True`
  bool wants_order = false;                      // `memory_format=torch.contiguous_format`

 private:
  size_t positional_parameters() const;

  /// `view(2, 3)`: a list of ints given as separate arguments, first (after self) and last.
  bool takes_separate_ints(size_t index) const;
  bool assign_positional();

  /// Whether the callable is written in Python and takes such a keyword. Bindings were asked
  /// before.
  bool function_takes(std::string_view keyword) const;

  /// nn.functional's `inplace` flag may stand last: relu(x, True).
  bool accepts_extra_positional(size_t index);
  bool assign_keywords();
  bool accept_extra_keyword(const std::string& keyword, const Value& value);

  /// Settings of memory and place that the graph has only in their default.
  bool is_default_setting(const std::string& name, const Value& value);
  bool convert_all();
  bool use_default(const Parameter& parameter);
  bool add_tensor(const Value& value);
  bool add_operand(const Parameter& parameter, const Value& value);
  bool add_attribute(const Parameter& parameter, const Value& value);
  std::optional<AttributeValue> attribute_value(const Parameter& parameter, const Value& value);

  /// As a dimension, also where only the run knows the size of what is made.
  std::optional<graph::Dim> as_size(const Parameter& parameter, const Value& value);
  std::optional<AttributeValue> integer_list(const Parameter& parameter, const Value& value);
  std::optional<AttributeValue> constant_list(const Parameter& parameter, const Value& value);

  Interpreter& interpreter_;
  const graph::Signature& signature_;
  const CallArguments& arguments_;
  PyObject* function_;  ///< the callable if it is written in Python, else null
  bool takes_elements_;
  std::vector<Value> values_;
};

}  // namespace janus::frontend
