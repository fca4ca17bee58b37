// See gradient_exchange.h.
//
// A reducer sends a bucket when the gradients of all its parameters, and of those of all buckets
// before it, are accumulated. Autograd's engine runs the node that was made last first, of those
// that can run, and each accumulation at once. So a parameter has its gradient when the first node
// that used it in the forward pass has run, and buckets of several wrappers go out by these places.
#include "frontend/torch_library/gradient_exchange.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "frontend/autograd/tracked_values.h"
#include "frontend/control/journal.h"
#include "frontend/tensors/tensor.h"
#include "frontend/torch_library/program_collectives.h"
#include "frontend/values/strides.h"
#include "graph/op.h"
#include "ops/collectives.h"
#include "ops/list.h"
#include "passes/reach/reachability.h"

namespace janus::frontend {

using python::Object;

namespace {

/// By value: where in the body stands the first node through which a gradient of `outputs` comes
/// to it.
class FirstUses {
 public:
  FirstUses(const graph::Block& body, std::span<graph::Value* const> outputs) {
    const passes::Reached reached = passes::reached_from(outputs, passes::Paths::any);
    for (size_t i = 0; i < body.nodes.size(); ++i)
      for (graph::Value* output : body.nodes[i]->outputs) {
        if (!reached.contains(output)) continue;
        for (graph::Value* operand : passes::operands_reached(*output, passes::Paths::any))
          places_.try_emplace(operand, i);
      }
  }

  /// The least of all its values.
  size_t of(const AutogradState& autograd, const Tensor& leaf) const {
    size_t first = SIZE_MAX;
    for (graph::Value* value : tracked_values(autograd, leaf))
      if (const auto found = places_.find(value); found != places_.end())
        first = std::min(first, found->second);
    TORCHJANUS_CHECK(first != SIZE_MAX, "a leaf with a gradient that nothing has used");
    return first;
  }

 private:
  std::unordered_map<graph::Value*, size_t> places_;
};

struct Part {
  std::shared_ptr<Tensor> leaf, gradient;
  std::optional<graph::Shape> order;  ///< of dimensions in memory, if it isn't that of indices
};

struct Bucket {
  const ParallelModel* model = nullptr;
  size_t number = 0;
  std::vector<Part> parts;
  size_t first_use = SIZE_MAX;  ///< of its parameters and those of the buckets before it
  graph::Value* started = nullptr;
};

/// The gradients of some models, once all of them are accumulated.
class GradientExchange {
 public:
  GradientExchange(Interpreter& interpreter, std::span<const std::shared_ptr<Tensor>> leaves)
      : interpreter_(interpreter), leaves_(leaves) {}

  void add(const ParallelModel& model) {
    for (const auto& parameters : model.buckets) {
      Bucket bucket = bucket_of(model, parameters);
      bucket.number = static_cast<size_t>(&parameters - model.buckets.data());
      buckets_.push_back(std::move(bucket));
    }
  }

  /// Of several models that one backward() reaches.
  void put_in_order(std::span<graph::Value* const> outputs) {
    const FirstUses uses(interpreter_.output().graph.body(), outputs);
    size_t first = SIZE_MAX;
    for (Bucket& bucket : buckets_) {
      if (bucket.number == 0) first = SIZE_MAX;
      for (const Part& part : bucket.parts)
        first = std::min(first, uses.of(interpreter_, *part.leaf));
      bucket.first_use = first;
    }
    std::ranges::sort(buckets_, [](const Bucket& one, const Bucket& other) {
      return std::tuple(other.first_use, one.model, one.number) <
             std::tuple(one.first_use, other.model, other.number);
    });
    for (size_t i = 1; i < buckets_.size(); ++i)
      if (buckets_[i].model != buckets_[i - 1].model &&
          buckets_[i].first_use == buckets_[i - 1].first_use)
        refuse_model(interpreter_, buckets_[i].model->module,
                     "whose parameters are used in one place with those of another one");
  }

  /// All buckets are started before the first is waited for, as reducers do it.
  void run() {
    for (Bucket& bucket : buckets_) start(bucket);
    for (const Bucket& bucket : buckets_) finish(bucket);
    interpreter_.mark(speculate::LineMark::Kind::graph,
                      cat("all-reduce of ", buckets_.size(),
                          buckets_.size() == 1 ? " bucket" : " buckets", " of gradients"));
  }

 private:
  Bucket bucket_of(const ParallelModel& model, const std::vector<Object>& parameters) {
    Bucket bucket;
    bucket.model = &model;
    for (const Object& parameter : parameters) {
      const auto leaf = std::ranges::find_if(
          leaves_, [&](const auto& each) { return each->object.is(parameter.get()); });
      if (leaf == leaves_.end())
        refuse_model(interpreter_, model.module, "not all parameters have a gradient");
      if (interpreter_.hooked_leaves.contains(leaf->get()))
        refuse_model(interpreter_, model.module, "a parameter has hooks");
      auto gradient = shared_as<Tensor>((*leaf)->grad);
      if (gradient == nullptr || gradient->value->type != (*leaf)->value->type)
        refuse_model(interpreter_, model.module, "not all gradients are like their parameters");
      bucket.parts.push_back({*leaf, std::move(gradient), order_in_memory(**leaf)});
    }
    return bucket;
  }

  void start(Bucket& bucket) {
    graph::Builder& builder = interpreter_.builder();
    std::vector<graph::Value*> gradients;
    for (const Part& part : bucket.parts) {
      graph::Value* value = read(interpreter_, *part.gradient);
      gradients.push_back(part.order ? op::permute(builder, {value}, {{"dims", *part.order}})
                                     : value);
    }
    graph::Attributes attributes;
    attributes.set("group", bucket.model->group);
    attributes.set("bucket", static_cast<int64_t>(bucket.number));
    bucket.started =
        builder.append(op::all_reduce_bucket, gradients, std::move(attributes))->output();
  }

  void finish(const Bucket& bucket) {
    graph::Builder& builder = interpreter_.builder();
    std::vector<graph::Type> types;
    for (const Part& part : bucket.parts)
      types.push_back(type_in_order(part.leaf->value->type, part.order));
    graph::Value* const started = bucket.started;
    const graph::Node* node =
        builder.append_unchecked(op::collective_wait, {&started, 1}, {}, std::move(types));
    for (size_t i = 0; i < bucket.parts.size(); ++i) {
      const Part& part = bucket.parts[i];
      graph::Value* sums = node->outputs[i];
      if (part.order) sums = op::permute(builder, {sums}, {{"dims", inverse_order(*part.order)}});
      write(interpreter_, *part.gradient, sums);
    }
  }

  Interpreter& interpreter_;
  const std::span<const std::shared_ptr<Tensor>> leaves_;
  std::vector<Bucket> buckets_;
};

}  // namespace

void refuse_model(const Interpreter& interpreter, const Object& module, const std::string& why) {
  interpreter.refuse_around(cat("DistributedDataParallel (", why, ")"), module);
}

ParallelModel* model_of(AutogradState& autograd, const Tensor& parameter) {
  const auto found = std::ranges::find_if(autograd.parallel_models, [&](const auto& model) {
    return model.has(parameter.object.get());
  });
  return found == autograd.parallel_models.end() ? nullptr : &*found;
}

ParallelModel* model_of(AutogradState& autograd, PyObject* wrapper) {
  const auto found = std::ranges::find_if(
      autograd.parallel_models, [&](const auto& model) { return model.wrapper.is(wrapper); });
  return found == autograd.parallel_models.end() ? nullptr : &*found;
}

void share_gradients(Interpreter& interpreter, const CollectivesSince& own,
                     std::span<graph::Value* const> outputs,
                     std::span<const std::shared_ptr<Tensor>> leaves) {
  std::vector<ParallelModel*> reached;
  for (const auto& leaf : leaves)
    if (ParallelModel* model = model_of(interpreter, *leaf); model != nullptr && model->shares) {
      model->shares = false;
      reached.push_back(model);
    }
  if (reached.empty()) return;
  if (!interpreter.is_body(interpreter.block()))
    refuse_model(interpreter, reached.front()->module,
                 "backward() in a branch or loop of the graph");
  // Eager sends a bucket between them, as soon as it is complete.
  if (own.any())
    refuse_model(interpreter, reached.front()->module, "its backward() calls other collectives");
  if (interpreter.seeing_errors > 0)
    refuse_model(interpreter, reached.front()->module,
                 "its backward() stands within a statement that sees its error");
  GradientExchange exchange(interpreter, leaves);
  for (const ParallelModel* model : reached) exchange.add(*model);
  if (reached.size() > 1) exchange.put_in_order(outputs);
  exchange.run();
}

void tell_reducers(Interpreter& interpreter) {
  static PyObject* const stop =
      python::import_attribute("torchjanus._core", "stop_waiting").release();
  static PyObject* const start =
      python::import_attribute("torchjanus._core", "start_waiting").release();
  for (const ParallelModel& model : interpreter.parallel_models) {
    if (!model.has_shared) continue;
    const Object told = Object::borrow(model.shares ? start : stop);
    const Value call = defer(interpreter, told, {{model.reducer}, {}}, Py_TYPE(Py_None));
    interpreter.effects.push_back({as<Deferred>(call)->recipe, interpreter.last_span()});
  }
}

void check_gradients_shared(Interpreter& interpreter) {
  const auto& results = interpreter.output().differentiable_results;
  const bool is_due =
      std::ranges::any_of(results, [](const auto& result) { return !result.consumed; });
  if (!is_due) return;
  for (const ParallelModel& model : interpreter.parallel_models)
    if (model.shares) refuse_model(interpreter, model.module, "its backward() is not in the graph");
  check_not_repeated(interpreter);
  const bool communicates = std::ranges::any_of(
      interpreter.output().graph.body().nodes,
      [](const graph::Node* node) { return node->op->is(graph::Trait::communicates); });
  if (communicates)
    refuse_model(interpreter, interpreter.parallel_models.front().module,
                 "a gradient is due outside of the graph");
}

}  // namespace janus::frontend
