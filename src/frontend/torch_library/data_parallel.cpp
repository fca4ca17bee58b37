// See data_parallel.h.
#include "frontend/torch_library/data_parallel.h"

#include <utility>

#include "base/check.h"
#include "base/collectives_switch.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/lengths.h"
#include "frontend/tensors/tensor.h"
#include "frontend/torch_library/gradient_exchange.h"
#include "frontend/torch_library/process_groups.h"
#include "frontend/values/constants.h"
#include "frontend/values/strides.h"
#include "ops/collectives.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

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
      interpreter_.refuse_around("DistributedDataParallel", model_.module);
    check_place();
    check_plain();
    const bool shares = interpreter_.modes.grad_enabled && is_set("require_backward_grad_sync");
    find_buckets();
    if (interpreter_.modes.grad_enabled) note_reducer(shares);
    const bool broadcasts = is_set("require_forward_param_sync");
    const Value sends = call(interpreter_, of_self("will_sync_module_buffers"), {});
    if (truth(interpreter_, sends, -1)) broadcast_buffers();
    CallArguments rest = arguments_;
    rest.positional.erase(rest.positional.begin());
    const Value result = call(interpreter_, module_, rest);
    if (broadcasts != shares)
      write_attribute(interpreter_, self_, "require_forward_param_sync",
                      interpreter_.boolean(shares));
    if (interpreter_.modes.grad_enabled) note_called(shares);
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) {
    refuse_model(interpreter_, model_.module, why);
  }

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
    if (interpreter_.seeing_errors > 0) refuse("within a statement that sees its error");
  }

  /// Whether the reducer does just what share_gradients() does.
  void check_plain() {
    for (const char* name :
         {"find_unused_parameters", "static_graph", "gradient_as_bucket_view", "batched_grad_copy",
          "mixed_precision", "device_ids", "_use_python_reducer", "_delay_all_reduce_all_params",
          "_delay_all_reduce_params", "_comm_hooks", "_accum_grad_hooks", "parameters_to_ignore"})
      if (is_set(name)) refuse(cat("with ", name));
    if (truth(interpreter_, attribute(interpreter_, of_self("_join_config"), "enable"), -1))
      refuse("within join()");
    if (attribute_or_null(interpreter_, self_, "buffer_hook") != nullptr)
      refuse("with a hook of buffers");
    for (const char* name : {"_has_rebuilt_buckets", "_lazy_init_ran"})
      if (!is_set(name)) refuse("before its buckets have their order");
  }

  /// The reducer has its buckets as long as `_has_rebuilt_buckets` says so, and it is this object.
  void find_buckets() {
    const auto* reducer = as<Known>(of_self("reducer"));
    const auto* group = as<Known>(of_self("process_group"));
    TORCHJANUS_CHECK(reducer != nullptr && group != nullptr, "a wrapper without a group");
    interpreter_.assume_identity(*reducer);
    interpreter_.assume_identity(*group);
    model_.group = name_of_group(interpreter_, group->object.get());
    reducer_ = address_of(reducer->object.get());
    // No attribute of the wrapper tells of hooks that torch has in C++; each run asks again.
    if (speculate::tensor_access().has_communication_hook(reducer_))
      refuse("with a communication hook");
    model_.reducer = of_self("reducer");
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

  /// One that shares begins anew in each forward pass. One that does not goes on as it was.
  void note_reducer(bool shares) {
    if (model_of(interpreter_, model_.wrapper.get()) != nullptr && !shares) return;
    interpreter_.output().reducers.push_back({reducer_, !shares});
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
    if (!has_listed(buffers.size())) refuse("whose buffers are others than when it listed them");
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

  /// The wrapper lists the buffers anew each time that it sends them. Without any it never does.
  bool has_listed(size_t count) {
    const Value length = length_of(interpreter_, of_self("modules_buffers"));
    const auto* known = as<Known>(length);
    return known != nullptr && PyLong_AsSize_t(known->object.get()) == count;
  }

  int64_t bytes_at_once() {
    const auto* known = as<Known>(of_self("broadcast_bucket_size"));
    if (known == nullptr || PyLong_Check(known->object.get()) == 0)
      refuse("whose size of broadcasts varies");
    return PyLong_AsLongLong(known->object.get());
  }

  /// Within no_sync() the reducer waits on, if it did.
  void note_called(bool shares) {
    ParallelModel* known = model_of(interpreter_, model_.wrapper.get());
    model_.shares = shares || (known != nullptr && known->shares);
    model_.has_shared = shares || (known != nullptr && known->has_shared);
    if (known != nullptr)
      *known = std::move(model_);
    else
      interpreter_.parallel_models.push_back(std::move(model_));
  }

  Interpreter& interpreter_;
  const Value self_;
  const CallArguments& arguments_;
  Value module_;
  void* reducer_ = nullptr;  ///< c10d::Reducer
  ParallelModel model_;
};

}  // namespace

Value call_data_parallel(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.empty()) return nullptr;
  return WrapperCall(interpreter, arguments).run();
}

}  // namespace janus::frontend
