#include "frontend/recursion.h"

#include <algorithm>

#include "frontend/form.h"
#include "frontend/heap.h"
#include "frontend/outside_places.h"
#include "frontend/rolled.h"
#include "frontend/run_time.h"
#include "frontend/snapshot.h"
#include "frontend/surroundings.h"
#include "frontend/tensor.h"
#include "graph/functions.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

namespace {

constexpr int kMostPasses = 8;        // until what a function gives is found
constexpr size_t kMostFunctions = 8;  // of one graph
constexpr size_t kActivationsFollowed =
    3;  // before a test that only the run decides is one of many

/// Whether the object is data of the program, such as a node of a tree.
bool is_data(const Value& value) {
  const auto* known = as<Known>(value);
  if (known == nullptr) return false;
  static PyObject* const module =
      PyObject_GetAttrString(python::check(PyImport_ImportModule("torch.nn")).get(), "Module");
  PyTypeObject* type = Py_TYPE(known->object.get());
  if (type == &PyList_Type || type == &PyTuple_Type) return known->source != nullptr;
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && !PyType_Check(known->object.get()) &&
         PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(module)) == 0;
}

std::vector<Value> given_to(const Activation& activation) {
  std::vector<Value> given;
  for (const auto& [name, value] : activation.variables->values) given.push_back(value);
  return given;
}

bool is_same_function(const Frame& frame, const Activation& activation) {
  return frame.variables->scope == activation.scope && frame.environment == activation.environment;
}

/// Where the object at the source is found again: an element of a list stands for all of them.
std::string place_of(const Source* source) {
  if (source->kind == Source::Kind::index && source->base != nullptr)
    return source->base->describe() + "[*]";
  return source->describe();
}

}  // namespace

void Generalisation::add(const Generalise& found) {
  if (recursive.insert(found.function).second) facts_keys.push_back(found.facts_key);
  if (!found.run_time.empty()) run_time.insert(found.run_time);
  if (!found.varying.empty()) varying.emplace(found.function, found.varying);
}

bool Generalisation::owns(const TestKey& test) const {
  return std::any_of(facts_keys.begin(), facts_keys.end(),
                     [&](const Object& key) { return key.is(test.facts_key.get()); });
}

/// A list of outside that activations make longer: it goes in and comes out.
struct Recursion::Growth {
  std::shared_ptr<Sequence> list;
  Object real;  ///< of what is appended to a list that outlives the call: that list
  ElementForm form;
  bool front = false, undecided = false;
  std::shared_ptr<Tensor> memory = std::make_shared<Tensor>();
};

/// Values of the graph that a call is given or gives, and the tensors that they are of.
struct Recursion::Passed {
  std::vector<graph::Value*> values;
  std::vector<std::shared_ptr<Tensor>> tensors;
  void add(const Flattening& parts) {
    values.insert(values.end(), parts.values.begin(), parts.values.end());
    tensors.insert(tensors.end(), parts.tensors.begin(), parts.tensors.end());
  }
  void add(const Rebuilding& parts) {
    tensors.insert(tensors.end(), parts.tensors.begin(), parts.tensors.end());
  }
};

/// A function of the graph.
struct Recursion::Function {
  const syntax::Scope* scope;
  const void* environment;
  std::optional<Surroundings> surroundings;  // in which it computes what it computes
  bool grad_enabled;
  std::string name;
  std::vector<std::pair<std::string, Form>> parameters;  // by variable
  std::optional<Form> result;
  /// Of each value of the result: tensors that it may share memory with. Those with a number are
  /// arguments or other results.
  struct Aliases {
    std::vector<std::shared_ptr<Tensor>> tensors;
    std::set<size_t> arguments, results, lists;
    bool operator==(const Aliases&) const = default;
  };
  std::vector<Aliases> aliases;
  std::vector<Growth> growths;
  std::vector<OutsidePlace> places;  // that activations change
  bool is_building = true, is_settled = true;
  Building* building = nullptr;

  bool grows(const Changeable* object) const {
    return std::any_of(growths.begin(), growths.end(),
                       [&](const Growth& growth) { return growth.list.get() == object; });
  }
};

Recursion::Recursion(Interpreter& interpreter, const Generalisation& known)
    : interpreter_(interpreter), known_(known) {}
Recursion::~Recursion() = default;

bool Recursion::is_run_time(const Source* source) const {
  return !known_.run_time.empty() && (known_.run_time.contains(source->describe()) ||
                                      known_.run_time.contains(place_of(source)));
}

bool Recursion::is_building() const {
  return std::any_of(functions_.begin(), functions_.end(),
                     [](const auto& function) { return function->is_building; });
}

Value Recursion::invoke(const Activation& activation) {
  if (!known_.recursive.contains(activation.scope)) {
    detect(activation);
    return activation.run(activation.variables);
  }
  if (is_first_of_entry(activation)) return activation.run(activation.variables);
  return call(activation);
}

/// The first activation for an object of the entry, whose class is known: its tests are decided.
bool Recursion::is_first_of_entry(const Activation& activation) {
  for (const auto& function : functions_)
    if (function->is_building) return false;
  for (const Frame* frame = &interpreter_.frame(); frame != nullptr; frame = frame->caller)
    if (is_same_function(*frame, activation)) return false;
  for (const auto& [name, value] : activation.variables->values) {
    Value part = value;
    if (const auto* rest = as<Sequence>(value);
        rest != nullptr && rolled(value) == nullptr && rest->elements.size() == 1)
      part = rest->elements[0];
    const auto* object = as<RuntimeObject>(part);
    if (object == nullptr) continue;
    auto known = interpreter_.known_classes.find(object->value);
    if (known != interpreter_.known_classes.end() && known->second.is_certain &&
        known->second.classes.size() == 1)
      return true;
  }
  return false;
}

/// Whether the function has called itself with something that is another one in each activation.
void Recursion::detect(const Activation& activation) {
  const Frame* outermost = nullptr;
  const Frame* innermost = nullptr;
  size_t count = 0;
  for (const Frame* frame = &interpreter_.frame(); frame != nullptr; frame = frame->caller) {
    if (!is_same_function(*frame, activation)) continue;
    if (innermost == nullptr) innermost = frame;
    outermost = frame;
    ++count;
  }
  if (outermost == nullptr) return;
  for (const auto& [name, value] : activation.variables->values) {
    auto before = outermost->variables->values.find(name);
    if (before == outermost->variables->values.end() || !is_data(before->second)) continue;
    const auto* object = as<Known>(before->second);
    const auto* now = as<Known>(value);
    if (now == nullptr || now->object.is(object->object.get()) || object->source == nullptr)
      continue;
    if (interpreter_.differs_from_call_to_call(object->source))
      throw Generalise{activation.scope, activation.facts_key, place_of(object->source), {}};
  }
  if (count >= kActivationsFollowed && interpreter_.open_scopes() > outermost->open_scopes &&
      interpreter_.open_scopes() > innermost->open_scopes)
    throw Generalise{activation.scope, activation.facts_key, {}, {}};
}

// --- functions of the graph ---------------------------------------------------------------------

namespace {

using Parameters = std::vector<std::pair<std::string, Form>>;

bool same_forms(const Parameters& a, const Parameters& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_form(x.second, y.second);
  });
}

/// Adds the classes of objects; whether there were new ones.
bool add_classes(Form& form, const Form& more) {
  const size_t count = form.classes.size();
  form.classes = united(std::move(form.classes), more.classes);
  bool grew = form.classes.size() != count;
  for (size_t i = 0; i < form.parts.size(); ++i)
    if (add_classes(form.parts[i], more.parts[i])) grew = true;
  return grew;
}

/// Forgets strides that differ; whether there were some.
bool join_strides(Form& form, Form& other) {
  bool differed = form.kind == Form::Kind::tensor && form.strides && form.strides != other.strides;
  if (form.kind == Form::Kind::tensor && form.strides != other.strides)
    form.strides = other.strides = std::nullopt;
  for (size_t i = 0; i < std::min(form.parts.size(), other.parts.size()); ++i)
    if (join_strides(form.parts[i], other.parts[i])) differed = true;
  return differed;
}

/// The first part that is the same in all activations in one form and in the other is not.
std::optional<std::pair<std::string, const Form*>> differing_part(const Form& a, const Form& b,
                                                                  const std::string& part) {
  if (same_form(a, b)) return std::nullopt;
  if (a.kind == Form::Kind::same || b.kind == Form::Kind::same) {
    // A container is varied by its parts.
    return std::pair(part, a.kind == Form::Kind::same ? &a : &b);
  }
  if (a.kind != b.kind || a.parts.size() != b.parts.size()) return std::nullopt;
  for (size_t i = 0; i < a.parts.size(); ++i) {
    std::string name =
        a.keys.empty() ? cat(part, "[", i, "]") : cat(part, ".", text_of(a.keys[i].get()));
    if (auto found = differing_part(a.parts[i], b.parts[i], name)) return found;
  }
  return std::nullopt;
}

}  // namespace

/// The block of a function while it is filled.
class Recursion::Building final : public Scope {
 public:
  Building(Recursion& recursion, Function& function, const Activation& activation)
      : recursion_(recursion),
        interpreter_(recursion.interpreter_),
        function_(function),
        activation_(activation),
        outer_(interpreter_.builder().block()),
        before_(Snapshot::take()),
        heap_(interpreter_.heap),
        history_(interpreter_.history),
        known_classes_(interpreter_.known_classes),
        effects_(interpreter_.output().effects.size()),
        leaves_(interpreter_.made_leaves.size()),
        deepest_(std::exchange(interpreter_.deepest, interpreter_.depth())),
        depth_(interpreter_.depth()),
        functions_(recursion.functions_.size()) {
    function_.building = this;
    function_.surroundings.emplace(interpreter_, given_to(activation));
    interpreter_.begin_scope(*this);
  }
  ~Building() override {
    interpreter_.deepest = std::max(deepest_, interpreter_.deepest);
    function_.building = nullptr;
  }
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;

  void run() {
    for (int pass = 0; !(pass == 0 ? interpret_first() : interpret(false));)
      if (++pass == kMostPasses) refuse("what it gives back does not settle");
    finish();
  }

  bool is_inside(const graph::Block* block) const override { return block == block_.get(); }
  void add_entry_object(Changeable& object) override {
    before_.add(object);
    function_.surroundings->add(object);
  }
  bool keeps(const Tensor& tensor) const override {
    return before_.find(&tensor) != nullptr || tensor.value->owner == block_.get();
  }
  const TestKey* test() const override { return nullptr; }

  /// What of outside is another than as an activation begins goes in and out from now on.
  void collect_changes() {
    // By index: what is found may reach more tensors of the entry.
    for (size_t i = 0; i < before_.objects().size(); ++i) {
      const Snapshot::Saved saved = before_.objects()[i];
      if (saved.alive()) collect_object(*saved.object, saved.state);
    }
    collect_heap();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    interpreter_.refuse(ReasonCode::limit, cat("the recursion of ", activation_.name, ": ", why));
  }

  /// What follows a loop without rounds may not be possible: then there is another way out.
  bool interpret_first() {
    recursion_.left_loop_out = false;
    try {
      return interpret(true);
    } catch (const Refusal&) {
      if (!recursion_.left_loop_out || !recursion_.leaves_loops_out) throw;
    }
    PyErr_Clear();
    interpreter_.abandon_scopes(*this);
    struct Restore {
      Recursion& recursion;
      ~Restore() { recursion.leaves_loops_out = true; }
    } restore{recursion_};
    recursion_.leaves_loops_out = false;
    return interpret(true);
  }

  /// Interprets the body once more; true if that found nothing new.
  bool interpret(bool first) {
    reset();
    function_.is_settled = true;
    block_ = std::make_unique<graph::Block>();
    interpreter_.enter_block(*block_);
    Rebuilding arguments(interpreter_, [&](const Type& type) {
      return interpreter_.builder().graph().new_parameter(*block_, type);
    });
    auto variables = std::make_shared<Variables>();
    variables->scope = activation_.variables->scope;
    variables->parent = activation_.variables->parent;
    for (const auto& [name, form] : function_.parameters)
      variables->values[name] = arguments.make(form);
    name_parameters(*variables);
    Passed given;
    given.add(arguments);
    given.add(begin_places());
    const size_t lists = function_.growths.size();  // those found on the way are no parameters yet
    for (const Growth& growth : function_.growths) begin_list(growth);
    for (const auto& tensor : given.tensors)
      if (tensor != nullptr) tensor->uncertain_alias = true;
    Value result;
    try {
      result = activation_.run(variables);
    } catch (const UnknownResult& unknown) {
      if (unknown.function != &function_) throw;
      refuse("no way out of it was found");
    }
    variables.reset();
    check_lists(lists);
    collect_changes();
    check_effects();
    auto existed = [&](const AbstractValue& object) {
      const auto* changeable = dynamic_cast<const Changeable*>(&object);
      return changeable != nullptr && before_.find(changeable) != nullptr;
    };
    Flattening results(interpreter_, [](const std::string&) { return false; }, existed);
    Form form = results.take(result, "its result");
    Passed given_back;
    given_back.add(results);
    if (function_.is_settled) given_back.add(end_places(existed));
    std::vector<Function::Aliases> aliases = find_aliases(given_back, given);
    block_->results = given_back.values;
    for (const Growth& growth : function_.growths)
      if (const Rolled* end = growth.list->elements.rolled().get())
        block_->results.insert(block_->results.end(), end->lists.begin(), end->lists.end());
    bool same = !first && function_.is_settled && function_.result &&
                same_form(*function_.result, form) && aliases == function_.aliases &&
                !add_classes(*function_.result, form);
    if (function_.result && same_form(*function_.result, form))
      add_classes(form, *function_.result);
    function_.result = std::move(form);
    function_.aliases = std::move(aliases);
    return same;
  }

  void name_parameters(const Variables& variables) {
    for (const auto& [name, value] : variables.values) {
      if (const auto* object = as<RuntimeObject>(value)) object->value->name = name;
      if (const auto* tensor = as<Tensor>(value);
          tensor != nullptr && tensor->value->owner == block_.get())
        tensor->value->name = name;
      if (const auto* number = as<Number>(value);
          number != nullptr && number->value != nullptr && number->value->owner == block_.get())
        number->value->name = name;
    }
  }

  /// As it was before the function was interpreted.
  void reset() {
    before_.restore();
    interpreter_.heap = heap_;
    forget_classes();
    interpreter_.grad_enabled = function_.grad_enabled;
    interpreter_.history = history_;
    // What was built meanwhile may rest on what this one seemed to give.
    auto& nodes = interpreter_.output().graph.body().nodes;
    auto& functions = recursion_.functions_;
    for (size_t i = functions_; i < functions.size(); ++i)
      std::erase_if(nodes, [&](const graph::Node* node) {
        return graph::is_function(*node) && graph::function_name(*node) == functions[i]->name;
      });
    functions.resize(functions_);
  }

  /// What is known of objects where the function is made may not hold where it is called next; but
  /// the classes of what the call is given are assumptions.
  void forget_classes() {
    interpreter_.known_classes = known_classes_;
    std::erase_if(interpreter_.known_classes, [](const auto& known) {
      return known.first->definition != nullptr || !known.second.is_certain ||
             known.second.classes.size() != 1;
    });
  }

  void check_effects() const {
    if (interpreter_.output().effects.size() != effects_) refuse("it prints");
    if (interpreter_.made_leaves.size() != leaves_) refuse("it makes leaves");
    if (interpreter_.grad_enabled != function_.grad_enabled) refuse("it changes the grad mode");
    graph::for_each_node(*block_, [&](const graph::Node& node) {
      if (node.op == &op::gradient) refuse("gradients inside it");
    });
  }

  // --- places of outside that it changes

  /// Their values as an activation finds them.
  Rebuilding begin_places() {
    Rebuilding values(interpreter_, [&](const Type& type) {
      return interpreter_.builder().graph().new_parameter(*block_, type);
    });
    for (const OutsidePlace& place : function_.places)
      place.set(interpreter_, values.make(place.form));
    return values;
  }

  /// Their values as an activation leaves them.
  Flattening end_places(const Flattening::Existed& existed) {
    Flattening values(interpreter_, [](const std::string&) { return true; }, existed);
    for (OutsidePlace& place : function_.places) {
      Form form = values.take(place.get(interpreter_), place.describe());
      if (join_strides(place.form, form)) function_.is_settled = false;
      if (!same_form(place.form, form)) refuse(place.describe() + " changes its kind");
      if (add_classes(place.form, form)) function_.is_settled = false;
    }
    return values;
  }

  void add_place(OutsidePlace place, const Value& initial) {
    const auto& places = function_.places;
    if (std::any_of(places.begin(), places.end(),
                    [&](const OutsidePlace& each) { return each.is_same(place); }))
      return;
    if (initial == nullptr) refuse("it makes " + place.describe());
    function_.is_settled = false;
    Flattening values(
        interpreter_, [](const std::string&) { return true; },
        [](const AbstractValue&) { return true; });
    place.form = values.take(initial, place.describe());
    function_.places.push_back(std::move(place));
  }

  void collect_object(Changeable& object, const ChangeableState& before) {
    const ChangeableState now = state_of(object);
    if (function_.grows(&object) || same_but_for_reads(before, now)) return;
    if (auto* variables = dynamic_cast<Variables*>(&object))
      return collect_variables(*variables, std::get<VariableValues>(before));
    if (auto* tensor = dynamic_cast<Tensor*>(&object))
      return collect_contents(*tensor, std::get<TensorState>(before));
    if (auto* sequence = dynamic_cast<Sequence*>(&object))
      return collect_elements(*sequence, std::get<Elements>(before));
    const auto* dictionary = dynamic_cast<Dictionary*>(&object);
    if (dictionary == nullptr) refuse("it changes something outside");
    if (dictionary->object) return;  // as its heap's table says
    const auto &first = std::get<Items>(before), &last = dictionary->items;
    const bool same_keys =
        std::equal(first.begin(), first.end(), last.begin(), last.end(),
                   [](const auto& a, const auto& b) { return a.first.is(b.first.get()); });
    if (!same_keys) refuse("it makes or deletes an item or attribute");
    for (size_t i = 0; i < first.size(); ++i)
      if (!same_value(first[i].second, last[i].second))
        add_place(OutsidePlace::element(object, i), first[i].second);
  }

  void collect_variables(Variables& variables, const VariableValues& before) {
    for (const auto& [name, value] : variables.values) {
      auto initial = before.find(name);
      if (initial == before.end())
        add_place(OutsidePlace::variable(variables, name), nullptr);
      else if (!same_value(initial->second, value))
        add_place(OutsidePlace::variable(variables, name), initial->second);
    }
    if (variables.values.size() < before.size()) refuse("it deletes a variable of outside");
  }

  void collect_contents(Tensor& tensor, const TensorState& before) {
    if (tensor.source != nullptr) refuse("it writes a tensor of before the call");
    if (tensor.requires_grad || before.requires_grad ||
        tensor.grad_replaced != before.grad_replaced)
      refuse("it writes a tensor that has a gradient");
    auto initial = std::make_shared<Tensor>();
    initial->value = before.value;
    add_place(OutsidePlace::contents(tensor), initial);
  }

  void collect_elements(Sequence& sequence, const Elements& initial) {
    const bool rolls = initial.rolled() != nullptr || sequence.elements.rolled() != nullptr;
    if (rolls || initial.size() != sequence.elements.size()) return begin_growth(sequence, initial);
    for (size_t i = 0; i < initial.size(); ++i)
      if (!same_value(initial[i], sequence.elements[i]))
        add_place(OutsidePlace::element(sequence, i), initial[i]);
  }

  void collect_heap() {
    const Heap now = interpreter_.heap;
    for (PyObject* identity : now.table_order()) {
      const Heap::Table& table = *now.table(identity);
      const Heap::Table* before = heap_.table(identity);
      if (table.cleared != (before != nullptr && before->cleared)) refuse("it clears a container");
      for (const Heap::Change& change : table.changes) collect_change(table, before, change);
    }
    for (PyObject* object : now.list_order()) {
      if (heap_.has_list(object)) continue;
      const Heap::List& list = now.list_at(object);
      if (list.twin != nullptr) {
        if (list.twin->elements != list.at_entry) refuse("it changes a list of before the call");
        continue;
      }
      // From now on as if it had been reached before, with nothing appended to it.
      Heap::List& before = heap_.list_of(object, list.source);
      before.paths.insert(list.paths.begin(), list.paths.end());
      before_.add(*before.appended);
      function_.is_settled = false;
    }
  }

  void collect_change(const Heap::Table& table, const Heap::Table* before,
                      const Heap::Change& change) {
    Value initial;
    bool was_changed = false;
    for (size_t i = 0; before != nullptr && i < before->changes.size(); ++i) {
      if (!before->changes[i].key.is(change.key.get())) continue;
      was_changed = true;
      initial = before->changes[i].value;
    }
    if (was_changed && same_value(initial, change.value)) return;
    if (change.value == nullptr) refuse("it deletes an attribute or item");
    if (!was_changed) initial = value_at_entry(interpreter_, table, change);
    add_place(OutsidePlace::change(table, change), initial);
  }

  // --- lists that grow

  /// The list as an activation finds it.
  void begin_list(const Growth& growth) {
    auto list = std::make_shared<Rolled>();
    list->form = growth.form;
    list->front = growth.front;
    list->undecided = growth.undecided;
    list->memory = growth.memory;
    for (const Type& type : list_types(growth.form))
      list->lists.push_back(interpreter_.builder().graph().new_parameter(*block_, type));
    growth.list->elements = ElementList(std::move(list));
  }

  /// What the body has put into lists of outside.
  void check_lists(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      Growth& growth = function_.growths[i];
      const Rolled* end = growth.list->elements.rolled().get();
      if (end == nullptr) refuse("a list is emptied or filled anew in it");
      if (end->front != growth.front) function_.is_settled = false;
      growth.front = end->front;
      growth.undecided = growth.undecided && end->undecided;
    }
  }

  void begin_growth(Sequence& sequence, const Elements& initial) {
    if (!sequence.is_list || sequence.source != nullptr || sequence.viewed != nullptr)
      refuse("it changes a list of before the call");
    function_.is_settled = false;
    Growth growth;
    growth.list = std::static_pointer_cast<Sequence>(sequence.shared_from_this());
    for (PyObject* object : heap_.list_order())
      if (heap_.list_at(object).appended == growth.list) growth.real = Object::borrow(object);
    const Rolled* before = initial.rolled().get();
    const Rolled* end = sequence.elements.rolled().get();
    if (before != nullptr || end != nullptr) {
      growth.form = (before != nullptr ? before : end)->form;
      growth.front = (end != nullptr ? end : before)->front;
    } else {
      const std::vector<Value>&first = initial.known(), &now = sequence.elements.known();
      bool back = now.size() >= first.size() && std::equal(first.begin(), first.end(), now.begin());
      if (!back) refuse("it changes a list other than by appending to it");
      std::string why;
      auto form = common_form(interpreter_, now, why);
      if (!form) refuse(why);
      growth.form = *form;
    }
    function_.growths.push_back(std::move(growth));
  }

  std::vector<Function::Aliases> find_aliases(const Passed& results, const Passed& arguments) {
    std::vector<std::set<Tensor*>> roots;
    std::vector<Function::Aliases> all;
    for (const auto& tensor : results.tensors) {
      Function::Aliases aliases;
      std::set<Tensor*>& own = roots.emplace_back();
      if (tensor != nullptr) {
        if (tensor->uncertain_alias && tensor->is_borrowed)
          interpreter_.refuse(ReasonCode::unsupported_tensor,
                              "a tensor of an object met at run time leaves a recursion");
        collect_roots(tensor, own);
      }
      for (Tensor* root : own) {
        for (size_t i = 0; i < arguments.tensors.size(); ++i)
          if (arguments.tensors[i].get() == root) aliases.arguments.insert(i);
        for (size_t i = 0; i < function_.growths.size(); ++i)
          if (function_.growths[i].memory.get() == root) aliases.lists.insert(i);
        if (before_.find(root) != nullptr)
          aliases.tensors.push_back(std::static_pointer_cast<Tensor>(root->shared_from_this()));
      }
      for (size_t i = 0; i + 1 < roots.size(); ++i)
        for (Tensor* root : own)
          if (roots[i].contains(root)) aliases.results.insert(i);
      all.push_back(std::move(aliases));
    }
    return all;
  }

  static void collect_roots(const std::shared_ptr<Tensor>& tensor, std::set<Tensor*>& roots) {
    const std::shared_ptr<Tensor> root = memory_of(tensor);
    if (!roots.insert(root.get()).second) return;
    for (const PossibleAlias& alias : root->possible_aliases)
      if (auto other = alias.tensor.lock()) collect_roots(other, roots);
  }

  /// The node, in front of whatever the body has not computed yet.
  void finish() {
    const int frames = interpreter_.deepest - depth_;
    before_.restore();
    interpreter_.heap = heap_;
    interpreter_.known_classes = known_classes_;
    const Interpreter::History of_function = interpreter_.history;
    interpreter_.history = history_;
    interpreter_.history.add(of_function);
    interpreter_.end_scope(*this);
    interpreter_.enter_block(outer_);
    check_visible(*block_);
    graph::Graph& graph = interpreter_.output().graph;
    graph::Node* node = graph.new_node(op::function);
    node->attributes.set("name", function_.name);
    // Each frame of Python may count twice against its limit: once for a call through C.
    node->attributes.set("frames", int64_t{2} * frames);
    node->span = interpreter_.user_span();
    block_->parent = node;
    node->blocks.push_back(std::move(block_));
    graph.append(graph.body(), node);
    function_.is_building = false;
    interpreter_.mark(speculate::LineMark::Kind::graph,
                      cat(activation_.name, " is a function of the graph"));
  }

  /// A function sees the body and itself, not the branches in which it is called.
  void check_visible(const graph::Block& block) {
    std::set<const graph::Block*> inside;
    std::function<void(const graph::Block&)> add = [&](const graph::Block& each) {
      inside.insert(&each);
      for (const graph::Node* node : each.nodes)
        for (const auto& nested : node->blocks) add(*nested);
    };
    add(block);
    const graph::Block* body = &interpreter_.output().graph.body();
    auto check = [&](const graph::Value* value) {
      const graph::Block* home =
          value->definition != nullptr ? value->definition->parent : value->owner;
      if (home != body && !inside.contains(home))
        refuse("it uses a value of a branch or loop around it");
    };
    for (const graph::Block* each : inside) {
      for (const graph::Value* value : each->results) check(value);
      for (const graph::Node* node : each->nodes)
        for (const graph::Value* value : node->inputs) check(value);
    }
  }

  Recursion& recursion_;
  Interpreter& interpreter_;
  Function& function_;
  const Activation& activation_;
  graph::Block& outer_;
  Snapshot before_;
  Heap heap_;
  Interpreter::History history_;
  decltype(Interpreter::known_classes) known_classes_;
  size_t effects_, leaves_;
  int deepest_, depth_;
  size_t functions_;  // that there were before
  std::unique_ptr<graph::Block> block_;
};

/// The list as a call finds it; from then on it is one of the graph.
std::shared_ptr<const Rolled> Recursion::given_list(const Growth& growth) {
  std::shared_ptr<const Rolled> list = growth.list->elements.rolled();
  if (list == nullptr)
    list = roll(interpreter_, {}, growth.form, growth.list->elements.known(), growth.front);
  if (!(list->form == growth.form) || (list->front != growth.front && !list->undecided))
    interpreter_.refuse(ReasonCode::dynamic_value, "a list of different elements in a recursion");
  // What it holds may be what comes out.
  Tensor& memory = *growth.memory;
  if (list->memory != growth.memory) {
    memory.uncertain_alias |= list->memory->uncertain_alias;
    memory.possible_aliases.push_back({list->memory, list->memory->version});
    for (const PossibleAlias& alias : list->memory->possible_aliases) {
      memory.possible_aliases.push_back(alias);
      if (auto other = alias.tensor.lock())
        other->possible_aliases.push_back({growth.memory, memory.version});
    }
  }
  growth.list->elements = ElementList(list);
  return list;
}

/// What the places that the function changes hold, and their types.
Flattening Recursion::given_places(Function& function, std::vector<Type>& types) {
  Flattening values(
      interpreter_, [](const std::string&) { return true; },
      [](const AbstractValue&) { return true; });
  for (OutsidePlace& place : function.places) {
    Form form = values.take(place.get(interpreter_), place.describe());
    if (function.is_building && join_strides(place.form, form)) function.is_settled = false;
    Form known = place.form;
    if (join_strides(known, form) || !same_form(known, form))
      interpreter_.refuse(ReasonCode::dynamic_value,
                          cat(place.describe(), " is of another kind in a recursion"));
    collect_types(place.form, types);
  }
  return values;
}

/// Whether all that the function sees besides its arguments is as it was.
bool Recursion::is_applicable(const Function& function) const {
  const auto& places = function.places;
  const Heap& heap = interpreter_.heap;
  for (const Growth& growth : function.growths)
    if (growth.real && (!heap.has_list(growth.real.get()) ||
                        heap.list_at(growth.real.get()).appended != growth.list))
      return false;
  return function.surroundings->hold(
      interpreter_, {.list = [&](const Changeable& object) { return function.grows(&object); },
                     .place =
                         [&](const Changeable& object, const std::string& name) {
                           return std::any_of(places.begin(), places.end(), [&](const auto& place) {
                             return place.is(object, name);
                           });
                         },
                     .change =
                         [&](PyObject* table, PyObject* key) {
                           return std::any_of(places.begin(), places.end(), [&](const auto& place) {
                             return place.is(table, key);
                           });
                         }});
}

Value Recursion::call(const Activation& activation) {
  auto varies = [&](const std::string& part) {
    return known_.varying.contains({activation.scope, part});
  };
  const auto& variables = activation.variables->values;
  std::set<const AbstractValue*> fresh;  // dicts of keywords are made for this call
  for (const auto& [name, value] : variables)
    if (const auto* rest = as<Dictionary>(value); rest != nullptr && value.use_count() == 1)
      fresh.insert(rest);
  Flattening given(interpreter_, varies,
                   [&](const AbstractValue& object) { return !fresh.contains(&object); });
  Parameters parameters;
  for (const auto& [name, value] : variables)
    parameters.emplace_back(name, given.take(value, name));

  Function* function = nullptr;
  for (const auto& each : functions_) {
    if (each->scope != activation.scope || each->environment != activation.environment ||
        each->grad_enabled != interpreter_.grad_enabled)
      continue;
    const bool applies = is_applicable(*each);
    if (!applies && !each->is_building) continue;
    if (same_forms(each->parameters, parameters)) {
      bool grew = false;
      Parameters wider = each->parameters;
      for (size_t i = 0; i < parameters.size(); ++i)
        if (add_classes(wider[i].second, parameters[i].second)) grew = true;
      if (grew && !each->is_building) continue;
      if (grew) {
        each->parameters = std::move(wider);
        each->is_settled = false;
      }
      if (!applies) each->building->collect_changes();
      function = each.get();
      break;
    }
    if (!each->is_building) continue;
    for (size_t i = 0; i < parameters.size() && i < each->parameters.size(); ++i) {
      const auto& [name, form] = each->parameters[i];
      auto part = differing_part(form, parameters[i].second, name);
      if (!part) continue;
      const auto* known = as<Known>(part->second->value);
      if (is_data(part->second->value) && known->source != nullptr &&
          interpreter_.differs_from_call_to_call(known->source))
        throw Generalise{activation.scope, activation.facts_key, place_of(known->source), {}};
      if (varies(part->first))
        interpreter_.refuse(ReasonCode::dynamic_value, cat(part->first, " in a recursion"));
      throw Generalise{activation.scope, activation.facts_key, {}, part->first};
    }
  }
  if (function == nullptr) {
    if (functions_.size() == kMostFunctions)
      interpreter_.refuse(ReasonCode::limit, "too many forms of a recursion");
    functions_.push_back(std::make_unique<Function>());
    function = functions_.back().get();
    function->scope = activation.scope;
    function->environment = activation.environment;
    function->grad_enabled = interpreter_.grad_enabled;
    function->name = activation.name;
    for (const auto& other : functions_)
      if (other.get() != function && other->name.starts_with(activation.name))
        function->name = cat(activation.name, "_", functions_.size());
    function->parameters = parameters;
    const size_t count = functions_.size() - 1;
    try {
      Building(*this, *function, activation).run();
    } catch (const UnknownResult&) {
      functions_.resize(count);
      throw;
    }
  }
  if (!function->result) throw UnknownResult{function};

  Passed operands;
  operands.add(given);
  std::vector<Type> types;
  collect_types(*function->result, types);
  operands.add(given_places(*function, types));
  for (const Growth& growth : function->growths) {
    const std::shared_ptr<const Rolled> list = given_list(growth);
    operands.values.insert(operands.values.end(), list->lists.begin(), list->lists.end());
    for (const Type& type : list_types(growth.form)) types.push_back(type);
  }
  graph::Node* node = interpreter_.builder().append_unchecked(op::call, operands.values,
                                                              {{"callee", function->name}}, types);
  size_t next = 0;
  const auto take = [&](const Type& type) {
    graph::Value* value = node->outputs[next++];
    TORCHJANUS_CHECK(value->type == type, "call: a result of another type");
    return value;
  };
  Rebuilding parts(interpreter_, take), changed(interpreter_, take);
  Value value = parts.make(*function->result);
  std::vector<Value> changes;
  for (const OutsidePlace& place : function->places) changes.push_back(changed.make(place.form));
  Passed result;
  result.add(parts);
  result.add(changed);
  for (const Growth& growth : function->growths) {
    auto list = std::make_shared<Rolled>(*growth.list->elements.rolled());
    for (graph::Value*& each : list->lists) each = node->outputs[next++];
    list->length = nullptr;
    list->front = growth.front;
    list->undecided = growth.undecided;
    list->memory = growth.memory;
    growth.list->elements = ElementList(std::move(list));
  }
  for (size_t i = 0; i < result.tensors.size(); ++i) {
    if (result.tensors[i] == nullptr) continue;
    Tensor& tensor = *result.tensors[i];
    const Function::Aliases aliases =  // a place that was found just now has none yet
        i < function->aliases.size() ? function->aliases[i] : Function::Aliases();
    auto add = [&](const std::shared_ptr<Tensor>& other) {
      tensor.possible_aliases.push_back({other, other->version});
    };
    for (const auto& other : aliases.tensors) add(other);
    for (size_t list : aliases.lists) add(function->growths[list].memory);
    for (size_t argument : aliases.arguments)
      if (operands.tensors[argument] != nullptr) {
        add(memory_of(operands.tensors[argument]));
      }
    for (size_t other : aliases.results) {
      add(result.tensors[other]);
      result.tensors[other]->possible_aliases.push_back({result.tensors[i], tensor.version});
    }
    if (!tensor.requires_grad && !interpreter_.differentiable.empty())
      tensor.value = op::detach(interpreter_.builder(), {tensor.value});
  }
  for (size_t i = 0; i < changes.size(); ++i) function->places[i].set(interpreter_, changes[i]);
  return value;
}

}  // namespace janus::frontend
