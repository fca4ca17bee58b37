// The gradient of an opaque call (see ops/structure.cpp): autograd watches the call, or the call
// made again, and is asked for the gradients. Layers nest the latter for higher orders.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>

#include "execute/values/container.h"
#include "graph/op.h"
#include "ops/structure.h"
#include "python/object.h"
#include "torch/arguments.h"
#include "torch/opaque_backward.h"
#include "torch/overload.h"
#include "torch/results.h"
#include "torch/run_scope.h"
#include "torch/tensor.h"

namespace janus::torch {

using c10::IValue;
using execute::Operands;
using execute::Slot;
using Tensors = std::vector<at::Tensor>;  // undefined where an operand is no tensor

namespace {

/// An overload called through the dispatcher with autograd watching.
class WatchedCall {
 public:
  WatchedCall(const graph::Node& node, const execute::SymbolLookup& symbols)
      : overload_(find_overload(overload_name(node))),
        sources_(argument_sources(node, overload_.schema(), symbols)) {}

  /// What the call gives for tensors from `values` and numbers from the slots.
  std::vector<IValue> run(const Tensors& values, const Operands& operands) const {
    std::vector<IValue> stack;
    for (const ArgumentSource& source : sources_) {
      stack.push_back(argument(source, values, operands));
    }
    overload_.callBoxed(&stack);
    return stack;
  }

 private:
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
};

/// One for each result, undefined where it is no tensor; lists are spread.
Tensors tensors_of(const std::vector<IValue>& returned) {
  Tensors tensors;
  for (const IValue& value : returned) {
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorList()) tensors.push_back(tensor);
    } else {
      tensors.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
    }
  }
  return tensors;
}

IValue detached(const IValue& value) {
  if (value.isTensor() && value.toTensor().defined()) return value.toTensor().detach();
  if (!value.isTensorList()) return value;
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : value.toTensorList()) list.push_back(tensor.detach());
  return list;
}

/// As torch::autograd::grad(), also for who holds Python's lock, as runs do that read Python's
/// objects: nobody may change these meanwhile. Python's own engine wants the lock to be given back.
Tensors autograd_gradients(const Tensors& results, const Tensors& watched, const Tensors& seeds,
                           bool keep_graph, bool create_graph) {
  if (PyGILState_Check() == 0)
    return ::torch::autograd::grad(results, watched, seeds, keep_graph, create_graph,
                                   /*allow_unused=*/true);
  ::torch::autograd::edge_list from, to;
  for (const at::Tensor& result : results)
    from.push_back(::torch::autograd::impl::gradient_edge(result));
  for (const at::Tensor& tensor : watched)
    to.push_back(::torch::autograd::impl::gradient_edge(tensor));
  auto& engine = ::torch::autograd::Engine::get_default_engine();
  return engine.::torch::autograd::Engine::execute(from, seeds, keep_graph, create_graph,
                                                   /*accumulate_grad=*/false, to);
}

/// Gradients of `watched`, undefined where nothing leads there.
Tensors gradients_of(const Tensors& results, const Tensors& seeds, const Tensors& watched,
                     bool keep_graph, bool create_graph) {
  Tensors differentiated, starts, gradients(watched.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!seeds[i].defined() || !results[i].defined() || !results[i].requires_grad()) continue;
    differentiated.push_back(results[i]);
    starts.push_back(seeds[i]);
  }
  if (!differentiated.empty()) {
    gradients = autograd_gradients(differentiated, watched, starts, keep_graph, create_graph);
  }
  return gradients;
}

Tensors with_zeros(Tensors gradients, const Tensors& watched) {
  for (size_t i = 0; i < watched.size(); ++i)
    if (!gradients[i].defined()) gradients[i] = at::zeros_like(watched[i]);
  return gradients;
}

/// Each in memory of its own: whether a gradient is one of the operands may depend on numbers of
/// the run, and plans rely on what they saw.
void give(const Tensors& gradients, const Operands& operands) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    TORCH_CHECK(gradients[i].layout() == at::kStrided, "a gradient is sparse");
    const at::Tensor gradient = in_memory(gradients[i]);
    const bool is_shared = gradient.has_storage() && gradient.storage().use_count() > 1;
    operands.out(i) = slot_of(is_shared ? gradient.detach().clone() : gradient.detach());
  }
}

/// A call that keeps what autograd notes of it, as its last result.
class RecordedCall final : public execute::Operation {
 public:
  RecordedCall(const graph::Node& node, const execute::SymbolLookup& symbols)
      : call_(node, symbols), flags_(ops::recorded_operands(node.attributes)) {
    for (const graph::Value* output : node.outputs) types_.push_back(output->type);
    types_.pop_back();  // the record
  }

  void run(const Operands& operands) override {
    const RecordingScope recording;
    Tensors values(operands.inputs.size());
    std::vector<Slot> record;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!operands.in(i).is_tensor()) continue;
      // With a version counter of its own: that memory is written again in later runs.
      values[i] = tensor_of(operands.in(i)).variable_data();
      if (!flags_[i]) continue;
      values[i].requires_grad_();
      record.push_back(slot_of(values[i]));
    }
    const std::vector<IValue> returned = call_.run(values, operands);
    Results results(operands, types_);
    for (const IValue& value : returned) results.put(detached(value));
    results.check_complete();
    results.check_own_memory();
    for (at::Tensor& tensor : tensors_of(returned)) {
      record.push_back(tensor.defined() ? slot_of(std::move(tensor)) : Slot::none());
    }
    operands.out(types_.size()) = execute::make_frame(std::move(record));
  }

 private:
  WatchedCall call_;
  std::vector<bool> flags_;
  std::vector<graph::Type> types_;
};

/// The gradient by what the call has recorded.
class RecordedBackward final : public execute::Operation {
 public:
  explicit RecordedBackward(const graph::Node& node)
      : flags_(ops::recorded_operands(node.attributes)),
        results_(static_cast<size_t>(node.attributes.get<int64_t>("results"))) {}

  void run(const Operands& operands) override {
    const RecordingScope recording;
    const auto items = execute::frame_items(operands.in(operands.inputs.size() - 1));
    Tensors watched, results, seeds;
    const auto watched_count = static_cast<size_t>(std::count(flags_.begin(), flags_.end(), true));
    for (size_t i = 0; i < watched_count; ++i) watched.push_back(tensor_of(items[i]));
    for (size_t i = 0; i < results_; ++i) {
      results.push_back(optional_tensor(items[watched_count + i]));
      seeds.push_back(optional_tensor(operands.in(flags_.size() + i)));
    }
    const Tensors gradients = gradients_of(results, seeds, watched, /*keep_graph=*/true,
                                           /*create_graph=*/false);
    if (std::ranges::all_of(seeds, &at::Tensor::defined)) check_defined(gradients);
    give(with_zeros(gradients, watched), operands);
  }

 private:
  /// Numbers of the run may decide that there is none, as of a norm of order 0; that is not zeros.
  static void check_defined(const Tensors& gradients) {
    TORCH_CHECK(std::ranges::all_of(gradients, &at::Tensor::defined),
                "an operand has no gradient in this run");
  }

  static at::Tensor optional_tensor(const Slot& slot) {
    return slot.is_tensor() ? tensor_of(slot) : at::Tensor();
  }

  std::vector<bool> flags_;
  size_t results_;
};

/// The gradient by computing the call again, for layers of any number.
class RepeatedBackward final : public execute::Operation {
 public:
  RepeatedBackward(const graph::Node& node, const execute::SymbolLookup& symbols)
      : call_(node, symbols), layers_(ops::opaque_layers(node.attributes)) {
    TORCHJANUS_CHECK(!layers_.empty(), "opaque_backward: no layer");
  }

  void run(const Operands& operands) override {
    const RecordingScope recording;
    Tensors values(operands.inputs.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (operands.in(i).is_tensor()) values[i] = tensor_of(operands.in(i)).detach();
    }
    give(layer(layers_.size(), values, operands), operands);
  }

 private:
  /// Layer 0 is the call itself.
  Tensors layer(size_t number, const Tensors& values, const Operands& operands) {
    if (number == 0) return tensors_of(call_.run(values, operands));
    const std::vector<bool>& flags = layers_[number - 1];
    const auto border = values.begin() + static_cast<ptrdiff_t>(flags.size());
    Tensors inner(values.begin(), border), watched;
    for (size_t i = 0; i < flags.size(); ++i) {
      if (!flags[i]) continue;
      if (!inner[i].requires_grad()) inner[i] = inner[i].detach().requires_grad_();
      watched.push_back(inner[i]);
    }
    const Tensors results = layer(number - 1, inner, operands);
    const bool is_inner = number < layers_.size();
    return with_zeros(
        gradients_of(results, Tensors(border, values.end()), watched, is_inner, is_inner), watched);
  }

  WatchedCall call_;
  std::vector<std::vector<bool>> layers_;
};

}  // namespace

bool records(const graph::Node& node) { return !ops::recorded_operands(node.attributes).empty(); }

std::unique_ptr<execute::Operation> bind_recorded_call(const graph::Node& node,
                                                       const execute::SymbolLookup& symbols) {
  return std::make_unique<RecordedCall>(node, symbols);
}

std::unique_ptr<execute::Operation> bind_opaque_backward(const graph::Node& node,
                                                         const execute::SymbolLookup& symbols) {
  if (records(node)) return std::make_unique<RecordedBackward>(node);
  return std::make_unique<RepeatedBackward>(node, symbols);
}

}  // namespace janus::torch
