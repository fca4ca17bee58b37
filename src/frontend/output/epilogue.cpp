// The end of a run: what it returned becomes a template over results of the graph, what it changed
// becomes commits and rebinds.
#include "frontend/output/epilogue.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/mutation.h"
#include "frontend/autograd/consumed_tape.h"
#include "frontend/autograd/custom_gradient.h"
#include "frontend/autograd/differentiable_results.h"
#include "frontend/autograd/grad_attribute.h"
#include "frontend/autograd/gradient_flags.h"
#include "frontend/autograd/gradients.h"
#include "frontend/autograd/requires_grad.h"
#include "frontend/autograd/results_within.h"
#include "frontend/autograd/shared_updates.h"
#include "frontend/autograd/tracked_values.h"
#include "frontend/control/effects.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/autocast_state.h"
#include "frontend/core/cells.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/heap_aliases.h"
#include "frontend/core/heap_commit.h"
#include "frontend/core/locks.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/tensor_hooks.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/default_factory.h"
#include "frontend/objects/partials.h"
#include "frontend/recursion/runtime_store_log.h"
#include "frontend/tensors/arrays.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/tensors/tensor_data.h"
#include "frontend/torch_library/gradient_exchange.h"
#include "frontend/torch_library/program_collectives.h"
#include "frontend/values/constants.h"
#include "frontend/values/identity_number.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/restart.h"
#include "frontend/values/strides.h"
#include "frontend/values/symbolic_list.h"
#include "graph/op.h"
#include "ops/list.h"
#include "ops/number.h"
#include "passes/gradient/reachable.h"
#include "speculate/separate_memory.h"

namespace janus::frontend {

using python::Object;
using speculate::Template;

namespace {

/// Whether the run made the tensor as a leaf that gradients come to.
bool is_made_leaf(const Tensor& tensor) {
  return tensor.source == nullptr && tensor.requires_grad && tensor.is_leaf;
}

/// The frame that a free variable of the closure belongs to, and its value; null: there is none in
/// the run.
std::pair<const Variables*, Value> free_variable(const Closure& closure, std::string_view name) {
  for (const Variables* scope = closure.variables.get(); scope != nullptr;
       scope = scope->parent.get()) {
    const auto found = scope->values.find(name);
    if (found != scope->values.end()) return {scope, found->second};
    if (scope->scope->names.contains(std::string(name))) break;  // it is unbound
  }
  return {};
}

/// The definition of the closure among the statements of the function around it, if it has neither
/// decorators nor annotations, which Python evaluates.
bool is_plain_definition(const syntax::FunctionDef& definition) {
  const syntax::Arguments& arguments = definition.args;
  const auto is_annotated = [](const syntax::Argument* each) {
    return each != nullptr && each->annotation != nullptr;
  };
  return definition.decorator_list.empty() && definition.returns == nullptr &&
         std::ranges::none_of(arguments.posonlyargs, is_annotated) &&
         std::ranges::none_of(arguments.args, is_annotated) &&
         std::ranges::none_of(arguments.kwonlyargs, is_annotated) &&
         !is_annotated(arguments.vararg) && !is_annotated(arguments.kwarg);
}

/// The code object of a closure that a function of the program defines; null if that is not sure.
Object code_of_definition(const Closure& closure) {
  if (closure.body == nullptr || !closure.code->function) return {};
  const syntax::FunctionDef* definition = nullptr;
  for (const syntax::Statement* each : closure.code->tree->body)
    if (const auto* found = syntax::try_as<syntax::FunctionDef>(each);
        found != nullptr && &found->body == closure.body)
      definition = found;
  if (definition == nullptr || !is_plain_definition(*definition)) return {};
  const Object constants =
      python::attribute(PyFunction_GetCode(closure.code->function.get()), "co_consts");
  Object code;
  for (const Object& each : python::elements(constants.get())) {
    if (!PyCode_Check(each.get())) continue;
    const auto* made = reinterpret_cast<PyCodeObject*>(each.get());
    if (text_of(made->co_name) != closure.name) continue;
    if (code) return {};  // which of them?
    code = each;
  }
  return code;
}

/// Tensors that Python can reach from the result. Of a list of the graph, what stands for them: as
/// often as there are lists that hold them.
void collect_tensors(const Value& value, std::multiset<const Tensor*>& tensors,
                     std::set<const AbstractValue*>& seen) {
  if (value == nullptr || !seen.insert(value.get()).second) return;
  if (const auto* tensor = as<Tensor>(value)) {
    tensors.insert(tensor);
    if (is_made_leaf(*tensor)) collect_tensors(tensor->grad, tensors, seen);
  }
  if (const auto* optional = as<Optional>(value)) collect_tensors(optional->value, tensors, seen);
  if (const Rolled* list = rolled(value)) {
    tensors.insert(list->memory.get());
  } else if (const auto* sequence = as<Sequence>(value)) {
    for (const Value& element : sequence->elements.known()) collect_tensors(element, tensors, seen);
  }
  if (const auto* instance = as<Instance>(value)) {
    collect_tensors(instance->fields, tensors, seen);
    collect_tensors(instance->items, tensors, seen);
    collect_tensors(instance->elements, tensors, seen);
  }
  if (const auto* method = as<Method>(value)) collect_tensors(method->self, tensors, seen);
  if (const auto* closure = as<Closure>(value)) {
    for (const Value& each : closure->defaults) collect_tensors(each, tensors, seen);
    for (const auto& [name, kind] : closure->scope->names)
      if (kind == syntax::NameKind::free)
        collect_tensors(free_variable(*closure, name).second, tensors, seen);
  }
  if (const auto* dictionary = as<Dictionary>(value)) {
    for (const auto& [key, element] : dictionary->items) collect_tensors(element, tensors, seen);
    collect_tensors(dictionary->attributes, tensors, seen);
  }
}

class TemplateWriter {
 public:
  /// `now`: containers as they are at this moment, not as the run leaves them.
  TemplateWriter(Interpreter& interpreter, bool now) : interpreter_(interpreter), now_(now) {}

  /// All values that will be written: tensors among them that share memory must go on doing so.
  void expect(const std::vector<Value>& values) {
    std::set<const AbstractValue*> seen;
    for (const Value& value : values) collect_tensors(value, escaping_, seen);
  }
  /// Leaves of the run among what was written.
  std::span<const std::shared_ptr<Tensor>> leaves() const { return leaves_; }

  /// What becomes a `.grad` must not be, in some runs only, another tensor that Python holds.
  void check_new_gradients(const std::vector<Value>& written) const {
    std::set<const AbstractValue*> seen;
    std::multiset<const Tensor*> beside;  // tensors that Python can reach other than as a `.grad`
    for (const auto& leaf : interpreter_.entry_tensor_order)
      if (leaf->grad_replaced && as<Optional>(leaf->grad) != nullptr) seen.insert(leaf->grad.get());
    for (const Value& value : written) collect_tensors(value, beside, seen);
    for (const auto& leaf : interpreter_.entry_tensor_order) {
      const auto* optional = as<Optional>(leaf->grad);
      const auto* grad = as<Tensor>(optional != nullptr ? optional->value : leaf->grad);
      if (!leaf->grad_replaced || grad == nullptr || grad->source != nullptr) continue;
      const bool is_shown =
          optional != nullptr && std::ranges::any_of(beside, [&](const Tensor* other) {
            return memory_of(other) == memory_of(grad);
          });
      if (is_shown || may_be_another(*grad)) follow_branch_of(optional, *grad);
    }
  }

  Template whole(const Value& result) {
    if (interpreter_.call().function != nullptr) return write(result);
    return write_variables(result);
  }
  /// What the run writes to objects that it meets (runtime_store_log.h).
  Template write_runtime_stores(const Value& written) {
    Template form = made(Template::Kind::tuple);
    for (const Value& list : as<Sequence>(written)->elements.known())
      form.children.push_back(write_runtime_stores(*as<Sequence>(list)));
    return form;
  }
  /// The result of a run of statements: what can't be written is laid to who made it.
  Template write_variables(const Value& result) {
    Template form = made(Template::Kind::tuple);
    const std::vector<Value>& elements = as<Sequence>(result)->elements;
    for (size_t i = 0; i < elements.size(); ++i) {
      interpreter_.blame_writer_of(i);
      form.children.push_back(write(elements[i]));
    }
    interpreter_.blame_nobody();
    return form;
  }
  Template write(const Value& value) {
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

 private:
  static Template made(Template::Kind kind) {
    Template form;
    form.kind = kind;
    return form;
  }

  Template from_source(const Source* source) {
    Template form = made(Template::Kind::source);
    form.source = source;
    return form;
  }

  Template known(const Known& known) {
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

  /// id(object)
  Template identity(PyObject* number) {
    const Value object = numbered_by(number);
    if (object == nullptr)
      interpreter_.refuse(ReasonCode::dynamic_value, "the id of an object that is gone");
    return call_of("builtins.id", write(object));
  }

  Template number(const Value& value) {
    const auto& number = *as<Number>(value);
    if (number.source != nullptr) return from_source(number.source);
    return result(interpreter_.graph_value(value));
  }

  /// (second, first)[flag], of what has no state.
  Template either(const Either& either) {
    for (const Value& one : {either.if_false, either.if_true})
      if (!is_number(one) && as<Known>(one) == nullptr && as<Either>(one) == nullptr &&
          as<Deferred>(one) == nullptr)
        throw CannotMerge{either.test, either.why};
    Template if_false = write(either.if_false), if_true = write(either.if_true);
    return chosen(std::move(if_false), std::move(if_true), interpreter_.add_result(either.flag));
  }

  /// (None, value)[flag]
  Template optional(const Value& value) {
    for (const auto& leaf : interpreter_.entry_tensor_order)
      if (leaf->grad_replaced && leaf->grad == value) return attribute_of(leaf, "grad");
    const auto& optional = *as<Optional>(value);
    Template form = call_of("operator.getitem", made(Template::Kind::tuple));
    form.children[0].children.push_back(write(interpreter_.none()));
    form.children[0].children.push_back(write(optional.value));
    form.children.push_back(result(optional.flag));
    return form;
  }

  Template result(graph::Value* value) {
    Template form = made(Template::Kind::result);
    form.index = interpreter_.add_result(value);
    return form;
  }

  /// Objects with an identity: made once.
  Template object(const Value& value) {
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

  Template parts(const Value& value) {
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

  /// What shares the memory of a tensor that may require a gradient by now is not made.
  Template write_array(const std::shared_ptr<Tensor>& tensor) {
    if (tensor->requires_grad)
      interpreter_.refuse(ReasonCode::dynamic_value, "an array of a tensor that requires grad");
    return call_of("torch.Tensor.numpy", write(tensor));
  }

  /// types.FunctionType(code, globals, name, defaults, cells)
  Template write_closure(const Closure& closure) {
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

  static Template constant(Object object) {
    Template form = made(Template::Kind::constant);
    form.object = std::move(object);
    return form;
  }

  /// A cell of a variable of the function that the closure is defined in, one for all closures. The
  /// function has returned, so that the variable has its last value.
  Template write_cell(const Closure& closure, std::string_view name) {
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

  Template write_instance(const Instance& instance) {
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

  /// functools.partial(function, *arguments, **keywords)
  Template write_partial(const Instance& partial) {
    const auto& fields = partial.fields->items;
    const Value arguments = fields.size() == 3 ? opened(interpreter_, fields[1].second) : nullptr;
    const Value keywords = fields.size() == 3 ? opened(interpreter_, fields[2].second) : nullptr;
    if (as<Sequence>(arguments) == nullptr || as<Dictionary>(keywords) == nullptr)
      refuse_function();
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

  /// A function that is bound to an object.
  Template write_method(const Method& method) {
    PyObject* const function = known_object(method.function);
    if (function == nullptr || !PyFunction_Check(function)) refuse_function();
    Template form = call_of("types.MethodType", write(method.function));
    form.children.push_back(write(method.self));
    return form;
  }

  [[noreturn]] void refuse_function() const {
    interpreter_.refuse(ReasonCode::dynamic_value,
                        "a function, method or iterator that outlives the run");
  }

  Template write_set(const SetValue& set) {
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

  Template write_sequence(const Sequence& sequence) {
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

  void check_rolled(const Rolled& list) const {
    check_possible_aliases(*list.memory);
    if (interpreter_.made_in_inference && !interpreter_.output().environment.inference_mode)
      interpreter_.refuse(ReasonCode::mode_active, "a list of tensors made in inference mode");
    if (holds_tensors(list.form) && escaping_.count(list.memory.get()) > 1)
      interpreter_.refuse(ReasonCode::unsupported_tensor,
                          "two lists that outlive the run and hold the same tensors");
    if (list.memory->uncertain_alias)
      interpreter_.refuse(ReasonCode::unsupported_tensor,
                          "a list that outlives the run and holds views, or a tensor twice");
  }

  /// A list of which the graph makes the elements.
  Template write_rolled(const Rolled& list) {
    check_rolled(list);
    size_t next = 0;
    Template form = write_elements(list, list.form, next);
    if (!list.front && list.form.kind != ElementForm::Kind::tuple) return form;
    if (list.front) form = call_of("builtins.reversed", std::move(form));
    return call_of("builtins.list", std::move(form));
  }

  Template write_elements(const Rolled& list, const ElementForm& form, size_t& next) {
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

  /// What the run writes to objects that it meets, under one name: behind object and value stand
  /// the numbers of the names of autograd's nodes.
  Template write_runtime_stores(const Sequence& writes) {
    const Rolled* list = writes.elements.rolled().get();
    if (list == nullptr || !is_tracked(list->form)) return write_sequence(writes);
    check_rolled(*list);
    size_t next = 0, names = leaf_count(list->form.parts[0]) + leaf_count(list->form.parts[1]);
    Template rows = call_of("builtins.zip", write_elements(*list, list->form.parts[0], next));
    rows.children.push_back(write_named_elements(*list, list->form.parts[1], next, names));
    return call_of("builtins.list", std::move(rows));
  }

  Template write_named_elements(const Rolled& list, const ElementForm& form, size_t& next,
                                size_t& names) {
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

  static size_t leaf_count(const ElementForm& form) { return list_types(form).size(); }

  /// Whether backward() has run through all elements of the list, and freed what they need.
  bool has_consumed_tape(const graph::Value* list) const {
    const auto& consumed = interpreter_.history.consumed;
    return std::any_of(consumed.begin(), consumed.end(), [&](const graph::Node* node) {
      return (node->op == &op::list_stack || node->op == &op::list_sum) &&
             node->inputs.front() == list;
    });
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

  Template write_dictionary(const Value& value) {
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

  /// A result that does not lie in order; without strides only the run knows.
  Template shown(Template result, const Strides& strides) {
    interpreter_.output().shown_results.push_back({result.index, strides});
    return result;
  }

  Template write_tensor(const std::shared_ptr<Tensor>& tensor) {
    if (tensor->source != nullptr) return from_source(tensor->source);
    if (const auto leaf = leaf_with_gradient(*tensor)) return attribute_of(leaf, "grad");
    if (!tensor->is_leaf && tensor->grad != nullptr)
      interpreter_.refuse(ReasonCode::autograd, "a result whose gradient is kept");
    if (is_made_leaf(*tensor)) return write_leaf(tensor);
    return write_contents(tensor);
  }

  /// Writes a leaf that the run made.
  Template write_leaf(const std::shared_ptr<Tensor>& leaf) {
    if (leaf->is_parameter)
      interpreter_.refuse(ReasonCode::heap_write, "a parameter made in the run");
    leaves_.push_back(leaf);
    Template form = call_of("torchjanus.leaves.leaf", write_contents(leaf));
    if (leaf->grad != nullptr) form.children.push_back(write(leaf->grad));
    return form;
  }

  Template write_contents(const std::shared_ptr<Tensor>& tensor) {
    if (memory_of(tensor.get())->is_borrowed)
      interpreter_.refuse(ReasonCode::unsupported_tensor,
                          "a result that may be a tensor met at run time");
    check_possible_aliases(*tensor);
    if (is_shown_view(*tensor)) return write_view(tensor);
    graph::Value* value = read(interpreter_, *tensor);
    if (interpreter_.made_in_inference) return of_inference(result(value));
    Template form = result(value);
    if (!tensor->strides || is_surely_not_contiguous(*tensor))
      form = shown(std::move(form), tensor->strides);
    if (!tensor->is_leaf && shows_gradient(interpreter_, *tensor))
      note_differentiable_result(interpreter_, *tensor, form.index);
    return form;
  }

  [[noreturn]] void refuse_inference() const {
    interpreter_.refuse(ReasonCode::mode_active, "a result made in inference mode, or outside");
  }

  /// A tensor that was made in inference mode: where the call itself is, what the run makes is so.
  Template of_inference(Template form) {
    if (interpreter_.made_outside_inference) refuse_inference();
    if (interpreter_.output().environment.inference_mode) return form;
    return call_of("torchjanus.inference.made_in_inference_mode", std::move(form));
  }

  /// Whether the tensor shares memory with another one that Python holds must not depend on a
  /// branch.
  void check_possible_aliases(const Tensor& tensor) const {
    if (may_be_another(tensor))
      interpreter_.refuse(ReasonCode::unsupported_tensor,
                          "a result that is another tensor on one side of a branch");
  }

  /// Whether it shares memory with another tensor that Python holds on one side of a branch.
  bool may_be_another(const Tensor& tensor) const {
    const Tensor* root = memory_of(&tensor);
    std::set<const Tensor*> seen = {root};
    return may_be_another(tensor, *root, seen);
  }

  /// Of the tensor, what `step` may be, which it may be.
  bool may_be_another(const Tensor& tensor, const Tensor& step,
                      std::set<const Tensor*>& seen) const {
    for (const PossibleAlias& alias : step.possible_aliases) {
      auto other = alias.tensor.lock();
      if (other == nullptr || !seen.insert(other.get()).second) continue;
      if (may_be_another(tensor, *other, seen)) return true;
      const Tensor* memory = memory_of(other.get());
      if (memory->source != nullptr || memory->is_borrowed || is_new_gradient(*memory)) return true;
      for (const Tensor* escaping : escaping_)
        if (escaping != &tensor && may_share(*escaping, other.get())) return true;
    }
    return false;
  }

  static bool may_share(const Tensor& tensor, const Tensor* root) {
    const Tensor* own = memory_of(&tensor);
    if (own == root) return true;
    for (const PossibleAlias& alias : own->possible_aliases)
      if (alias.tensor.lock().get() == root) return true;
    return false;
  }

  /// What Python reads from the object once the run's writes are done.
  Template attribute_of(const Value& object, const char* name) {
    Template form = made(Template::Kind::call);
    form.object = Object::borrow(imported("builtins.getattr"));
    form.children.push_back(write(object));
    form.children.push_back(write(interpreter_.string(name)));
    return form;
  }

  /// The branch that decides which tensor the `.grad` is, or whether it is one.
  [[noreturn]] void follow_branch_of(const Optional* optional, const Tensor& grad) const {
    const std::string why = "a .grad is another tensor on one side";
    if (optional != nullptr) throw CannotMerge{optional->test, why};
    std::vector<graph::Value*> contents = grad.past_values;
    contents.push_back(grad.value);
    for (const graph::Value* value : contents) {
      while (value->definition != nullptr && value->definition->op == &op::detach)
        value = value->definition->inputs.front();
      const auto test = interpreter_.scope_nodes.find(value->definition);
      if (test != interpreter_.scope_nodes.end()) throw CannotMerge{test->second, why};
    }
    interpreter_.refuse(ReasonCode::autograd, why);
  }

  /// Whether it becomes the `.grad` of a tensor of the entry, in some runs at least.
  bool is_new_gradient(const Tensor& tensor) const {
    if (tensor.source != nullptr) return false;  // it was there, and may stay
    return std::ranges::any_of(interpreter_.entry_tensor_order, [&](const auto& leaf) {
      const auto* optional = as<Optional>(leaf->grad);
      const Value& gradient = optional != nullptr ? optional->value : leaf->grad;
      return leaf->grad_replaced && gradient.get() == &tensor;
    });
  }

  /// The tensor of the entry whose new `.grad` that tensor is: a result that is the gradient must
  /// be the same object as the attribute.
  std::shared_ptr<Tensor> leaf_with_gradient(const Tensor& gradient) const {
    for (const auto& leaf : interpreter_.entry_tensor_order)
      if (leaf->grad_replaced && leaf->grad.get() == &gradient) return leaf;
    return nullptr;
  }

  /// Whether Python can tell that the tensor shares memory with another, has other strides than a
  /// fresh one, or requires the gradient of what it is a view of.
  bool is_shown_view(const Tensor& tensor) const {
    const Tensor* memory = memory_of(&tensor);
    if (memory == &tensor) return false;
    if (is_leaf_view(tensor) || (tensor.base != nullptr && !is_contiguous(tensor))) return true;
    if (memory->source != nullptr || leaf_with_gradient(*memory) != nullptr) return true;
    for (const Tensor* other : escaping_)
      if (other != &tensor && memory_of(other) == memory) return true;
    return false;
  }

  /// The view is taken again, by Python, of what the tensor that it is of is after the run. So it
  /// is a view or a copy as in eager, whatever is known of strides here.
  Template write_view(const std::shared_ptr<Tensor>& tensor) {
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

  /// Whether the view, taken again, does not require the gradient of what it is of, as before.
  static bool loses_gradient(const Tensor& tensor) {
    if (tensor.producer.is(op::detach) || !graph::is_differentiable(tensor.value->type.dtype))
      return true;
    // A write that autograd sees gives eager's view a gradient.
    return !tensor.taken_with_gradients && memory_of(&tensor)->version == 0;
  }

  /// Autograd treats a view as the mode says in which it was taken.
  Template view_call(const Tensor& tensor, const Known& callee) {
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

  static Template constant_call(Object callable) {
    Template form = made(Template::Kind::call);
    form.object = std::move(callable);
    return form;
  }

  Interpreter& interpreter_;
  const bool now_;
  std::multiset<const Tensor*> escaping_;
  std::vector<std::shared_ptr<Tensor>> leaves_;
  std::map<const AbstractValue*, size_t> places_;
  std::map<std::pair<const Variables*, std::string>, size_t> cells_;  ///< their places
  std::set<const AbstractValue*> open_;  // being written, and not there before their parts are
};

void commit_tensors(Interpreter& interpreter) {
  for (const auto& tensor : interpreter.entry_tensor_order) {
    if (!tensor->written) continue;
    if (tensor->requires_grad && !tensor->is_leaf)
      interpreter.refuse(
          ReasonCode::autograd,
          cat(tensor->source->describe(), " becomes part of autograd's graph by a write in place"));
    if (tensor->data_replaced) {
      commit_data(interpreter, *tensor);
      continue;
    }
    if (is_planted(State::contents, Mutation::not_written)) continue;
    const std::string& cell = cell_of(interpreter, *tensor);
    std::vector<graph::Value*> written = {tensor->value};
    if (is_planted(State::contents, Mutation::twice))
      written[0] = op::add(interpreter.builder(), {tensor->value, tensor->value});
    if (tensor->varying_writes != nullptr) written.push_back(tensor->varying_writes);
    graph::Attributes attributes{{"cell", cell}};
    const int64_t writes = tensor->version - tensor->silent_writes;
    if (writes != 1) attributes.set("versions", writes);
    interpreter.builder().append(op::commit, written, std::move(attributes));
  }
}

bool changes(const AutogradState& autograd, const Tensor& tensor) {
  return tensor.written || autograd.kept_apart.contains(&tensor);
}

/// A view of a tensor that needs no gradient may be treated as any tensor if it is only read.
void accept_views(Interpreter& interpreter) {
  std::set<const Source*> read;
  for (const auto& tensor : interpreter.entry_tensor_order)
    if (!tensor->requires_grad && !changes(interpreter, *tensor)) read.insert(tensor->source);
  for (Assumption& each : interpreter.output().assumptions)
    if (each.kind == Assumption::Kind::tensor && read.contains(each.source))
      each.tensor.may_be_view = true;
}

/// What one path leads to is another path's tensor in some calls: a change through the one would
/// have to show in the other.
void refuse_changed_aliases(Interpreter& interpreter) {
  for (const auto& [object, tensors] : interpreter.entry_tensors) {
    if (tensors.size() < 2) continue;
    for (const auto& tensor : tensors)
      if (changes(interpreter, *tensor) || tensor->requires_grad || tensor->grad_replaced)
        interpreter.refuse(ReasonCode::unsupported_tensor,
                           cat("a change of ", tensor->source->describe(),
                               ", which is another argument's tensor in some calls"));
  }
}

bool takes_gradients(Interpreter& interpreter) {
  bool takes = std::ranges::any_of(interpreter.entry_tensor_order,
                                   [](const auto& tensor) { return tensor->grad_replaced; });
  graph::for_each_node(interpreter.output().graph.body(),
                       [&](const graph::Node& node) { takes |= node.op == &op::gradient; });
  return takes;
}

/// How many tensors of the graph are the same one in the call at hand, and which of them each is.
struct EntryAliases {
  size_t most = 1;
  std::unordered_map<const Tensor*, size_t> number;
};

EntryAliases aliases_at_entry(const EntryTensors& entry) {
  EntryAliases aliases;
  for (const auto& [object, tensors] : entry.entry_tensors) {
    aliases.most = std::max(aliases.most, tensors.size());
    for (size_t i = 0; i < tensors.size() && tensors.size() > 1; ++i)
      aliases.number.emplace(tensors[i].get(), i);
  }
  return aliases;
}

/// Two of them that are one tensor in another call have one gradient there, the sum of both. What
/// is changed is told from all others by its memory (assume_separate). Of those that are one tensor
/// here, whose gradients are only read, each is told from the rest.
void assume_distinct_leaves(Interpreter& interpreter) {
  if (!takes_gradients(interpreter)) return;
  const EntryAliases aliases = aliases_at_entry(interpreter);
  for (size_t number = 0; number < aliases.most; ++number) {
    std::vector<const Source*> leaves;
    for (const auto& tensor : interpreter.entry_tensor_order) {
      const auto alias = aliases.number.find(tensor.get());
      const bool belongs = alias == aliases.number.end() || alias->second == number;
      if (belongs && (tensor->requires_grad || tensor->grad != nullptr) &&
          !changes(interpreter, *tensor))
        leaves.push_back(tensor->source);
    }
    if (leaves.size() < 2) continue;
    const int64_t group = interpreter.new_group();
    for (const Source* source : leaves)
      interpreter.assume(Assumption::Kind::not_same_object, source, {}, group);
  }
}

/// A write must not show in another tensor of the graph, nor a changed requires_grad in a view.
void assume_separate(Interpreter& interpreter) {
  const auto& tensors = interpreter.entry_tensor_order;
  if (std::ranges::none_of(tensors, [&](const auto& each) { return changes(interpreter, *each); }))
    return;
  size_t count = tensors.size();
  for (const auto& [source, list] : interpreter.entry_lists)
    count += count_tensors(*list.pattern, list.object.get());
  speculate::SeparateMemory separate(count);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool is_changed = changes(interpreter, *tensors[i]);
    if (const auto other = separate.add(i, tensors[i]->storage, is_changed))
      interpreter.refuse(ReasonCode::unsupported_tensor,
                         cat(tensors[i]->source->describe(), " shares memory with ",
                             tensors[*other]->source->describe()));
    Assumption assumption;
    assumption.kind = Assumption::Kind::separate_memory;
    assumption.source = tensors[i]->source;
    assumption.number = is_changed ? 1 : 0;
    interpreter.assume(std::move(assumption));
  }
  for (const auto& [source, list] : interpreter.entry_lists) {
    for_each_tensor(*list.pattern, list.object.get(), [&](PyObject* element) {
      if (separate.add(count, speculate::tensor_access().storage_of(element), false))
        throw CannotMerge{list.elements->test,
                          "a tensor in it shares memory with one that is written"};
    });
    Assumption assumption;
    assumption.kind = Assumption::Kind::separate_memory;
    assumption.source = source;
    assumption.elements = list.pattern;
    interpreter.assume(std::move(assumption));
  }
}

void note_leaf(Interpreter& interpreter, Tensor& leaf) {
  speculate::Generated& output = interpreter.output();
  const graph::Value* first = leaf.past_values.empty() ? leaf.value : leaf.past_values.front();
  const graph::Value* counterpart = interpreter.switches.counterpart_or_null(first);
  auto inputs = output.graph.inputs();
  auto input = std::find_if(inputs.begin(), inputs.end(), [&](const graph::Value* value) {
    return value == first || value == counterpart;
  });
  if (input != inputs.end())
    output.differentiable_inputs.push_back(static_cast<size_t>(input - inputs.begin()));
  else
    output.differentiable_cells.push_back(cell_of(interpreter, leaf));
}

/// A second backward through a freed graph raises: that must happen in eager execution as well.
void check_consumed(Interpreter& interpreter) {
  const auto& all = interpreter.output().differentiable_results;
  if (std::ranges::none_of(all, &speculate::Generated::DifferentiableResult::consumed)) return;
  ConsumedTape tape(interpreter);
  for (const auto& result : all) {
    graph::Value* const value = interpreter.results()[result.result];
    bool consumed = false;
    const bool is_own = beyond_custom_gradients(interpreter, {value}, consumed).size() == 1;
    if (result.consumed && is_own && !result.name_numbers) tape.check_raises(value);
  }
}

/// A gradient that is due outside would have to come to them.
void check_not_reached(Interpreter& interpreter, const std::vector<graph::Value*>& results,
                       std::span<const std::shared_ptr<Tensor>> leaves) {
  for (const auto& leaf : leaves) {
    const std::vector<bool> reached =
        passes::reachable(results, tracked_values(interpreter, *leaf));
    if (std::ranges::find(reached, true) != reached.end())
      interpreter.refuse(ReasonCode::autograd, "a result requires grad for a leaf made in the run");
  }
}

/// Leaves of the entry that gradients of the differentiable results reach. `made`: leaves of the
/// run that are results.
void note_differentiable_leaves(Interpreter& interpreter,
                                std::span<const std::shared_ptr<Tensor>> made) {
  speculate::Generated& output = interpreter.output();
  if (output.differentiable_results.empty()) return;
  check_consumed(interpreter);
  std::vector<graph::Value*> results;
  for (const auto& result : output.differentiable_results)
    if (!result.consumed) results.push_back(interpreter.results()[result.result]);
  if (results.empty()) return;
  if (interpreter.has_run_time_dimensions())
    interpreter.refuse(ReasonCode::autograd,
                       "a gradient due outside of a size that the run decides");
  check_saved_values(interpreter, results);
  check_not_within(interpreter, results);
  check_not_reached(interpreter, results, made);
  std::vector<graph::Value*> targets = results;
  for (const auto& tensor : interpreter.entry_tensor_order) {
    const std::vector<graph::Value*> values = tracked_values(interpreter, *tensor);
    std::vector<bool> reached = passes::reachable(results, values);
    if (std::find(reached.begin(), reached.end(), true) == reached.end()) continue;
    if (!tensor->requires_grad || is_switched(interpreter, *tensor))
      interpreter.refuse(ReasonCode::autograd, cat("results depend on ", tensor->source->describe(),
                                                   ", whose requires_grad was changed since"));
    targets.insert(targets.end(), values.begin(), values.end());
    if (tensor->written)
      interpreter.refuse(ReasonCode::autograd,
                         "results depend on a leaf that is written in the same run");
    note_leaf(interpreter, *tensor);
  }
  // Each by itself: backward() outside may begin at one of them alone.
  for (graph::Value* result : results) check_certain(interpreter, {result}, targets);
}

bool is_work(const graph::Node& node) {
  switch (node.op->role) {
    case graph::Role::constant:
    case graph::Role::state:
    case graph::Role::guard:
    case graph::Role::size:
      return false;
    default:
      return !ops::is_of_numbers(*node.op) && node.op->computed_by != graph::ComputedBy::python;
  }
}

/// All that the run has taken it gives back. An operator of the program's own may wait for a lock
/// that the run has before and after it needs it.
void check_locks(Interpreter& interpreter) {
  if (interpreter.output().effects.empty()) return;
  if (lock_in_use(interpreter.heap) != nullptr)
    interpreter.refuse(ReasonCode::heap_write, "a lock, which stays taken");
  graph::for_each_node(interpreter.output().graph.body(), [&](const graph::Node& node) {
    if (node.op != &op::opaque) return;
    const std::string name = node.attributes.get<std::string>("operator");
    if (!name.starts_with("aten::"))
      interpreter.refuse(ReasonCode::unknown_callable,
                         cat("the operator ", name, " beside a lock"));
  });
}

}  // namespace

Template template_of(Interpreter& interpreter, const Value& value) {
  return TemplateWriter(interpreter, true).write(value);
}

void finish(Interpreter& interpreter, const Value& result) {
  check_locks(interpreter);
  check_collectives_done(interpreter);
  std::vector<Value> lasting = values_written(interpreter.heap);
  lasting.push_back(result);
  RuntimeStoreLog& log = runtime_store_log_of(interpreter);
  log.check_consumed();
  const Value stores = log.written();
  lasting.push_back(stores);
  TemplateWriter writer(interpreter, false);
  writer.expect(lasting);
  writer.check_new_gradients(lasting);
  interpreter.output().result = writer.whole(result);
  commit_heap(interpreter.heap, interpreter.output().writes,
              [&](const Value& value) { return writer.write(value); });
  if (stores != nullptr) {
    interpreter.output().writes.push_back(log.commit());
    interpreter.output().writes.back().value = writer.write_runtime_stores(stores);
  }
  assume_aliases(interpreter);
  if (interpreter.modes.grad_enabled != interpreter.output().environment.grad_enabled)
    interpreter.refuse(ReasonCode::heap_write, "the grad mode");
  const auto& outside = interpreter.output().environment;
  if (interpreter.modes.autocast !=
      Autocast{outside.autocast, outside.autocast_dtype, outside.autocast_keeps_casts, 0})
    interpreter.refuse(ReasonCode::heap_write, "autocast");
  finish_autograd(interpreter);
  commit_requires_grad(interpreter);
  note_differentiable_leaves(interpreter, writer.leaves());
  commit_tensors(interpreter);
  accept_views(interpreter);
  refuse_changed_aliases(interpreter);
  assume_distinct_leaves(interpreter);
  assume_separate(interpreter);
  check_gradients_shared(interpreter);
  interpreter.output().is_shared_update = is_shared_update(interpreter);
  graph::Block& body = interpreter.output().graph.body();
  body.results = interpreter.results();
  for (const graph::Node* node : body.nodes)
    if (is_work(*node)) return;
  interpreter.refuse(ReasonCode::no_tensor_work, interpreter.call().tree->name);
}

}  // namespace janus::frontend
