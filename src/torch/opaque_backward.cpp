// The gradient of an opaque call: the call is made again on operands that autograd watches, and
// autograd is asked for the gradients. Layers (see ops/structure.cpp) nest that for higher orders.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "graph/op.h"
#include "ops/structure.h"
#include "torch/arguments.h"
#include "torch/operators.h"
#include "torch/overload.h"
#include "torch/run_scope.h"
#include "torch/tensor.h"

namespace janus::torch {

using c10::IValue;
using execute::Operands;
using execute::Slot;
using Tensors = std::vector<at::Tensor>;  // undefined where an operand is no tensor

namespace {

class OpaqueBackward final : public execute::Operation {
 public:
  OpaqueBackward(const graph::Node& node, const execute::SymbolLookup& symbols)
      : overload_(find_overload(overload_name(node))),
        sources_(argument_sources(node, overload_.schema(), symbols)),
        layers_(ops::opaque_layers(node.attributes)) {
    TORCHJANUS_CHECK(!layers_.empty(), "opaque_backward: no layer");
  }

  void run(const Operands& operands) override {
    const RecordingScope recording;
    Tensors values(operands.inputs.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (operands.in(i).is_tensor()) values[i] = tensor_of(operands.in(i)).detach();
    }
    const Tensors gradients = layer(layers_.size(), values, operands);
    for (size_t i = 0; i < gradients.size(); ++i) {
      operands.out(i) = slot_of(gradients[i].detach());
    }
  }

 private:
  /// Layer 0 is the call itself.
  Tensors layer(size_t number, const Tensors& values, const Operands& operands) {
    if (number == 0) return call(values, operands);
    const std::vector<bool>& flags = layers_[number - 1];
    Tensors inner(values.begin(), values.begin() + static_cast<ptrdiff_t>(flags.size()));
    Tensors watched;
    for (size_t i = 0; i < flags.size(); ++i) {
      if (!flags[i]) continue;
      if (!inner[i].requires_grad()) inner[i] = inner[i].detach().requires_grad_();
      watched.push_back(inner[i]);
    }
    Tensors results = layer(number - 1, inner, operands);
    Tensors differentiated, seeds;
    for (size_t i = 0; i < results.size(); ++i) {
      const at::Tensor& seed = values.at(flags.size() + i);
      if (!seed.defined() || !results[i].defined() || !results[i].requires_grad()) continue;
      differentiated.push_back(results[i]);
      seeds.push_back(seed);
    }
    return gradients(differentiated, seeds, watched, number < layers_.size());
  }

  static Tensors gradients(const Tensors& results, const Tensors& seeds, const Tensors& watched,
                           bool create_graph) {
    Tensors gradients(watched.size());
    if (!results.empty()) {
      gradients = ::torch::autograd::grad(results, watched, seeds, create_graph, create_graph,
                                          /*allow_unused=*/true);
    }
    for (size_t i = 0; i < watched.size(); ++i) {
      if (!gradients[i].defined()) gradients[i] = at::zeros_like(watched[i]);
    }
    return gradients;
  }

  /// The call, with tensors from `values` and numbers from the slots.
  Tensors call(const Tensors& values, const Operands& operands) {
    std::vector<IValue> stack;
    for (const ArgumentSource& source : sources_) {
      stack.push_back(argument(source, values, operands));
    }
    overload_.callBoxed(&stack);
    Tensors results;
    for (const IValue& value : stack) {
      if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorList()) results.push_back(tensor);
      } else if (value.isTensor()) {
        results.push_back(value.toTensor());
      } else {
        results.emplace_back();
      }
    }
    return results;
  }

  static IValue argument(const ArgumentSource& source, const Tensors& values,
                         const Operands& operands) {
    const auto watched = [&](size_t i) -> const at::Tensor& { return values[source.first + i]; };
    switch (source.kind) {
      case ArgumentSource::Kind::tensor:
        if (!watched(0).defined()) break;
        return watched(0);
      case ArgumentSource::Kind::tensor_list: {
        c10::List<at::Tensor> list;
        for (size_t i = 0; i < source.count; ++i) list.push_back(watched(i));
        return list;
      }
      case ArgumentSource::Kind::optional_tensor_list: {
        c10::List<std::optional<at::Tensor>> list;
        for (size_t i = 0; i < source.count; ++i) {
          list.push_back(watched(i).defined() ? std::optional(watched(i)) : std::nullopt);
        }
        return list;
      }
      default:
        break;
    }
    return operand_argument(source, operands);
  }

  c10::OperatorHandle overload_;
  std::vector<ArgumentSource> sources_;
  std::vector<std::vector<bool>> layers_;
};

}  // namespace

std::unique_ptr<execute::Operation> bind_opaque_backward(const graph::Node& node,
                                                         const execute::SymbolLookup& symbols) {
  return std::make_unique<OpaqueBackward>(node, symbols);
}

}  // namespace janus::torch
