// See collectives.h.
//
// The arithmetic is the reducer's: gradients are multiplied by 1 / world size while they are copied
// into the flat tensor of their bucket, and the group adds that up in place. Errors are those of
// the group, as Python exceptions: the run can't be given up, so they leave the converted function.
#include "torch/collectives.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul_ops.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/check.h"
#include "ops/collectives.h"
#include "ops/list.h"
#include "python/lock.h"
#include "torch/tensor.h"

namespace janus::torch {

using execute::Operands;

struct StartedCollective {
  const void* memory;  ///< that the sums are written to
  c10::intrusive_ptr<c10::ivalue::Future> future;
};

namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

thread_local std::vector<StartedCollective> started;

/// What a collective throws becomes the Python exception that eager execution raises.
template <class Body>
void communicate(const Body& body) {
  try {
    const python::WithoutLock unlocked(PyGILState_Check() != 0);
    body();
  } catch (const std::exception& error) {
    const python::WithLock locked;
    ::torch::translate_exception_to_python(std::current_exception());
    throw std::runtime_error(error.what());
  }
}

/// The same memory, which nobody counts: processes may hold on to the tensor a little longer than
/// the run, which looks at who else refers to its own.
at::Tensor same_memory(const at::Tensor& tensor) {
  return at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(),
                       tensor.options());
}

class AllReduceStart final : public execute::Operation {
 public:
  explicit AllReduceStart(const graph::Node& node)
      : group_(node.attributes.get<std::string>("group")) {}
  bool can_run_into() const override { return true; }

  void run(const Operands& operands) override {
    int64_t elements = 0;
    for (size_t i = 0; i < operands.inputs.size(); ++i)
      elements += Borrowed(operands.in(i))->numel();
    Borrowed first(operands.in(0));
    operands.out(0) = slot_of(at::empty({elements}, first->options()));
    run_into(operands);
  }

  void run_into(const Operands& operands) override {
    const Group group = c10d::resolve_process_group(group_);
    const at::Tensor factor = at::native::wrapped_scalar_tensor(1.0 / group->getSize());
    Borrowed out(operands.out(0));
    int64_t begin = 0;
    for (size_t i = 0; i < operands.inputs.size(); ++i) {
      Borrowed gradient(operands.in(i));
      at::Tensor part = out->narrow(0, begin, gradient->numel()).view(gradient->sizes());
      at::_ops::mul_out::call(*gradient, factor, part);
      begin += gradient->numel();
    }
    communicate([&] {
      std::vector<at::Tensor> tensors{same_memory(*out)};
      started.push_back({out->const_data_ptr(), group->allreduce(tensors)->getFuture()});
    });
  }

 private:
  std::string group_;
};

class AllReduceWait final : public execute::Operation {
 public:
  explicit AllReduceWait(const graph::Node& node) {
    for (const graph::Value* output : node.outputs) {
      sizes_.emplace_back();
      for (const graph::Dim& dim : output->type.shape) sizes_.back().push_back(dim.value());
    }
  }
  bool can_run_into() const override { return true; }

  void run(const Operands& operands) override {
    Borrowed sums(operands.in(0));
    for (size_t i = 0; i < sizes_.size(); ++i)
      operands.out(i) = slot_of(at::empty(sizes_[i], sums->options()));
    run_into(operands);
  }

  void run_into(const Operands& operands) override {
    Borrowed sums(operands.in(0));
    wait_for(sums->const_data_ptr());
    int64_t begin = 0;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      Borrowed out(operands.out(i));
      out->copy_(sums->narrow(0, begin, out->numel()).view(sizes_[i]));
      begin += out->numel();
    }
  }

 private:
  static void wait_for(const void* memory) {
    const auto found = std::ranges::find(started, memory, &StartedCollective::memory);
    TORCHJANUS_CHECK(found != started.end(), "all_reduce_wait: nothing was started");
    const auto future = std::move(found->future);
    started.erase(found);
    communicate([&] { future->waitAndThrow(); });
  }

  std::vector<std::vector<int64_t>> sizes_;
};

class BroadcastBuffers final : public execute::Operation {
 public:
  explicit BroadcastBuffers(const graph::Node& node)
      : group_(node.attributes.get<std::string>("group")),
        bytes_(static_cast<size_t>(node.attributes.get<int64_t>("bytes"))) {}
  bool can_run_into() const override { return true; }

  void run(const Operands& operands) override {
    for (size_t i = 0; i < operands.inputs.size(); ++i)
      operands.out(i) = slot_of(at::empty_like(*Borrowed(operands.in(i))));
    run_into(operands);
  }

  void run_into(const Operands& operands) override {
    std::vector<at::Tensor> buffers;
    for (size_t i = 0; i < operands.inputs.size(); ++i) {
      Borrowed buffer(operands.in(i)), out(operands.out(i));
      out->copy_(*buffer);
      buffers.push_back(same_memory(*out));
    }
    communicate([&] {
      c10d::broadcast_coalesced(c10d::resolve_process_group(group_), buffers, bytes_, 0);
    });
  }

 private:
  std::string group_;
  size_t bytes_;
};

}  // namespace

std::unique_ptr<execute::Operation> bind_collective(const graph::Node& node) {
  if (node.op == &op::all_reduce_start) return std::make_unique<AllReduceStart>(node);
  if (node.op == &op::all_reduce_wait) return std::make_unique<AllReduceWait>(node);
  if (node.op == &op::broadcast_buffers) return std::make_unique<BroadcastBuffers>(node);
  return nullptr;
}

CollectivesScope::CollectivesScope() : outer_(std::exchange(started, {})) {}

CollectivesScope::~CollectivesScope() {
  if (!started.empty()) {
    const python::WithoutLock unlocked(PyGILState_Check() != 0);
    for (const StartedCollective& each : started) each.future->wait();
  }
  started = std::move(outer_);
}

}  // namespace janus::torch
