// Calls of any ATen overload through the dispatcher, arguments on a stack.
#include <ATen/core/Reduction.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <set>

#include "graph/op.h"
#include "ops/list.h"
#include "ops/structure.h"
#include "torch/arguments.h"
#include "torch/boxed_operation.h"
#include "torch/overload.h"
#include "torch/results.h"
#include "torch/run_warnings.h"
#include "torch/tensor.h"

namespace janus::torch {

using c10::IValue;
using execute::Operands;
using execute::Slot;
using graph::Type;

namespace {

class BoxedOperation final : public execute::Operation {
 public:
  BoxedOperation(const graph::Node& node, const execute::SymbolLookup& symbols)
      : overload_(find_overload(overload_name(node))),
        sources_(argument_sources(node, overload_.schema(), symbols)),
        into_(find_out_overload(overload_)),
        owns_results_(ops::owns_results(node)),
        span_(node.span) {
    for (const graph::Value* output : node.outputs) types_.push_back(output->type);
    const bool all = std::all_of(types_.begin(), types_.end(),
                                 [](const Type& type) { return type.is_tensor(); });
    // The form that writes into given tensors is wrong for inputs that aren't contiguous.
    const bool is_right = overload_.schema().name() != "aten::_native_batch_norm_legit";
    if (!all || types_.size() != overload_.schema().returns().size() || works_in_result() ||
        !is_right) {
      into_.reset();
    }
  }

  void run(const Operands& operands) override {
    const WarningPlace place(span_);
    push_arguments(operands);
    overload_.callBoxed(&stack_);
    Results results(operands, types_);
    for (IValue& value : stack_) results.put(std::move(value));
    results.check_complete();
    if (owns_results_) results.check_own_memory();
    stack_.clear();
  }

  bool can_run_into() const override { return into_.has_value(); }

  void run_into(const Operands& operands) override {
    const WarningPlace place(span_);
    push_arguments(operands);
    for (size_t i = 0; i < types_.size(); ++i) stack_.emplace_back(tensor_of(operands.out(i)));
    into_->callBoxed(&stack_);
    for (size_t i = 0; i < types_.size(); ++i) {
      const bool same = i < stack_.size() && stack_[i].isTensor() &&
                        stack_[i].toTensor().unsafeGetTensorImpl() == impl_of(operands.out(i));
      TORCH_CHECK(same, overload_.schema().name(), " gave another tensor than it was given");
    }
    stack_.clear();
  }

 private:
  /// Whether the form that writes into given tensors uses them for results before they are reduced,
  /// which are larger.
  bool works_in_result() const {
    static const std::set<std::string> reduces_elsewhere = {"aten::nll_loss_forward",
                                                            "aten::nll_loss2d_forward"};
    const c10::FunctionSchema& schema = overload_.schema();
    const auto index = schema.argumentIndexWithName("reduction");
    if (!index || schema.name().ends_with("_backward")) return false;
    const ArgumentSource& reduction = sources_.at(static_cast<size_t>(*index));
    const bool none = reduction.value.isInt() && reduction.value.toInt() == at::Reduction::None;
    return !none && !reduces_elsewhere.contains(schema.name());
  }

  void push_arguments(const Operands& operands) {
    stack_.clear();
    for (const ArgumentSource& source : sources_) {
      stack_.push_back(operand_argument(source, operands));
    }
  }

  c10::OperatorHandle overload_;
  std::vector<ArgumentSource> sources_;
  std::optional<c10::OperatorHandle> into_;
  bool owns_results_;
  graph::SourceSpan span_;
  std::vector<Type> types_;
  std::vector<IValue> stack_;
};

}  // namespace

std::unique_ptr<execute::Operation> bind_boxed(const graph::Node& node,
                                               const execute::SymbolLookup& symbols) {
  return std::make_unique<BoxedOperation>(node, symbols);
}

}  // namespace janus::torch
