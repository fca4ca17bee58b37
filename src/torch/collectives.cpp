// See collectives.h.
//
// The arithmetic of buckets is the reducer's: gradients are multiplied by 1 / world size while they
// are copied into the flat tensor of their bucket, and the group adds that up in place. Errors are
// those of the group, as Python exceptions: the run can't be given up, so they leave the converted
// function.
#include "torch/collectives.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul_ops.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/steady_time.h"
#include "base/timeline.h"
#include "ops/collectives.h"
#include "ops/list.h"
#include "python/lock.h"
#include "torch/tensor.h"
#include "torch/version.h"

namespace janus::torch {

using execute::Operands;

struct StartedCollective {
  std::string_view name;
  double begun;        ///< if a timeline is kept
  const void* memory;  ///< that is written to
  int64_t elements;    ///< of it: a tensor without any may lie where another one begins
  std::function<void()> wait;
  at::Tensor sent;  ///< what the group reads until then, if that is other memory
};

namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

thread_local std::vector<StartedCollective> started;

/// The group that had the name when the operation was made, as long as it is there. After
/// destroy_process_group() names are given again, while the program may keep the old group.
class NamedGroup {
 public:
  explicit NamedGroup(const graph::Node& node)
      : name_(node.attributes.get<std::string>("group")), group_(found(name_)) {}

  Group get() const {
    const Group group = group_.lock();
    return group ? group : c10d::resolve_process_group(name_);
  }

 private:
  static c10::weak_intrusive_ptr<c10d::ProcessGroup> found(const std::string& name) try {
    return c10::weak_intrusive_ptr<c10d::ProcessGroup>(c10d::resolve_process_group(name));
  } catch (const c10::Error&) {  // the run will say so
    return c10::weak_intrusive_ptr<c10d::ProcessGroup>(Group());
  }

  std::string name_;
  c10::weak_intrusive_ptr<c10d::ProcessGroup> group_;
};

/// `out`: what is written to.
void note_started(const graph::OpDef& op, const at::Tensor& out, std::function<void()> wait,
                  at::Tensor sent = {}) {
  const double begun = Timeline::is_kept() ? steady_seconds() : 0;
  started.push_back(
      {op.name, begun, out.const_data_ptr(), out.numel(), std::move(wait), std::move(sent)});
}

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

std::vector<int64_t> sizes_of(const graph::Type& type, const execute::SymbolLookup& symbols) {
  std::vector<int64_t> sizes;
  for (const graph::Dim& dim : type.shape) sizes.push_back(dim.evaluate(symbols).value());
  return sizes;
}

/// The run has failed already.
void wait_silently(const StartedCollective& collective) noexcept {
  try {
    collective.wait();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

class AllReduceBucket final : public execute::Operation {
 public:
  explicit AllReduceBucket(const graph::Node& node) : group_(node) {}
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
    const Group group = group_.get();
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
      const auto future = group->allreduce(tensors)->getFuture();
      note_started(op::all_reduce_bucket, *out, [future] { future->waitAndThrow(); });
    });
  }

 private:
  NamedGroup group_;
};

class CollectiveWait final : public execute::Operation {
 public:
  CollectiveWait(const graph::Node& node, const execute::SymbolLookup& symbols) {
    for (const graph::Value* output : node.outputs)
      sizes_.push_back(sizes_of(output->type, symbols));
  }
  bool can_run_into() const override { return true; }

  void run(const Operands& operands) override {
    Borrowed received(operands.in(0));
    for (size_t i = 0; i < sizes_.size(); ++i)
      operands.out(i) = slot_of(at::empty(sizes_[i], received->options()));
    run_into(operands);
  }

  void run_into(const Operands& operands) override {
    Borrowed received(operands.in(0));
    wait_for(received->const_data_ptr(), received->numel());
    const at::Tensor flat = received->view({-1});
    int64_t begin = 0;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      Borrowed out(operands.out(i));
      out->copy_(flat.narrow(0, begin, out->numel()).view(sizes_[i]));
      begin += out->numel();
    }
  }

 private:
  static void wait_for(const void* memory, int64_t elements) {
    const auto found = std::ranges::find_if(started, [&](const StartedCollective& each) {
      return each.memory == memory && each.elements == elements;
    });
    TORCHJANUS_CHECK(found != started.end(), "collective_wait: nothing was started");
    const StartedCollective collective = std::move(*found);
    started.erase(found);
    communicate(collective.wait);
    if (Timeline::is_kept() && collective.begun > 0) [[unlikely]]
      Timeline::add("exchange", std::string(collective.name), collective.begun, steady_seconds());
  }

  std::vector<std::vector<int64_t>> sizes_;
};

c10d::ReduceOp reduction_of(const graph::Node& node) {
  using Type = c10d::ReduceOp::RedOpType;
  static const std::map<std::string, Type> kAll = {
      {"SUM", Type::SUM}, {"PRODUCT", Type::PRODUCT}, {"MIN", Type::MIN}, {"MAX", Type::MAX}};
  return kAll.at(node.attributes.get<std::string>("reduce"));
}

/// As many parts of equal size, as a process group takes them.
std::vector<at::Tensor> parts_of(const at::Tensor& flat, int64_t count) {
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(flat.narrow(0, i * (flat.numel() / count), flat.numel() / count));
  return parts;
}

/// A collective that the program calls on one tensor.
class ProgramCollective : public execute::Operation {
 public:
  ProgramCollective(const graph::Node& node, const execute::SymbolLookup& symbols)
      : op_(node.op), group_(node), sizes_(sizes_of(node.output()->type, symbols)) {}
  bool can_run_into() const override { return true; }

  void run(const Operands& operands) override {
    operands.out(0) = slot_of(at::empty(sizes_, Borrowed(operands.in(0))->options()));
    run_into(operands);
  }

  void run_into(const Operands& operands) override {
    Borrowed out(operands.out(0));
    at::Tensor sent;
    if (is_in_place()) {
      out->copy_(*Borrowed(operands.in(0)));
    } else {
      sent = joined(operands);
    }
    communicate([&] {
      at::Tensor received = same_memory(*out);
      const Work work = begin(*group_.get(), received, sent);
      note_started(*op_, *out, [work] { work->wait(); }, sent);
    });
  }

 protected:
  using Work = c10::intrusive_ptr<c10d::Work>;

  /// Whether what is sent lies where it is received.
  virtual bool is_in_place() const { return true; }
  virtual Work begin(c10d::ProcessGroup& group, at::Tensor& received, at::Tensor& sent) = 0;

 private:
  /// A copy: the memory of operands may be used again before the group has read it.
  static at::Tensor joined(const Operands& operands) {
    std::vector<at::Tensor> parts;
    for (size_t i = 0; i < operands.inputs.size(); ++i)
      parts.push_back(Borrowed(operands.in(i))->reshape({-1}));
    return at::cat(parts);
  }

  const graph::OpDef* op_;
  NamedGroup group_;
  std::vector<int64_t> sizes_;
};

class AllReduce final : public ProgramCollective {
 public:
  AllReduce(const graph::Node& node, const execute::SymbolLookup& symbols)
      : ProgramCollective(node, symbols), reduction_(reduction_of(node)) {}

 private:
  Work begin(c10d::ProcessGroup& group, at::Tensor& received, at::Tensor& /*sent*/) override {
    std::vector<at::Tensor> tensors{received};
    return group.allreduce(tensors, {.reduceOp = reduction_});
  }

  c10d::ReduceOp reduction_;
};

class Broadcast final : public ProgramCollective {
 public:
  Broadcast(const graph::Node& node, const execute::SymbolLookup& symbols)
      : ProgramCollective(node, symbols), root_(node.attributes.get<int64_t>("root")) {}

 private:
  Work begin(c10d::ProcessGroup& group, at::Tensor& received, at::Tensor& /*sent*/) override {
    std::vector<at::Tensor> tensors{received};
    return group.broadcast(tensors, {.rootRank = root_});
  }

  int64_t root_;
};

class AllGather final : public ProgramCollective {
 public:
  AllGather(const graph::Node& node, const execute::SymbolLookup& symbols)
      : ProgramCollective(node, symbols), is_listed_(node.attributes.get<bool>("listed")) {}

 private:
  bool is_in_place() const override { return false; }

  Work begin(c10d::ProcessGroup& group, at::Tensor& received, at::Tensor& sent) override {
    if (!is_listed_) return all_gather_single(group, received, sent);
    std::vector<std::vector<at::Tensor>> outputs{parts_of(received, group.getSize())};
    std::vector<at::Tensor> inputs{sent};
    return group.allgather(outputs, inputs);
  }

  bool is_listed_;
};

class ReduceScatter final : public ProgramCollective {
 public:
  ReduceScatter(const graph::Node& node, const execute::SymbolLookup& symbols)
      : ProgramCollective(node, symbols),
        is_listed_(node.attributes.get<bool>("listed")),
        reduction_(reduction_of(node)) {}

 private:
  bool is_in_place() const override { return false; }

  Work begin(c10d::ProcessGroup& group, at::Tensor& received, at::Tensor& sent) override {
    const c10d::ReduceScatterOptions options{.reduceOp = reduction_};
    if (!is_listed_) return reduce_scatter_single(group, received, sent, options);
    std::vector<std::vector<at::Tensor>> inputs{parts_of(sent, group.getSize())};
    std::vector<at::Tensor> outputs{received};
    return group.reduce_scatter(outputs, inputs, options);
  }

  bool is_listed_;
  c10d::ReduceOp reduction_;
};

class BroadcastBuffers final : public execute::Operation {
 public:
  explicit BroadcastBuffers(const graph::Node& node)
      : group_(node), bytes_(static_cast<size_t>(node.attributes.get<int64_t>("bytes"))) {}
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
    communicate([&] { c10d::broadcast_coalesced(group_.get(), buffers, bytes_, 0); });
  }

 private:
  NamedGroup group_;
  size_t bytes_;
};

}  // namespace

std::unique_ptr<execute::Operation> bind_collective(const graph::Node& node,
                                                    const execute::SymbolLookup& symbols) {
  if (node.op == &op::all_reduce_bucket) return std::make_unique<AllReduceBucket>(node);
  if (node.op == &op::broadcast_buffers) return std::make_unique<BroadcastBuffers>(node);
  if (node.op == &op::all_reduce) return std::make_unique<AllReduce>(node, symbols);
  if (node.op == &op::broadcast) return std::make_unique<Broadcast>(node, symbols);
  if (node.op == &op::all_gather) return std::make_unique<AllGather>(node, symbols);
  if (node.op == &op::reduce_scatter) return std::make_unique<ReduceScatter>(node, symbols);
  if (node.op == &op::collective_wait) return std::make_unique<CollectiveWait>(node, symbols);
  return nullptr;
}

CollectivesScope::CollectivesScope() : outer_(std::exchange(started, {})) {}

CollectivesScope::~CollectivesScope() {
  if (!started.empty()) {
    const python::WithoutLock unlocked(PyGILState_Check() != 0);
    for (const StartedCollective& each : started) wait_silently(each);
  }
  started = std::move(outer_);
}

}  // namespace janus::torch
