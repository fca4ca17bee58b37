// Operators of torch that the graph has no own operator for: torch is asked which overload the call
// is and what it gives; it goes in as an `opaque` node.
#include "frontend/tensors/opaque.h"

#include <algorithm>

#include "frontend/core/autocast_state.h"
#include "frontend/core/communication.h"
#include "frontend/core/torch_services.h"
#include "frontend/tensors/autocast.h"
#include "frontend/tensors/guarded_numbers.h"
#include "frontend/tensors/overlap.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "frontend/values/strides.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

graph::Value* operand_value(Interpreter& interpreter, const DescribedArguments& arguments,
                            const OperatorArgument* operand) {
  if (operand == nullptr) return interpreter.builder().none();
  const Value& value = arguments.source_of(operand);
  if (auto* tensor = as<Tensor>(value)) {
    refuse_leaf_view(interpreter, *tensor);
    return read(interpreter, *tensor);
  }
  return interpreter.graph_value(value);
}

/// A result may share memory with an operand; how is not known, so neither may be written, and the
/// result not be read once something else has written that memory. What outlives the run Python
/// takes again, by the same call: an operator that does more than to look is not called twice.
void note_alias(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments,
                const DescribedArguments& described, const ResolvedOperator& resolved, size_t index,
                Tensor& result) {
  int operand = index < resolved.alias_of.size() ? resolved.alias_of[index] : -1;
  if (operand < 0) return;
  auto base =
      shared_as<Tensor>(described.source_of(resolved.operands[static_cast<size_t>(operand)]));
  if (base == nullptr) return;
  result.uncertain_alias = true;
  base->uncertain_alias = true;
  result.taken_from = base;
  result.seen_version = memory_of(base.get())->version;
  result.view_output = index;
  result.is_one_of_list = resolved.packing != ResolvedOperator::Packing::single;
  if (!resolved.random) note_view_call(interpreter, result, callable, arguments);
}

/// The run may hold a tensor elsewhere than eager does: it is known to lie alike if it existed
/// before and is as it was, or if it is all of a fresh tensor in order.
void expect_known_place(const Frames& frames, const std::string& name,
                        const CallArguments& arguments) {
  for (const Value& argument : arguments.positional) {
    const auto* tensor = as<Tensor>(argument);
    if (tensor == nullptr) continue;
    const Tensor* memory = memory_of(tensor);
    const bool is_as_before = memory->source != nullptr && !memory->written;
    const bool is_fresh = memory == tensor && memory->source == nullptr && is_contiguous(*tensor);
    if (!is_as_before && !is_fresh)
      frames.refuse(ReasonCode::unsupported_tensor,
                    cat(name, " of a tensor of which only eager knows how it lies in memory"));
  }
}

/// Bindings of torch pack a list of tensors as a tuple; only `torch.ops` gives the list itself.
bool packs_lists_as_tuples(PyObject* callable) {
  return PyCFunction_Check(callable) != 0 || Py_IS_TYPE(callable, &PyMethodDescr_Type) != 0;
}

Value pack(ValueMaker& maker, PyObject* callable, const ResolvedOperator& resolved,
           std::vector<Value> results) {
  if (resolved.packing == ResolvedOperator::Packing::single)
    return results.empty() ? maker.none() : results[0];
  if (resolved.packing == ResolvedOperator::Packing::list && !packs_lists_as_tuples(callable))
    return make_list(std::move(results));
  Value packed = make_tuple(std::move(results));
  as<Sequence>(packed)->type = resolved.result_class;
  return packed;
}

/// Takes the ints among the arguments, which differ from run to run, for sizes; false if one can't
/// be one here.
bool take_as_sizes(Interpreter& interpreter, DescribedArguments& described) {
  for (OperatorArgument& argument : described.list) {
    if (argument.kind != OperatorArgument::Kind::number || argument.type != graph::Type::i64())
      continue;
    const std::optional<graph::Dim> size =
        interpreter.run_time_dimension(interpreter.graph_value(described.source_of(&argument)));
    if (!size) return false;
    argument.kind = OperatorArgument::Kind::dimension;
    argument.dim = *size;
  }
  return true;
}

/// `aten::relu_` computes what `aten::relu` does and writes it into its first argument.
std::optional<std::string> functional_name(const std::string& name) {
  bool in_place = name.starts_with("aten::") && name.ends_with('_') && !name.ends_with("__");
  return in_place ? std::optional(name.substr(0, name.size() - 1)) : std::nullopt;
}

/// The arguments of the function that computes what an in-place method writes.
CallArguments in_order_of_function(const OperatorFacts& facts, CallArguments arguments) {
  if (facts.takes_self_second && arguments.positional.size() == 2)
    std::swap(arguments.positional[0], arguments.positional[1]);
  return arguments;
}

/// Whether autograd tracks one of the operands.
bool is_tracked(const ResolvedOperator& resolved) {
  return std::ranges::any_of(resolved.operands, [](const OperatorArgument* operand) {
    return operand != nullptr && operand->requires_grad;
  });
}

/// Eager gives no gradient at all where a number of the run is 0: a norm of that order.
void assume_gradient(Interpreter& interpreter, const DescribedArguments& described,
                     const ResolvedOperator& resolved) {
  if (!resolved.zero_ends_gradient || !interpreter.modes.grad_enabled || !is_tracked(resolved))
    return;
  for (const OperatorArgument& argument : described.list)
    if (argument.is_varying_number())
      assume_compares(interpreter, op::scalar_ne,
                      interpreter.graph_value(described.source_of(&argument)), 0);
}

graph::Node* append_opaque(Interpreter& interpreter, DescribedArguments& described,
                           ResolvedOperator& resolved) {
  // Numbers that autograd could follow, but does not.
  const bool is_cut = std::ranges::count(resolved.differentiable, true) == 0 &&
                      std::ranges::any_of(resolved.results, [](const graph::Type& type) {
                        return type.is_tensor() && graph::is_differentiable(type.dtype);
                      });
  std::vector<graph::Value*> inputs;
  for (size_t i = 0; i < resolved.operands.size(); ++i) {
    const OperatorArgument* operand = resolved.operands[i];
    graph::Value* value = operand_value(interpreter, described, operand);
    const bool has_gradient = !resolved.without_gradient.contains(i) &&
                              !(is_cut && operand != nullptr && operand->requires_grad);
    inputs.push_back(has_gradient ? value : op::detach(interpreter.builder(), {value}));
  }
  if (resolved.random) resolved.attributes.set("_draws", true);
  if (std::ranges::any_of(resolved.alias_of, [](int operand) { return operand >= 0; }))
    resolved.attributes.set("_shares_memory", true);
  if (std::ranges::find(resolved.is_saved, true) != resolved.is_saved.end())
    resolved.attributes.set("_saves_results", resolved.is_saved);
  return interpreter.builder().append_unchecked(op::opaque, inputs, resolved.attributes,
                                                resolved.results);
}

/// The in-place form of the operator of that name, which `node` computes.
Value write_opaque(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments,
                   const std::string& name, const OperatorFacts& facts,
                   const ResolvedOperator& resolved, const graph::Node& node) {
  const bool any_tracked = is_tracked(resolved);
  auto self = arguments.positional.empty() ? nullptr : shared_as<Tensor>(arguments.positional[0]);
  // transpose_ and its like write nothing: they change where the tensor looks.
  const bool is_view =
      !resolved.alias_of.empty() && resolved.alias_of[0] >= 0 && resolved.same_as[0] == nullptr;
  if (self == nullptr || is_view || node.outputs.size() != 1 ||
      node.output()->type.shape != self->value->type.shape ||
      node.output()->type.dtype != self->value->type.dtype)  // most would raise
    interpreter.refuse(ReasonCode::unknown_callable, name);
  // A dropout that drops nothing.
  if (resolved.same_as[0] != nullptr && !facts.always_writes) return self;
  refuse_overlap(interpreter, *self, node, arguments, 1);
  auto produced_by = any_tracked ? describe_call(interpreter, callable, arguments, 0) : nullptr;
  write_in_place(interpreter, self, node, node.output(), any_tracked);
  self->producer = Producer::named(name.substr(name.find(':') + 2));
  self->produced_by = std::move(produced_by);
  return self;
}

Value opaque_results(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments,
                     const OperatorFacts& facts, DescribedArguments& described,
                     const ResolvedOperator& resolved, const graph::Node& node) {
  const bool any_tracked = is_tracked(resolved);
  std::vector<Value> results;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    graph::Value* output = node.outputs[i];
    if (resolved.same_as[i] != nullptr) {
      results.push_back(described.source_of(resolved.same_as[i]));
      continue;
    }
    if (!output->type.is_tensor()) {
      results.push_back(interpreter.number(output));
      continue;
    }
    bool differentiable = i < resolved.differentiable.size() && resolved.differentiable[i];
    if (any_tracked && !interpreter.modes.grad_enabled &&
        graph::is_differentiable(output->type.dtype))
      output = op::detach(interpreter.builder(), {output});
    auto tensor = make_tensor(interpreter, output,
                              differentiable && any_tracked && interpreter.modes.grad_enabled);
    if (!facts.gives_in_order) tensor->strides.reset();
    if (i < resolved.grad_fn_names.size()) tensor->grad_fn_name = resolved.grad_fn_names[i];
    note_alias(interpreter, callable, arguments, described, resolved, i, *tensor);
    results.push_back(std::move(tensor));
  }
  return pack(interpreter, callable, resolved, std::move(results));
}

}  // namespace

Value call_opaque(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments,
                  const std::string& native_refusal) {
  std::optional<std::string> name = torch_services().operator_name(callable);
  if (!name) return nullptr;
  if (is_communication(*name)) interpreter.refuse(ReasonCode::communication, *name);
  if (is_written_in_python(interpreter, *name) && is_in_process_group(interpreter))
    interpreter.refuse(ReasonCode::unknown_callable,
                       cat(*name, " (written in Python, so it may communicate)"));
  if (interpreter.modes.autocast.is_on) {
    const CallArguments cast = with_casts(interpreter, name->substr(name->find(':') + 2),
                                          torch_services().is_composite(*name), arguments);
    const WithoutAutocast within(interpreter.modes.autocast);
    return call_opaque(interpreter, callable, cast, native_refusal);
  }
  const std::optional<std::string> functional = functional_name(*name);
  const OperatorFacts facts = torch_services().facts(functional.value_or(*name));
  if (facts.looks_at_memory) expect_known_place(interpreter, *name, arguments);
  DescribedArguments described(interpreter);
  if (!described.add_all(functional ? in_order_of_function(facts, arguments) : arguments))
    return nullptr;
  WhyUnresolved why_not;
  std::optional<ResolvedOperator> resolved =
      torch_services().resolve(functional.value_or(*name), described.list, why_not);
  if (why_not.numbers_are_sizes && take_as_sizes(interpreter, described))
    resolved = torch_services().resolve(functional.value_or(*name), described.list, why_not);
  if (!resolved && !native_refusal.empty())
    interpreter.refuse(ReasonCode::shape_mismatch, cat(*name, ": ", native_refusal));
  if (!resolved)
    interpreter.refuse(ReasonCode::unknown_callable,
                       cat(*name, " (", why_not.text.substr(0, why_not.text.find('\n')), ")"));
  if (resolved->mutates) interpreter.refuse(ReasonCode::unknown_callable, *name);
  assume_gradient(interpreter, described, *resolved);
  const graph::Node* node = append_opaque(interpreter, described, *resolved);
  interpreter.mark(speculate::LineMark::Kind::graph);
  if (functional)
    return write_opaque(interpreter, callable, arguments, *name, facts, *resolved, *node);
  return opaque_results(interpreter, callable, arguments, facts, described, *resolved, *node);
}

Value call_resolved(Interpreter& interpreter, PyObject* callable, DescribedArguments& described,
                    ResolvedOperator& resolved, bool in_order) {
  const graph::Node* node = append_opaque(interpreter, described, resolved);
  interpreter.mark(speculate::LineMark::Kind::graph);
  const OperatorFacts facts{.gives_in_order = in_order};
  return opaque_results(interpreter, callable, {}, facts, described, resolved, *node);
}

}  // namespace janus::frontend
