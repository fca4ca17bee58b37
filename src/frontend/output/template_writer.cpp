#include "frontend/output/template_writer.h"

#include "frontend/autograd/custom_gradient.h"
#include "frontend/autograd/differentiable_results.h"
#include "frontend/autograd/gradient_flags.h"
#include "frontend/control/effects.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/tensor_hooks.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/default_factory.h"
#include "frontend/objects/partials.h"
#include "frontend/output/closure_code.h"
#include "frontend/recursion/runtime_store_log.h"
#include "frontend/tensors/arrays.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/identity_number.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/restart.h"
#include "frontend/values/symbolic_list.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;
using speculate::Template;

namespace {

Template made(Template::Kind kind) {
  Template form;
  form.kind = kind;
  return form;
}

Template from_source(const Source* source) {
  Template form = made(Template::Kind::source);
  form.source = source;
  return form;
}

Template constant(Object object) {
  Template form = made(Template::Kind::constant);
  form.object = std::move(object);
  return form;
}

Template call_of(const char* callable) {
  Template form = made(Template::Kind::call);
  form.object = Object::borrow(imported(callable));
  return form;
}

Template call_of(const char* callable, Template argument) {
  Template form = call_of(callable);
  form.children.push_back(std::move(argument));
  return form;
}

Template constant_call(Object callable) {
  Template form = made(Template::Kind::call);
  form.object = std::move(callable);
  return form;
}

size_t leaf_count(const ElementForm& form) { return list_types(form).size(); }

/// Whether the view, taken again, does not require the gradient of what it is of, as before.
bool loses_gradient(const Tensor& tensor) {
  if (tensor.producer.is(op::detach) || !graph::is_differentiable(tensor.value->type.dtype))
    return true;
  // A write that autograd sees gives eager's view a gradient.
  return !tensor.taken_with_gradients && memory_of(&tensor)->version == 0;
}

}  // namespace

Template TemplateWriter::whole(const Value& result) {
  if (interpreter_.call().function != nullptr) return write(result);
  return write_variables(result);
}

Template TemplateWriter::write_runtime_stores(const Value& written) {
  Template form = made(Template::Kind::tuple);
  for (const Value& list : as<Sequence>(written)->elements.known())
    form.children.push_back(write_runtime_stores(*as<Sequence>(list)));
  return form;
}

Template TemplateWriter::write_variables(const Value& result) {
  Template form = made(Template::Kind::tuple);
  const std::vector<Value>& elements = as<Sequence>(result)->elements;
  for (size_t i = 0; i < elements.size(); ++i) {
    interpreter_.blame_writer_of(i);
    form.children.push_back(write(elements[i]));
  }
  interpreter_.blame_nobody();
  return form;
}

Template TemplateWriter::write(const Value& value) {
  if (value == nullptr) return made(Template::Kind::unbound);
  switch (value->kind) {
    case ValueKind::known:
      return known(*as<Known>(value));
    case ValueKind::number:
      return number(value);
    case ValueKind::run_time:
      return result(as<RuntimeObject>(value)->value);
    case ValueKind::deferred:
      return as<Deferred>(value)->recipe;
    case ValueKind::optional:
      return optional(value);
    case ValueKind::either:
      return either(*as<Either>(value));
    case ValueKind::tensor:
    case ValueKind::sequence:
    case ValueKind::dictionary:
    case ValueKind::instance:
    case ValueKind::set:
    case ValueKind::slice:
    case ValueKind::method:
    case ValueKind::closure:
      return object(value);
    default:
      break;
  }
  refuse_function();
}

Template TemplateWriter::known(const Known& known) {
  PyObject* object = known.object.get();
  if (is_identity_number(object)) return identity(object);
  if (now_ && (PyList_Check(object) || PyDict_Check(object))) {
    Value shadow = opened(interpreter_, std::make_shared<Known>(known.object, known.source));
    if (as<Known>(shadow) == nullptr) return write(shadow);
  }
  if (known.source != nullptr) return from_source(known.source);
  Template form = made(Template::Kind::constant);
  form.object = known.object;
  return form;
}

Template TemplateWriter::identity(PyObject* number) {
  const Value object = numbered_by(number);
  if (object == nullptr)
    interpreter_.refuse(ReasonCode::dynamic_value, "the id of an object that is gone");
  return call_of("builtins.id", write(object));
}

Template TemplateWriter::number(const Value& value) {
  const auto& number = *as<Number>(value);
  if (number.source != nullptr) return from_source(number.source);
  return result(interpreter_.graph_value(value));
}

Template TemplateWriter::either(const Either& either) {
  for (const Value& one : {either.if_false, either.if_true})
    if (!is_number(one) && as<Known>(one) == nullptr && as<Either>(one) == nullptr &&
        as<Deferred>(one) == nullptr)
      throw CannotMerge{either.test, either.why};
  Template if_false = write(either.if_false), if_true = write(either.if_true);
  return chosen(std::move(if_false), std::move(if_true), interpreter_.add_result(either.flag));
}

Template TemplateWriter::optional(const Value& value) {
  for (const auto& leaf : interpreter_.entry_tensor_order)
    if (leaf->grad_replaced && leaf->grad == value) return attribute_of(leaf, "grad");
  const auto& optional = *as<Optional>(value);
  Template form = call_of("operator.getitem", made(Template::Kind::tuple));
  form.children[0].children.push_back(write(interpreter_.none()));
  form.children[0].children.push_back(write(optional.value));
  form.children.push_back(result(optional.flag));
  return form;
}

Template TemplateWriter::result(graph::Value* value) {
  Template form = made(Template::Kind::result);
  form.index = interpreter_.add_result(value);
  return form;
}

Template TemplateWriter::object(const Value& value) {
  auto [earlier, added] = places_.try_emplace(value.get(), 0);
  if (!added) {
    if (open_.contains(value.get()) && as<Closure>(value) != nullptr) refuse_function();
    if (open_.contains(value.get()))
      interpreter_.refuse(ReasonCode::dynamic_value, "a tuple or set that contains itself");
    Template form = made(Template::Kind::shared);
    form.index = earlier->second;
    return form;
  }
  size_t place = earlier->second = interpreter_.new_place();
  const auto* dictionary = as<Dictionary>(value);
  const auto* sequence = as<Sequence>(value);
  bool can_hold_itself = (dictionary != nullptr && !dictionary->type) ||
                         (as<Instance>(value) != nullptr && !is_partial(class_of(value))) ||
                         (sequence != nullptr && sequence->is_list && !sequence->type);
  if (!can_hold_itself) open_.insert(value.get());
  Template form = parts(value);
  open_.erase(value.get());
  // What is found again needs no sharing: a write that gives it may turn out to change nothing.
  if (form.kind == Template::Kind::source)
    places_.erase(value.get());
  else
    form.place = place;
  return form;
}

Template TemplateWriter::parts(const Value& value) {
  if (auto tensor = shared_as<Tensor>(value)) return write_tensor(tensor);
  if (const auto* sequence = as<Sequence>(value)) return write_sequence(*sequence);
  if (as<Dictionary>(value) != nullptr) return write_dictionary(value);
  if (const auto* instance = as<Instance>(value)) {
    if (is_exception(value))  // it holds the frames that it came through
      interpreter_.refuse(ReasonCode::dynamic_value, "an exception that outlives the run");
    if (is_partial(class_of(value))) return write_partial(*instance);
    return write_instance(*instance);
  }
  if (const auto* method = as<Method>(value)) return write_method(*method);
  if (const auto* slice = as<SliceValue>(value)) {
    Template form = made(Template::Kind::slice);
    for (const Value& part : {slice->start, slice->stop, slice->step})
      form.children.push_back(write(part));
    return form;
  }
  if (const auto* closure = as<Closure>(value)) return write_closure(*closure);
  return write_set(*as<SetValue>(value));
}

Template TemplateWriter::write_array(const std::shared_ptr<Tensor>& tensor) {
  if (tensor->requires_grad)
    interpreter_.refuse(ReasonCode::dynamic_value, "an array of a tensor that requires grad");
  return call_of("torch.Tensor.numpy", write(tensor));
}

Template TemplateWriter::write_closure(const Closure& closure) {
  const Object code = code_of_definition(closure);
  if (!code || !closure.keyword_defaults.empty()) refuse_function();
  const Object names = interpreter_.must(PyObject_GetAttrString(code.get(), "co_freevars"));
  Template cells = made(Template::Kind::tuple), defaults = cells;
  for (const Object& name : python::elements(names.get()))
    cells.children.push_back(write_cell(closure, text_of(name.get())));
  for (const Value& each : closure.defaults) defaults.children.push_back(write(each));
  Template form = call_of("types.FunctionType", constant(code));
  form.children.push_back(
      constant(Object::borrow(PyFunction_GetGlobals(closure.code->function.get()))));
  form.children.push_back(write(interpreter_.string(closure.name)));
  form.children.push_back(closure.defaults.empty() ? constant(Object::borrow(Py_None))
                                                   : std::move(defaults));
  form.children.push_back(std::move(cells));
  return form;
}

Template TemplateWriter::write_cell(const Closure& closure, std::string_view name) {
  const auto [owner, value] = free_variable(closure, name);
  if (value == nullptr || now_) refuse_function();
  const auto [earlier, added] = cells_.try_emplace({owner, std::string(name)}, 0);
  if (!added) {
    Template form = made(Template::Kind::shared);
    form.index = earlier->second;
    return form;
  }
  const size_t place = earlier->second = interpreter_.new_place();
  Template form = call_of("types.CellType", write(value));
  form.place = place;
  return form;
}

Template TemplateWriter::write_instance(const Instance& instance) {
  if (const auto tensor = tensor_of_array(instance)) return write_array(tensor);
  if (instance.fields->source != nullptr)
    interpreter_.refuse(ReasonCode::dynamic_value,
                        "an object that outlives the run, with a __dict__ that is not its own");
  Template form = write_dictionary(instance.fields);
  form.kind = Template::Kind::instance;
  form.object = instance.type;
  form.index = form.children.size();
  if (instance.elements != nullptr) form.children.push_back(write(instance.elements));
  if (instance.items == nullptr) return form;
  for (const auto& [key, item] : instance.items->items) {
    form.children.push_back(write(interpreter_.constant(key)));
    form.children.push_back(write(item));
  }
  return form;
}

Template TemplateWriter::write_partial(const Instance& partial) {
  const auto& fields = partial.fields->items;
  const Value arguments = fields.size() == 3 ? opened(interpreter_, fields[1].second) : nullptr;
  const Value keywords = fields.size() == 3 ? opened(interpreter_, fields[2].second) : nullptr;
  if (as<Sequence>(arguments) == nullptr || as<Dictionary>(keywords) == nullptr) refuse_function();
  // It gets a dict of its own: nothing else may show the one that the run knows.
  if (!places_.try_emplace(keywords.get(), interpreter_.new_place()).second) refuse_function();
  open_.insert(keywords.get());
  Template form = made(Template::Kind::call);
  form.object = partial.type;
  form.children.push_back(write(fields[0].second));
  for (const Value& argument : as<Sequence>(arguments)->elements)
    form.children.push_back(write(argument));
  for (const auto& [name, argument] : as<Dictionary>(keywords)->items) {
    form.keyword_names.push_back(text_of(name.get()));
    form.children.push_back(write(argument));
  }
  return form;
}

Template TemplateWriter::write_method(const Method& method) {
  PyObject* const function = known_object(method.function);
  if (function == nullptr || !PyFunction_Check(function)) refuse_function();
  Template form = call_of("types.MethodType", write(method.function));
  form.children.push_back(write(method.self));
  return form;
}

void TemplateWriter::refuse_function() const {
  interpreter_.refuse(ReasonCode::dynamic_value,
                      "a function, method or iterator that outlives the run");
}

Template TemplateWriter::write_set(const SetValue& set) {
  if (!set.only_grew && set.elements.size() > 1)
    interpreter_.refuse(ReasonCode::dynamic_value, "the order of a set's elements");
  Template form = made(Template::Kind::set);
  for (const Value& element : set.elements) form.children.push_back(write(element));
  if (!set.is_frozen) return form;
  Template frozen = made(Template::Kind::call);
  frozen.object = Object::borrow(reinterpret_cast<PyObject*>(&PyFrozenSet_Type));
  frozen.children.push_back(std::move(form));
  return frozen;
}

Template TemplateWriter::write_sequence(const Sequence& sequence) {
  if (sequence.viewed)
    interpreter_.refuse(ReasonCode::dynamic_value, "a view of a dict that leaves the run");
  if (sequence.source != nullptr && !now_) return from_source(sequence.source);
  if (const Rolled* list = sequence.elements.rolled().get()) {
    if (!sequence.type)
      return sequence.is_list ? write_rolled(*list)
                              : call_of("builtins.tuple", write_rolled(*list));
    Template form = made(Template::Kind::call);
    form.object = sequence.type;
    form.children.push_back(write_rolled(*list));
    return form;
  }
  if (!sequence.type) {
    Template form = made(sequence.is_list ? Template::Kind::list : Template::Kind::tuple);
    for (const Value& element : sequence.elements) form.children.push_back(write(element));
    return form;
  }
  Template form = made(Template::Kind::call);
  form.object = sequence.type;
  auto* type = reinterpret_cast<PyTypeObject*>(sequence.type.get());
  if (tuple_fields(type) != nullptr) {
    for (const Value& element : sequence.elements) form.children.push_back(write(element));
    return form;
  }
  Template parts = made(Template::Kind::tuple);
  for (const Value& element : sequence.elements) parts.children.push_back(write(element));
  form.children.push_back(std::move(parts));
  if (sequence.most >= 0) form.children.push_back(write(interpreter_.integer(sequence.most)));
  return form;
}

void TemplateWriter::check_rolled(const Rolled& list) const {
  escaping_.check_possible_aliases(*list.memory);
  if (interpreter_.made_in_inference && !interpreter_.output().environment.inference_mode)
    interpreter_.refuse(ReasonCode::mode_active, "a list of tensors made in inference mode");
  if (holds_tensors(list.form) && escaping_.count(list.memory.get()) > 1)
    interpreter_.refuse(ReasonCode::unsupported_tensor,
                        "two lists that outlive the run and hold the same tensors");
  if (list.memory->uncertain_alias)
    interpreter_.refuse(ReasonCode::unsupported_tensor,
                        "a list that outlives the run and holds views, or a tensor twice");
}

Template TemplateWriter::write_rolled(const Rolled& list) {
  check_rolled(list);
  size_t next = 0;
  Template form = write_elements(list, list.form, next);
  if (!list.front && list.form.kind != ElementForm::Kind::tuple) return form;
  if (list.front) form = call_of("builtins.reversed", std::move(form));
  return call_of("builtins.list", std::move(form));
}

Template TemplateWriter::write_elements(const Rolled& list, const ElementForm& form, size_t& next) {
  if (form.tracked && form.kind == ElementForm::Kind::tensor &&
      has_consumed_tape(list.lists[next]) && list.memory->grad_fn_name != kManyOperators) {
    graph::Value* value = list.lists[next++];
    Template consumed = result(value);
    speculate::Generated::DifferentiableResult record;
    record.result = consumed.index;
    record.grad_fn_name = list.memory->grad_fn_name;
    record.consumed = true;
    interpreter_.output().differentiable_results.push_back(std::move(record));
    return consumed;
  }
  if (form.tracked)
    interpreter_.refuse(ReasonCode::autograd,
                        "a list of tensors with gradients that outlives the run");
  if (form.kind == ElementForm::Kind::tensor) return shown(result(list.lists[next++]), {});
  if (form.kind != ElementForm::Kind::tuple) return result(list.lists[next++]);
  Template rows = call_of("builtins.zip");
  for (const ElementForm& part : form.parts)
    rows.children.push_back(write_elements(list, part, next));
  return list.front ? call_of("builtins.list", std::move(rows)) : rows;
}

Template TemplateWriter::write_runtime_stores(const Sequence& writes) {
  const Rolled* list = writes.elements.rolled().get();
  if (list == nullptr || !is_tracked(list->form)) return write_sequence(writes);
  check_rolled(*list);
  size_t next = 0, names = leaf_count(list->form.parts[0]) + leaf_count(list->form.parts[1]);
  Template rows = call_of("builtins.zip", write_elements(*list, list->form.parts[0], next));
  rows.children.push_back(write_named_elements(*list, list->form.parts[1], next, names));
  return call_of("builtins.list", std::move(rows));
}

Template TemplateWriter::write_named_elements(const Rolled& list, const ElementForm& form,
                                              size_t& next, size_t& names) {
  if (form.kind == ElementForm::Kind::tuple) {
    Template rows = call_of("builtins.zip");
    for (const ElementForm& part : form.parts)
      rows.children.push_back(write_named_elements(list, part, next, names));
    return rows;
  }
  if (!form.tracked) return result(list.lists[next++]);
  if (!is_consumed(interpreter_, {list.lists[next]}))
    interpreter_.refuse(ReasonCode::autograd,
                        "attributes with gradients that outlive the run, of objects met in it");
  speculate::Generated::DifferentiableResult record;
  Template consumed = result(list.lists[next++]);
  record.result = consumed.index;
  record.consumed = true;
  record.name_numbers = interpreter_.add_result(list.lists[names++]);
  record.names = runtime_store_log_of(interpreter_).grad_fn_names();
  interpreter_.output().differentiable_results.push_back(std::move(record));
  return consumed;
}

bool TemplateWriter::has_consumed_tape(const graph::Value* list) const {
  const auto& consumed = interpreter_.history.consumed;
  return std::any_of(consumed.begin(), consumed.end(), [&](const graph::Node* node) {
    return (node->op == &op::list_stack || node->op == &op::list_sum) &&
           node->inputs.front() == list;
  });
}

Template TemplateWriter::write_dictionary(const Value& value) {
  const auto& dictionary = *as<Dictionary>(value);
  if (dictionary.source != nullptr && !now_) return from_source(dictionary.source);
  Template form = made(Template::Kind::dict);
  for (const auto& [key, element] : dictionary.items) {
    form.children.push_back(write(interpreter_.constant(key)));
    form.children.push_back(write(element));
  }
  if (!dictionary.type) return form;
  Template typed = made(Template::Kind::call);
  typed.object = dictionary.type;
  // Those that the run makes are of an OrderedDict, that of a signature's parameters.
  if (is_proxy(dictionary)) form = call_of("collections.OrderedDict", std::move(form));
  if (const Value factory = factory_of(interpreter_, value))
    typed.children.push_back(write(factory));
  typed.children.push_back(std::move(form));
  if (dictionary.attributes == nullptr || dictionary.attributes->items.empty()) return typed;
  Template whole = call_of("torchjanus.containers.with_attributes", std::move(typed));
  whole.children.push_back(write_dictionary(dictionary.attributes));
  return whole;
}

Template TemplateWriter::shown(Template result, const Strides& strides) {
  interpreter_.output().shown_results.push_back({result.index, strides});
  return result;
}

Template TemplateWriter::write_tensor(const std::shared_ptr<Tensor>& tensor) {
  if (tensor->source != nullptr) return from_source(tensor->source);
  if (const auto leaf = leaf_with_gradient(interpreter_, *tensor))
    return attribute_of(leaf, "grad");
  if (!tensor->is_leaf && tensor->grad != nullptr)
    interpreter_.refuse(ReasonCode::autograd, "a result whose gradient is kept");
  if (is_made_leaf(*tensor)) return write_leaf(tensor);
  return write_contents(tensor);
}

Template TemplateWriter::write_leaf(const std::shared_ptr<Tensor>& leaf) {
  if (leaf->is_parameter)
    interpreter_.refuse(ReasonCode::heap_write, "a parameter made in the run");
  leaves_.push_back(leaf);
  Template form = call_of("torchjanus.leaves.leaf", write_contents(leaf));
  if (leaf->grad != nullptr) form.children.push_back(write(leaf->grad));
  return form;
}

Template TemplateWriter::write_contents(const std::shared_ptr<Tensor>& tensor) {
  if (memory_of(tensor.get())->is_borrowed)
    interpreter_.refuse(ReasonCode::unsupported_tensor,
                        "a result that may be a tensor met at run time");
  escaping_.check_possible_aliases(*tensor);
  if (escaping_.is_shown_view(*tensor)) {
    if (!escaping_.is_on_the_way(tensor)) return write_view(tensor);
    if (!escaping_.may_stand_alone(*tensor))
      interpreter_.refuse(ReasonCode::autograd,
                          "a result is a view on the way of another result's gradient");
  }
  graph::Value* value = read(interpreter_, *tensor);
  if (interpreter_.made_in_inference) return of_inference(result(value));
  Template form = result(value);
  if (!tensor->strides || is_surely_not_contiguous(*tensor))
    form = shown(std::move(form), tensor->strides);
  if (!tensor->is_leaf && shows_gradient(interpreter_, *tensor))
    note_differentiable_result(interpreter_, *tensor, form.index);
  return form;
}

void TemplateWriter::refuse_inference() const {
  interpreter_.refuse(ReasonCode::mode_active, "a result made in inference mode, or outside");
}

Template TemplateWriter::of_inference(Template form) {
  if (interpreter_.made_outside_inference) refuse_inference();
  if (interpreter_.output().environment.inference_mode) return form;
  return call_of("torchjanus.inference.made_in_inference_mode", std::move(form));
}

Template TemplateWriter::attribute_of(const Value& object, const char* name) {
  Template form = made(Template::Kind::call);
  form.object = Object::borrow(imported("builtins.getattr"));
  form.children.push_back(write(object));
  form.children.push_back(write(interpreter_.string(name)));
  return form;
}

Template TemplateWriter::write_view(const std::shared_ptr<Tensor>& tensor) {
  const std::shared_ptr<Tensor>& viewed = viewed_by(*tensor);
  if (tensor->untracked) return attribute_of(viewed, "data");
  if (tensor->uncertain_alias) read(interpreter_, *tensor);  // a copy shows no later write
  if (interpreter_.made_in_inference && !interpreter_.output().environment.inference_mode)
    refuse_inference();
  if (has_hooks(interpreter_.tensor_hooks, *tensor, tensor->value))
    check_no_custom_gradient(interpreter_, tensor->value);
  const auto* callee = as<Known>(tensor->view_callee);
  const bool names_base = tensor->base == nullptr || !tensor->view_arguments.positional.empty();
  if (callee == nullptr || !names_base)
    interpreter_.refuse(ReasonCode::unsupported_tensor, "a result is a view");
  if (viewed->requires_grad != tensor->requires_grad && !loses_gradient(*tensor))
    interpreter_.refuse(ReasonCode::autograd, "a result is a view made without gradients");
  Template taken = view_call(*tensor, *callee);
  if (!tensor->is_one_of_list) return taken;
  Template form = call_of("operator.getitem", std::move(taken));
  form.children.push_back(write(interpreter_.integer(static_cast<int64_t>(tensor->view_output))));
  return form;
}

Template TemplateWriter::view_call(const Tensor& tensor, const Known& callee) {
  Template form = constant_call(callee.object);
  if (tensor.taken_with_gradients != interpreter_.output().environment.grad_enabled)
    form = call_of(tensor.taken_with_gradients ? "torchjanus.views.taken_with_gradients"
                                               : "torchjanus.views.taken_without_gradients",
                   constant(callee.object));
  const CallArguments& arguments = tensor.view_arguments;
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    form.children.push_back(
        write(i == 0 && tensor.base != nullptr ? tensor.base : arguments.positional[i]));
  for (const auto& [name, value] : arguments.keywords) {
    form.keyword_names.push_back(name);
    form.children.push_back(write(value));
  }
  return form;
}

}  // namespace janus::frontend
