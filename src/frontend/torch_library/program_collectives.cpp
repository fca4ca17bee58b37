// See program_collectives.h.
#include "frontend/torch_library/program_collectives.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/collectives_switch.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/functions.h"
#include "frontend/tensors/tensor.h"
#include "frontend/torch_library/process_groups.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/strides.h"
#include "ops/collectives.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

/// Refuses a collective that can't be in the graph at this place.
void check_place(Interpreter& interpreter, const std::string& name) {
  const std::string& why = interpreter.call().why_no_collectives;
  if (options().is_disabled(kCollectivesSwitch.name))
    interpreter.refuse(ReasonCode::communication, name);
  if (!why.empty()) interpreter.refuse(ReasonCode::communication, cat(name, " (", why, ")"));
  if (!interpreter.is_body(interpreter.block()))
    interpreter.refuse(ReasonCode::communication, cat(name, " (in a branch or loop of the graph)"));
  if (interpreter.seeing_errors > 0)
    interpreter.refuse(ReasonCode::communication,
                       cat(name, " (within a statement that sees its error)"));
}

constexpr const char* kTensor =
    "a tensor that isn't dense, requires a gradient or is of another type";

Value own_class(Interpreter& interpreter, const char* path) {
  return interpreter.constant_borrowed(imported(path));
}

/// Of those that a tensor is a view of, it first.
std::vector<Tensor*> with_bases(Tensor& tensor) {
  std::vector<Tensor*> all;
  for (Tensor* step = &tensor; step != nullptr; step = step->base.get()) all.push_back(step);
  return all;
}

/// Waits for a collective: what it has received is written.
class Finish {
 public:
  Finish(Interpreter& interpreter, PendingCollective& collective)
      : interpreter_(interpreter), collective_(collective) {}

  void run() {
    check_place(interpreter_, collective_.name);
    std::vector<graph::Type> types;
    for (const ReceivingTensor& each : collective_.receivers)
      types.push_back(type_in_order(each.tensor->value->type, each.order));
    const graph::Node* node = interpreter_.builder().append_unchecked(
        op::collective_wait, {&collective_.started, 1}, {}, std::move(types));
    for (size_t i = 0; i < collective_.receivers.size(); ++i)
      receive(collective_.receivers[i], node->outputs[i]);
    collective_.is_done = true;
  }

 private:
  void receive(const ReceivingTensor& receiver, graph::Value* contents) {
    Tensor& tensor = *receiver.tensor;
    if (tensor.version != receiver.version || !is_current(tensor))
      interpreter_.refuse(ReasonCode::communication,
                          cat(collective_.name, " (into a tensor that is written meanwhile)"));
    graph::Builder& builder = interpreter_.builder();
    if (receiver.order)
      contents = op::permute(builder, {contents}, {{"dims", inverse_order(*receiver.order)}});
    if (tensor.requires_grad) contents = op::detach(builder, {contents});
    write(interpreter_, tensor, contents);
    for (Tensor* step : with_bases(tensor)) {
      if (collective_.writes == 0)
        ++step->silent_writes;
      else
        step->version += added_writes();
      if (step->base != nullptr) step->seen_version = step->base->version + added_writes();
    }
  }

  uint32_t added_writes() const { return collective_.writes == 0 ? 0 : collective_.writes - 1; }

  Interpreter& interpreter_;
  PendingCollective& collective_;
};

/// One call of a process group's method.
class GroupCall {
 public:
  /// `tensors`: how many arguments stand before the options.
  GroupCall(Interpreter& interpreter, const char* method, const CallArguments& arguments,
            size_t tensors)
      : interpreter_(interpreter), name_(cat("ProcessGroup.", method)) {
    check_place(interpreter_, name_);
    const auto* group = arguments.positional.empty() ? nullptr : as<Known>(arguments.positional[0]);
    const size_t given = arguments.positional.size();
    const bool has_options = given == tensors + 2;
    if (group == nullptr || !arguments.keywords.empty() || (given != tensors + 1 && !has_options))
      refuse("with these arguments");
    const auto first = arguments.positional.begin() + 1;
    tensors_.assign(first, first + static_cast<ptrdiff_t>(tensors));
    const Value given_options =
        has_options ? arguments.positional.back() : make_collective_options(interpreter, {});
    options_ = shared_as<Instance>(given_options);
    if (options_ == nullptr || !options_->type.is(imported("torchjanus.communication.Options")))
      refuse("with these arguments");
    interpreter_.assume_identity(*group);
    if (compares_calls(interpreter_, group->object.get()))
      refuse("of a group that compares shapes, TORCH_DISTRIBUTED_DEBUG=DETAIL");
    attributes_.set("group", name_of_group(interpreter_, group->object.get()));
    const Object size =
        interpreter_.must(PyObject_CallMethod(group->object.get(), "size", nullptr));
    size_ = PyLong_AsLongLong(size.get());
  }

  /// Of one tensor, which is overwritten.
  Value in_place(const graph::OpDef& op) {
    const std::vector<Value> tensors = elements_of(interpreter_, tensors_[0]);
    if (tensors.size() != 1) refuse("with these arguments");
    const auto tensor = dense_tensor(tensors[0]);
    const auto order = order_in_memory(*tensor);
    if (!order && !is_contiguous(*tensor)) refuse(kTensor);
    graph::Value* value = read(interpreter_, *tensor);
    if (order) value = op::permute(interpreter_.builder(), {value}, {{"dims", *order}});
    begin(op, {value}, {{tensor, order, tensor->version}});
    return work();
  }

  /// Into one tensor, or as many as there are processes.
  Value gather(const Value& outputs, const Value& input, bool is_listed) {
    const auto sent = tensor_in_order(input);
    auto receivers = receivers_in_order(outputs, is_listed);
    for (const ReceivingTensor& each : receivers) require_fit(*each.tensor, *sent, is_listed);
    attributes_.set("size", size_);
    attributes_.set("listed", is_listed);
    begin(op::all_gather, {read(interpreter_, *sent)}, std::move(receivers),
          is_listed ? 1 : static_cast<uint32_t>(size_));
    return work();
  }

  /// Of one tensor, or as many as there are processes.
  Value scatter(const Value& output, const Value& inputs, bool is_listed) {
    const auto receiver = tensor_in_order(output);
    std::vector<graph::Value*> sent;
    for (const Value& each : listed(inputs, is_listed)) {
      const auto part = tensor_in_order(each);
      require_fit(*part, *receiver, is_listed);
      sent.push_back(read(interpreter_, *part));
    }
    attributes_.set("size", size_);
    attributes_.set("listed", is_listed);
    begin(op::reduce_scatter, sent, {{receiver, std::nullopt, receiver->version}}, /*writes=*/1);
    return work();
  }

  const Value& tensors(size_t index) const { return tensors_[index]; }
  /// A list of one list, as process groups take it of several devices.
  Value only(size_t index) {
    const std::vector<Value> all = elements_of(interpreter_, tensors_[index]);
    if (all.size() != 1) refuse("with these arguments");
    return all[0];
  }

  void set_reduction() {
    static const std::set<std::string> kKnown = {"SUM", "PRODUCT", "MIN", "MAX"};
    const std::string name = name_of_reduction();
    if (!kKnown.contains(name))
      refuse("with another operation than a sum, product, minimum or maximum");
    attributes_.set("reduce", name);
  }

  void set_root() {
    const auto* root = as<Known>(option("rootRank"));
    if (root == nullptr || !PyLong_CheckExact(root->object.get())) refuse("with these arguments");
    attributes_.set("root", static_cast<int64_t>(PyLong_AsLongLong(root->object.get())));
  }

 private:
  [[noreturn]] void refuse(const std::string& why) {
    interpreter_.refuse(ReasonCode::communication, cat(name_, " (", why, ")"));
  }

  /// Empty for what is no member of the enumeration.
  std::string name_of_reduction() {
    const Value given = option("reduceOp");
    const auto* op = as<Known>(given);
    if (op != nullptr && op->object.is(Py_None)) return "SUM";
    static PyObject* const type = imported("torch.distributed.ReduceOp.RedOpType");
    if (op == nullptr || type == nullptr ||
        !Py_IS_TYPE(op->object.get(), reinterpret_cast<PyTypeObject*>(type)))
      return {};
    interpreter_.assume_identity(*op);
    return text_of(interpreter_.must(PyObject_GetAttrString(op->object.get(), "name")).get());
  }

  Value option(const char* name) {
    for (const auto& [key, value] : options_->fields->items)
      if (text_of(key.get()) == name) return value;
    return nullptr;
  }

  std::shared_ptr<Tensor> dense_tensor(const Value& value) {
    auto tensor = shared_as<Tensor>(value);
    if (tensor == nullptr || graph::is_complex(tensor->value->type.dtype)) refuse(kTensor);
    for (const Tensor* step : with_bases(*tensor))
      if (step->requires_grad && !is_unseen(*step)) refuse(kTensor);
    return tensor;
  }

  /// A leaf that is written where autograd does not see it.
  bool is_unseen(const Tensor& tensor) const {
    return tensor.is_leaf && !interpreter_.modes.grad_enabled;
  }

  std::shared_ptr<Tensor> tensor_in_order(const Value& value) {
    auto tensor = dense_tensor(value);
    if (tensor->requires_grad || !is_contiguous(*tensor)) refuse(kTensor);
    return tensor;
  }

  std::vector<Value> listed(const Value& tensors, bool is_listed) {
    if (!is_listed) return {tensors};
    std::vector<Value> all = elements_of(interpreter_, tensors);
    if (std::ssize(all) != size_) refuse("with these arguments");
    return all;
  }

  std::vector<ReceivingTensor> receivers_in_order(const Value& tensors, bool is_listed) {
    std::vector<ReceivingTensor> receivers;
    for (const Value& each : listed(tensors, is_listed)) {
      const auto tensor = tensor_in_order(each);
      for (const ReceivingTensor& other : receivers)
        if (memory_of(tensor) == memory_of(other.tensor)) refuse("into views of one tensor");
      receivers.push_back({tensor, std::nullopt, tensor->version});
    }
    return receivers;
  }

  /// What torch may raise for: a list has tensors of one shape, and what is one tensor is that of
  /// each process, one behind the other.
  void require_fit(const Tensor& whole, const Tensor& part, bool is_listed) {
    const graph::Type &one = whole.value->type, &other = part.value->type;
    graph::Shape expected = other.shape;
    const bool is_cut = !is_listed && !expected.empty();
    if (is_cut) expected.front() = expected.front() * size_;
    if (one.dtype != other.dtype || one.shape != expected || is_cut == is_listed)
      refuse("of tensors that do not fit");
  }

  void begin(const graph::OpDef& op, std::vector<graph::Value*> sent,
             std::vector<ReceivingTensor> receivers, uint32_t writes = 0) {
    graph::Value* started =
        interpreter_.builder().append(op, sent, std::move(attributes_))->output();
    interpreter_.collectives.push_back({name_, started, std::move(receivers), writes, false});
    interpreter_.mark(speculate::LineMark::Kind::graph, cat("collective: ", op.name));
  }

  Value work() {
    const size_t number = interpreter_.collectives.size() - 1;
    auto finish = std::make_shared<Native>(
        "wait", [number](Interpreter& inner, const CallArguments& arguments) {
          PendingCollective& collective = inner.collectives.at(number);
          if (!arguments.positional.empty())
            inner.refuse(ReasonCode::communication, "Work.wait with a time");
          if (!collective.is_done) Finish(inner, collective).run();
          return inner.none();
        });
    return call(interpreter_, own_class(interpreter_, "torchjanus.communication.Work"),
                {.positional = {std::move(finish)}, .keywords = {}});
  }

  Interpreter& interpreter_;
  const std::string name_;
  std::vector<Value> tensors_;
  std::shared_ptr<Instance> options_;
  graph::Attributes attributes_;
  int64_t size_ = 1;
};

}  // namespace

/// It is followed without the handler around it that notes exceptions.
Value follow_collective(Interpreter& interpreter, const char* path,
                        const CallArguments& arguments) {
  check_place(interpreter, path);
  const Object function = interpreter.must(PyObject_GetAttrString(imported(path), "__wrapped__"));
  const size_t before = interpreter.collectives.size();
  Value result = inline_function(interpreter, function.get(), nullptr, arguments);
  for (size_t i = before; i < interpreter.collectives.size(); ++i)
    interpreter.collectives[i].name = path;
  return result;
}

Value call_group_all_reduce(Interpreter& interpreter, const CallArguments& arguments) {
  GroupCall call(interpreter, "allreduce", arguments, 1);
  call.set_reduction();
  return call.in_place(op::all_reduce);
}

Value call_group_broadcast(Interpreter& interpreter, const CallArguments& arguments) {
  GroupCall call(interpreter, "broadcast", arguments, 1);
  call.set_root();
  return call.in_place(op::broadcast);
}

Value call_group_all_gather(Interpreter& interpreter, const CallArguments& arguments) {
  GroupCall call(interpreter, "allgather", arguments, 2);
  return call.gather(call.only(0), call.only(1), /*is_listed=*/true);
}

Value call_group_all_gather_single(Interpreter& interpreter, const CallArguments& arguments) {
  GroupCall call(interpreter, "all_gather_single", arguments, 2);
  return call.gather(call.tensors(0), call.tensors(1), /*is_listed=*/false);
}

Value call_group_reduce_scatter(Interpreter& interpreter, const CallArguments& arguments) {
  GroupCall call(interpreter, "reduce_scatter", arguments, 2);
  call.set_reduction();
  return call.scatter(call.only(0), call.only(1), /*is_listed=*/true);
}

Value call_group_reduce_scatter_single(Interpreter& interpreter, const CallArguments& arguments) {
  GroupCall call(interpreter, "reduce_scatter_single", arguments, 2);
  call.set_reduction();
  return call.scatter(call.tensors(0), call.tensors(1), /*is_listed=*/false);
}

Value make_collective_options(Interpreter& interpreter, const CallArguments& arguments) {
  return call(interpreter, own_class(interpreter, "torchjanus.communication.Options"), arguments);
}

Value refuse_of_work(Interpreter& interpreter, const CallArguments& arguments) {
  const auto* known = as<Known>(arguments.positional.at(1));
  const std::string name = known == nullptr ? "an attribute" : text_of(known->object.get());
  interpreter.refuse(ReasonCode::communication, cat("Work.", name));
}

void check_collectives_done(const Interpreter& interpreter) {
  for (const PendingCollective& each : interpreter.collectives)
    if (!each.is_done)
      interpreter.refuse(ReasonCode::communication,
                         cat(each.name, " (its wait() is not in the graph)"));
}

void check_not_repeated(const Interpreter& interpreter) {
  if (!interpreter.collectives.empty())
    interpreter.refuse(ReasonCode::communication,
                       cat(interpreter.collectives.front().name,
                           " (in a run whose gradient is due outside of the graph)"));
}

}  // namespace janus::frontend
