// See data_parallel.h.
#include "frontend/torch_library/data_parallel.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/collectives_switch.h"
#include "frontend/control/journal.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attributes.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/strides.h"
#include "ops/collectives.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

constexpr const char* kWrapper = "DistributedDataParallel";

[[noreturn]] void refuse_model(const Interpreter& interpreter, const ParallelModel& model,
                               const std::string& why) {
  interpreter.refuse_around(cat(kWrapper, " (", why, ")"), model.module);
}

/// One call of a wrapper: what of its state decides which collectives it makes.
class WrapperCall {
 public:
  WrapperCall(Interpreter& interpreter, const CallArguments& arguments)
      : interpreter_(interpreter), self_(arguments.positional.at(0)), arguments_(arguments) {}

  Value run() {
    module_ = attribute(interpreter_, self_, "module");
    const auto* module = as<Known>(module_);
    model_.module = module == nullptr ? Object() : module->object;
    if (options().is_disabled(kCollectivesSwitch.name))
      interpreter_.refuse_around(kWrapper, model_.module);
    check_place();
    check_plain();
    model_.shares = is_set("require_backward_grad_sync");
    if (!model_.shares) refuse("within no_sync()");
    find_buckets();
    end_waiting();
    if (is_set("require_forward_param_sync") && is_set("forward_sync_buffers")) broadcast_buffers();
    CallArguments rest = arguments_;
    rest.positional.erase(rest.positional.begin());
    const Value result = call(interpreter_, module_, rest);
    if (!is_set("require_forward_param_sync"))
      write_attribute(interpreter_, self_, "require_forward_param_sync",
                      interpreter_.boolean(true));
    note_called();
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) { refuse_model(interpreter_, model_, why); }

  Value of_self(const char* name) { return attribute(interpreter_, self_, name); }
  bool is_set(const char* name) { return truth(interpreter_, of_self(name), -1); }

  /// Collectives stand in the graph's body, and no run of it makes more or fewer of them.
  void check_place() {
    const std::string& why = interpreter_.call().why_no_collectives;
    if (!why.empty()) refuse(why);
    const auto* known = as<Known>(self_);
    static PyObject* const wrapper = imported("torch.nn.parallel.DistributedDataParallel");
    if (known == nullptr || wrapper == nullptr ||
        reinterpret_cast<PyObject*>(Py_TYPE(known->object.get())) != wrapper)
      refuse("of a class of its own");
    model_.wrapper = known->object;
    if (!interpreter_.is_body(interpreter_.block())) refuse("in a branch or loop of the graph");
    if (!interpreter_.modes.grad_enabled) refuse("without gradients");
  }

  /// Whether the reducer does just what share_gradients() does.
  void check_plain() {
    for (const char* name :
         {"find_unused_parameters", "static_graph", "gradient_as_bucket_view", "batched_grad_copy",
          "mixed_precision", "device_ids", "_use_python_reducer", "_delay_all_reduce_all_params",
          "_delay_all_reduce_params", "_comm_hooks", "_accum_grad_hooks", "parameters_to_ignore"})
      if (is_set(name)) refuse(cat("with ", name));
    if (has_builtin_hook()) refuse("with a communication hook");
    if (truth(interpreter_, attribute(interpreter_, of_self("_join_config"), "enable"), -1))
      refuse("within join()");
    if (attribute_or_null(interpreter_, self_, "buffer_hook") != nullptr)
      refuse("with a hook of buffers");
    for (const char* name : {"_has_rebuilt_buckets", "_lazy_init_ran"})
      if (!is_set(name)) refuse("before its buckets have their order");
  }

  /// No attribute of the wrapper tells of hooks that torch has in C++.
  bool has_builtin_hook() {
    const Object told = interpreter_.must(
        PyObject_CallMethod(model_.wrapper.get(), "_get_ddp_logging_data", nullptr));
    return PyDict_GetItemString(told.get(), "comm_hook") != nullptr;
  }

  /// By which the run finds the group. Torch has each group under one, whatever the group itself
  /// says.
  std::string name_of(PyObject* group) {
    const Object world = python::import_attribute("torch.distributed.distributed_c10d", "_world");
    const Object names = interpreter_.must(PyObject_GetAttrString(world.get(), "pg_names"));
    return text_of(interpreter_.must(PyObject_GetItem(names.get(), group)).get());
  }

  /// The reducer has its buckets as long as `_has_rebuilt_buckets` says so, and it is this object.
  void find_buckets() {
    const auto* reducer = as<Known>(of_self("reducer"));
    const auto* group = as<Known>(of_self("process_group"));
    TORCHJANUS_CHECK(reducer != nullptr && group != nullptr, "a wrapper without a group");
    interpreter_.assume_identity(*reducer);
    interpreter_.assume_identity(*group);
    model_.group = name_of(group->object.get());
    interpreter_.output().reducers.push_back(address_of(reducer->object.get()));
    const Object buckets = interpreter_.must(
        PyObject_CallMethod(reducer->object.get(), "_get_zeros_like_grad_buckets", nullptr));
    for (const Object& bucket : python::elements(buckets.get())) {
      const Object parameters =
          interpreter_.must(PyObject_CallMethod(bucket.get(), "parameters", nullptr));
      model_.buckets.push_back(python::elements(parameters.get()));
    }
  }

  void* address_of(PyObject* reducer) {
    static PyObject* const address =
        python::import_attribute("torchjanus._core", "reducer_address").release();
    return PyLong_AsVoidPtr(interpreter_.must(PyObject_CallOneArg(address, reducer)).get());
  }

  /// As the end of backward() does: an earlier forward pass may have had none. Here, by trying it,
  /// and after each run.
  void end_waiting() {
    static PyObject* const stop =
        python::import_attribute("torchjanus._core", "stop_waiting").release();
    const Value reducer = of_self("reducer");
    interpreter_.must(PyObject_CallOneArg(stop, as<Known>(reducer)->object.get()));
    const Value call = defer(interpreter_, Object::borrow(stop), {{reducer}, {}}, Py_TYPE(Py_None));
    interpreter_.effects.push_back({as<Deferred>(call)->recipe, interpreter_.user_span()});
  }

  void broadcast_buffers() {
    const Value all = call(interpreter_, attribute(interpreter_, module_, "buffers"), {});
    std::vector<std::shared_ptr<Tensor>> buffers;
    std::vector<graph::Value*> values;
    for (const Value& each : elements_of(interpreter_, all)) {
      const auto buffer = shared_as<Tensor>(each);
      if (buffer == nullptr || buffer->requires_grad || buffer->base != nullptr ||
          !is_contiguous(*buffer))
        refuse("with a buffer that doesn't lie in order");
      buffers.push_back(buffer);
      values.push_back(read(interpreter_, *buffer));
    }
    if (buffers.empty()) return;
    graph::Attributes attributes;
    attributes.set("group", model_.group);
    attributes.set("bytes", bytes_at_once());
    const graph::Node* node =
        interpreter_.builder().append(op::broadcast_buffers, values, std::move(attributes));
    for (size_t i = 0; i < buffers.size(); ++i) {
      write(interpreter_, *buffers[i], node->outputs[i]);
      ++buffers[i]->silent_writes;
    }
  }

  int64_t bytes_at_once() {
    const auto* known = as<Known>(of_self("broadcast_bucket_size"));
    if (known == nullptr || PyLong_Check(known->object.get()) == 0)
      refuse("whose size of broadcasts varies");
    return PyLong_AsLongLong(known->object.get());
  }

  void note_called() {
    auto& models = interpreter_.parallel_models;
    const auto found = std::ranges::find_if(
        models, [&](const ParallelModel& each) { return each.wrapper.is(model_.wrapper.get()); });
    if (found != models.end())
      *found = std::move(model_);
    else
      models.push_back(std::move(model_));
  }

  Interpreter& interpreter_;
  const Value self_;
  const CallArguments& arguments_;
  Value module_;
  ParallelModel model_;
};

/// The gradients of one model, once all of them are accumulated.
class GradientExchange {
 public:
  GradientExchange(Interpreter& interpreter, const ParallelModel& model,
                   std::span<const std::shared_ptr<Tensor>> leaves)
      : interpreter_(interpreter), model_(model), leaves_(leaves) {}

  /// All buckets are started before the first is waited for, as the reducer does it.
  void run() {
    std::vector<Bucket> buckets;
    for (const auto& parameters : model_.buckets) buckets.push_back(bucket_of(parameters));
    for (size_t i = 0; i < buckets.size(); ++i) start(buckets[i], i);
    for (size_t i = 0; i < buckets.size(); ++i) finish(buckets[i], i);
    interpreter_.mark(speculate::LineMark::Kind::graph,
                      cat("all-reduce of ", buckets.size(),
                          buckets.size() == 1 ? " bucket" : " buckets", " of gradients"));
  }

 private:
  struct Part {
    std::shared_ptr<Tensor> leaf, gradient;
    std::optional<graph::Shape> order;  ///< of dimensions in memory, if it isn't that of indices
  };
  struct Bucket {
    std::vector<Part> parts;
    graph::Value* started = nullptr;
  };

  Bucket bucket_of(const std::vector<Object>& parameters) {
    Bucket bucket;
    for (const Object& parameter : parameters) {
      const auto leaf = std::ranges::find_if(
          leaves_, [&](const auto& each) { return each->object.is(parameter.get()); });
      if (leaf == leaves_.end())
        refuse_model(interpreter_, model_, "not all parameters have a gradient");
      if (interpreter_.hooked_leaves.contains(leaf->get()))
        refuse_model(interpreter_, model_, "a parameter has hooks");
      auto gradient = shared_as<Tensor>((*leaf)->grad);
      if (gradient == nullptr || gradient->value->type != (*leaf)->value->type)
        refuse_model(interpreter_, model_, "not all gradients are like their parameters");
      bucket.parts.push_back({*leaf, std::move(gradient), order_in_memory(**leaf)});
    }
    return bucket;
  }

  void start(Bucket& bucket, size_t number) {
    graph::Builder& builder = interpreter_.builder();
    std::vector<graph::Value*> gradients;
    for (const Part& part : bucket.parts) {
      graph::Value* value = read(interpreter_, *part.gradient);
      gradients.push_back(part.order ? op::permute(builder, {value}, {{"dims", *part.order}})
                                     : value);
    }
    graph::Attributes attributes;
    attributes.set("group", model_.group);
    attributes.set("bucket", static_cast<int64_t>(number));
    bucket.started =
        builder.append(op::all_reduce_start, gradients, std::move(attributes))->output();
  }

  void finish(const Bucket& bucket, size_t number) {
    graph::Builder& builder = interpreter_.builder();
    std::vector<graph::Type> types;
    for (const Part& part : bucket.parts) types.push_back(type_of(part));
    graph::Attributes attributes;
    attributes.set("bucket", static_cast<int64_t>(number));
    graph::Value* const started = bucket.started;
    const graph::Node* node = builder.append_unchecked(op::all_reduce_wait, {&started, 1},
                                                       std::move(attributes), std::move(types));
    for (size_t i = 0; i < bucket.parts.size(); ++i) {
      const Part& part = bucket.parts[i];
      graph::Value* sums = node->outputs[i];
      if (part.order) sums = op::permute(builder, {sums}, {{"dims", inverse_order(*part.order)}});
      write(interpreter_, *part.gradient, sums);
    }
  }

  /// With its dimensions as they lie in memory.
  static graph::Type type_of(const Part& part) {
    graph::Type type = part.leaf->value->type;
    if (!part.order) return type;
    graph::Shape shape;
    for (const graph::Dim& dim : *part.order)
      shape.push_back(type.shape[static_cast<size_t>(dim.value())]);
    return graph::Type::tensor(type.dtype, shape);
  }

  Interpreter& interpreter_;
  const ParallelModel& model_;
  const std::span<const std::shared_ptr<Tensor>> leaves_;
};

}  // namespace

Value call_data_parallel(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.empty()) return nullptr;
  return WrapperCall(interpreter, arguments).run();
}

ParallelModel* model_of(AutogradState& autograd, const Tensor& parameter) {
  const auto found = std::ranges::find_if(autograd.parallel_models, [&](const auto& model) {
    return model.has(parameter.object.get());
  });
  return found == autograd.parallel_models.end() ? nullptr : &*found;
}

void share_gradients(Interpreter& interpreter, std::span<const std::shared_ptr<Tensor>> leaves) {
  std::set<ParallelModel*> reached;
  for (const auto& leaf : leaves)
    if (ParallelModel* model = model_of(interpreter, *leaf)) reached.insert(model);
  if (reached.empty()) return;
  ParallelModel& model = **reached.begin();
  if (reached.size() > 1)
    refuse_model(interpreter, model, "one backward() has gradients of several");
  if (!interpreter.is_body(interpreter.block()))
    refuse_model(interpreter, model, "backward() in a branch or loop of the graph");
  if (!std::exchange(model.shares, false))
    refuse_model(interpreter, model, "backward() without a call before it");
  GradientExchange(interpreter, model, leaves).run();
}

void check_gradients_shared(Interpreter& interpreter) {
  if (interpreter.parallel_models.empty()) return;
  for (const ParallelModel& model : interpreter.parallel_models)
    if (model.shares) refuse_model(interpreter, model, "its backward() is not in the graph");
  for (const auto& result : interpreter.output().differentiable_results)
    if (!result.consumed)
      refuse_model(interpreter, interpreter.parallel_models.front(),
                   "a gradient is due outside of the graph");
}

}  // namespace janus::frontend
