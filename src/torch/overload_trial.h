// What an overload gives for such arguments, found by running it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <map>
#include <vector>

#include "execute/library/library.h"
#include "frontend/core/torch_services.h"
#include "torch/schema_binding.h"
#include "torch/shape_fit.h"

namespace janus::torch {

/// Runs the overload on tensors without data, once for each of several sets of values of the
/// dimension symbols.
class OverloadTrial {
 public:
  /// Both have to outlive this.
  OverloadTrial(const c10::OperatorHandle& overload, const SchemaBinding& binding)
      : overload_(overload), binding_(binding) {}

  struct Outcome {
    std::vector<at::Tensor> tensors;
    std::vector<graph::Type> numbers;  ///< of results that are no tensors
    /// by tensor: the argument that it is, or null
    std::vector<const frontend::OperatorArgument*> same_as;
    bool list = false;
    bool tuple = false;
  };

  /// `on_meta`: the tensors have no data; else they are zeros. Raises what the overload raises.
  Outcome run(const SymbolChoice& symbols, bool on_meta);

  /// What ints that vary are, and floats about; if it is 0, both exactly, as are dimensions.
  void use_number(int64_t number) { number_ = number; }

  /// The tensor made for an argument in the last run.
  at::Tensor tensor_for(const frontend::OperatorArgument* argument) const;

 private:
  bool is_factory() const;
  const frontend::OperatorArgument* same_as(const at::Tensor& tensor) const;
  at::Tensor make(const frontend::OperatorArgument& argument);
  execute::Slot example(const graph::Type& type) const;
  c10::IValue value_of(const frontend::OperatorArgument& argument, const c10::Argument& parameter);
  at::Tensor tensor_value(const frontend::OperatorArgument& argument);

  const c10::OperatorHandle& overload_;
  const SchemaBinding& binding_;
  const SymbolChoice* symbols_ = nullptr;
  c10::Device device_{at::kMeta};
  int64_t number_ = 1;
  std::map<const frontend::OperatorArgument*, at::Tensor> made_;
};

}  // namespace janus::torch
