// See divided_backward.h.
#include "torch/divided_backward.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/policy.h"
#include "execute/library/failure.h"
#include "torch/interception_keys.h"

namespace janus::torch {

namespace autograd = ::torch::autograd;
using execute::Slot;

namespace {

void delete_handed_on(void* handed) { delete static_cast<HandedOn*>(handed); }

/// What a gradient between two nodes looks like: no elements.
const at::Tensor& empty_gradient() {
  static const at::Tensor tensor = at::empty({0}, at::TensorOptions(at::kFloat).device(at::kCPU));
  return tensor;
}

at::Tensor as_gradient(std::unique_ptr<HandedOn> handed) {
  HandedOn* const memory = handed.release();
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0,
                       at::DataPtr(memory, memory, &delete_handed_on, at::Device(at::kCPU)),
                       nullptr, false);
  return at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), empty_gradient().dtype());
}

/// The tensor has no other use.
std::unique_ptr<HandedOn> from_gradient(const at::Tensor& gradient) {
  HandedOn* const memory = gradient.has_storage() ? gradient.storage()
                                                        .unsafeGetStorageImpl()
                                                        ->_mutable_data_ptr_no_checks()
                                                        .cast_context<HandedOn>(&delete_handed_on)
                                                  : nullptr;
  TORCH_CHECK(memory != nullptr, "torchjanus: a hook replaced the gradient between two nodes");
  return std::make_unique<HandedOn>(std::move(*memory));
}

/// Whether the two lie in one memory.
bool overlap(const at::Tensor& one, const at::Tensor& other) {
  if (!one.has_storage() || !other.has_storage()) return true;
  const auto range = [](const at::Tensor& tensor) {
    const auto* begin = static_cast<const char*>(tensor.storage().data());
    return std::pair(begin, begin + tensor.storage().nbytes());
  };
  const auto [first, first_end] = range(one);
  const auto [second, second_end] = range(other);
  return first < second_end && second < first_end;
}

/// The gradient as it may be given away: what takes it may write to it.
at::Tensor apart_from(const HandedOn& handed, at::Tensor gradient) {
  for (const Slot& value : handed.values)
    if (value.is_tensor() && overlap(gradient, *Borrowed(value))) return gradient.clone();
  return gradient;
}

}  // namespace

void run_part(GradientGraph& graph, size_t number, std::span<const Kept> kept,
              const NodePointer<autograd::Node>& node, HandedOn& handed) {
  execute::Program& program = graph.part(number);
  const passes::BackwardPart& part = graph.parts()[number];
  std::vector<Slot> inputs, results(part.targets.size() + part.gives.size());
  auto next = kept.begin();
  for (size_t i = 0; i < part.takes.size(); ++i) {
    Slot& own = handed.values[part.takes[i]];
    if (part.takes[i] < graph.saved_results().size())
      inputs.push_back((next++)->get(node));
    else if (part.lasts[i])
      inputs.push_back(own);
    else
      inputs.push_back(std::move(own));
  }
  if (const auto failure = program.run(inputs, {}, results, {}, policy::kDeepestCall, nullptr))
    TORCH_CHECK(false, failure->message.empty() ? "backward failed" : failure->message);
  const size_t count = part.targets.size();
  for (size_t i = 0; i < part.gives.size(); ++i)
    handed.values[part.gives[i]] = std::move(results[count + i]);
  for (size_t i = 0; i < count; ++i)
    handed.gradients[part.targets[i]] = apart_from(handed, tensor_of(results[i]));
}

std::vector<Kept> kept_for(const GradientGraph& graph, size_t number,
                           const std::vector<Kept>& all) {
  std::vector<Kept> kept;
  for (const size_t value : graph.parts()[number].takes)
    if (value < all.size()) kept.push_back(all[value]);
  return kept;
}

autograd::variable_list take_gradients(std::unique_ptr<HandedOn> handed,
                                       const passes::Bucket& targets, const autograd::Node& node) {
  autograd::variable_list taken(node.num_outputs());
  for (size_t i = 0; i < targets.size(); ++i) {
    at::Tensor gradient = std::move(handed->gradients[targets[i]]);
    if (handed->is_reached[targets[i]] && node.next_edge(i).is_valid())
      taken[i] = std::move(gradient);
  }
  if (taken.size() > targets.size()) taken.back() = as_gradient(std::move(handed));
  return taken;
}

BucketBackward::BucketBackward(std::shared_ptr<GradientGraph> graph, size_t part,
                               autograd::edge_list edges)
    : Node(std::move(edges)), graph_(std::move(graph)), part_(part) {
  add_input_metadata(empty_gradient());
}

BucketBackward::~BucketBackward() {
  const auto lock = lock_python();
  kept_.clear();
}

autograd::variable_list BucketBackward::apply(autograd::variable_list&& gradients) {
  if (!gradients.front().defined()) return autograd::variable_list(num_outputs());
  const std::lock_guard lock(mutex_);
  const auto python = lock_python();
  auto handed = from_gradient(gradients.front());
  if (!handed->is_complete) {
    const OrdinaryExecution execution;  // see GraphBackward
    run_part(*graph_, part_, kept_, getptr(), *handed);
  }
  return take_gradients(std::move(handed), graph_->parts()[part_].targets, *this);
}

void BucketBackward::release_variables() {
  const std::lock_guard lock(mutex_);
  const auto python = lock_python();
  for (Kept& each : kept_) each.release();
}

std::unique_ptr<python::WithLock> BucketBackward::lock_python() const {
  if (!are_pythons(kept_) || Py_IsInitialized() == 0) return nullptr;
  return std::make_unique<python::WithLock>();
}

}  // namespace janus::torch
