// Which argument of a call belongs to which parameter of an overload's schema.
#pragma once

#include <ATen/core/function_schema.h>

#include <span>
#include <vector>

#include "frontend/core/torch_services.h"

namespace janus::torch {

/// One attempt to bind the arguments of a call to a schema.
class SchemaBinding {
 public:
  /// `wrap`: numbers may stand for tensors. Both others have to outlive this.
  SchemaBinding(const c10::FunctionSchema& schema,
                std::span<const frontend::OperatorArgument> arguments, bool wrap);
  SchemaBinding(const SchemaBinding&) = delete;
  SchemaBinding& operator=(const SchemaBinding&) = delete;

  explicit operator bool() const { return ok_; }
  /// The argument of the call for each of the schema's; null: its default.
  const std::vector<const frontend::OperatorArgument*>& assigned() const { return assigned_; }

 private:
  bool assign(std::span<const frontend::OperatorArgument> arguments);
  bool assign_keyword(const frontend::OperatorArgument& argument);
  /// Sizes may be given one by one if they are all positional arguments that follow the tensor.
  bool gather(std::span<const frontend::OperatorArgument> arguments, size_t first,
              size_t parameter);
  bool fits(const frontend::OperatorArgument& argument, const c10::Argument& parameter) const;
  bool fits(const frontend::OperatorArgument& argument, const c10::TypePtr& type, bool sized) const;
  bool constant_fits(PyObject* object, const c10::TypePtr& type) const;
  bool list_fits(const frontend::OperatorArgument& argument, const c10::TypePtr& type,
                 bool sized) const;

  const c10::FunctionSchema& schema_;
  bool wrap_;
  bool ok_ = false;
  std::vector<const frontend::OperatorArgument*> assigned_;
  frontend::OperatorArgument gathered_;
};

/// A parameter's type, whether or not None may stand in its place.
c10::TypePtr without_optional(c10::TypePtr type);

bool is_none(const frontend::OperatorArgument& argument);

}  // namespace janus::torch
