#include "frontend/loops.h"

#include <algorithm>
#include <set>

#include "frontend/containers.h"
#include "frontend/merge.h"
#include "frontend/operators.h"
#include "frontend/recursion.h"
#include "frontend/rolled.h"
#include "frontend/run_time.h"
#include "frontend/tensor.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;

namespace {

constexpr int kMostAttempts = 12;

/// How a value that a variable or container holds goes through the loop.
struct Form {
  enum class Kind {
    same,      ///< no round changes it
    carried,   ///< a number or tensor: a parameter of the blocks
    parts,     ///< a tuple, part by part
    last,      ///< set by each round, and not read before: what the last one left
    unmerged,  ///< set by the rounds to what has nothing in common with what it was: not readable
  };
  Kind kind = Kind::same;
  std::vector<Form> parts;
  bool tracked = false;            ///< carried: a tensor that requires a gradient
  Classes classes;                 ///< carried: of an object that only the run meets
  std::string why_not;             ///< unmerged
  Value last;                      ///< last: as the round at hand left it
  std::vector<graph::Type> types;  ///< last: of the numbers and tensors in it
};

/// How a list goes through the loop that its rounds make longer.
struct Growth {
  ElementForm form;
  bool front = false;
  bool undecided = false;
  std::shared_ptr<Tensor> memory = std::make_shared<Tensor>();
};

/// The parameter that stands for a carried value, given what it is before the loop.
using Parameter = std::function<graph::Value*(graph::Value* initial)>;

/// A tensor that stands for what a variable held before, holds in a round, or holds afterwards.
struct CarriedTensor {
  std::shared_ptr<Tensor> tensor;
  std::vector<std::shared_ptr<Tensor>> roots;
};

bool is_current(const Tensor& tensor) {
  return tensor.base == nullptr ||
         (tensor.seen_version == tensor.base->version && is_current(*tensor.base));
}

class Loop final : public Scope {
 public:
  Loop(Interpreter& interpreter, TestKey test, const LoopParts& parts)
      : interpreter_(interpreter),
        test_(std::move(test)),
        parts_(parts),
        outer_(interpreter.builder().block()),
        span_(interpreter.user_span()),
        before_(Snapshot::take()),
        effects_(interpreter.output().effects.size()),
        results_(interpreter.results().size()),
        heap_(interpreter.heap),
        grad_enabled_(interpreter.grad_enabled),
        history_(interpreter.history),
        known_classes_(interpreter.known_classes) {}

  void run() {
    interpreter_.begin_scope(*this);
    const size_t forks = interpreter_.frame().forks.size();
    try {
      while (!attempt_round())
        if (++attempt_ == kMostAttempts) fail("what its rounds change does not settle");
    } catch (const UnknownResult&) {
      if (!interpreter_.recursion().leaves_loops_out) throw;
      interpreter_.recursion().left_loop_out = true;
      interpreter_.frame().forks.resize(forks);
      return leave_out();
    }
    interpreter_.end_scope(*this);
    const Interpreter::History of_round = interpreter_.history;
    make_node();
    interpreter_.history.add(of_round);
  }

  bool is_inside(const graph::Block* block) const override { return block == at_; }
  void add_entry_object(Changeable& object) override { before_.add(object); }
  bool keeps(const Tensor& tensor) const override {
    return before_.find(&tensor) != nullptr || (at_ != nullptr && tensor.value->owner == at_);
  }
  const TestKey* test() const override { return &test_; }

 private:
  /// Its rounds need a result that is not known yet: goes on as if there was none.
  void leave_out() {
    before_.restore();
    interpreter_.grad_enabled = grad_enabled_;
    interpreter_.history = history_;
    interpreter_.known_classes = known_classes_;
    interpreter_.abandon_scopes(*this);
    interpreter_.end_scope(*this);
    interpreter_.enter_block(outer_);
  }

  [[noreturn]] void fail(std::string why) const { throw CannotMerge{test_, std::move(why)}; }

  void enter(graph::Block& block) {
    at_ = &block;
    interpreter_.enter_block(block);
  }

  /// Interprets test and body with what is known to be carried; false if there is more.
  bool attempt_round() {
    condition_ = std::make_unique<graph::Block>();
    body_ = std::make_unique<graph::Block>();
    enter(*condition_);
    set_state(parameters_of(*condition_));
    interpret_test();
    enter(*body_);
    set_state(parameters_of(*body_));
    interpret_round();
    return collect_changes();
  }

  Parameter parameters_of(graph::Block& block) {
    return [this, &block](graph::Value* initial) {
      return interpreter_.builder().graph().new_parameter(block, initial->type, initial->name);
    };
  }

  void interpret_test() {
    Snapshot start = before_.again();
    Truth truth = parts_.test();
    for (const Snapshot::Saved& saved : start.objects())
      if (saved.alive() && !same_but_for_reads(saved.state, state_of(*saved.object)))
        fail("its test changes something");
    if (interpreter_.heap.change_count() != heap_.change_count())
      fail("its test changes something");
    graph::Value* flag = truth.known ? interpreter_.builder().constant(*truth.known) : truth.flag;
    condition_->results = {flag};
  }

  bool is_of_round(const graph::Value& value) const {
    const graph::Block* block =
        value.definition != nullptr ? value.definition->parent : value.owner;
    return block == body_.get() || block == condition_.get() || !interpreter_.is_open(block);
  }

  void interpret_round() {
    size_t forks = interpreter_.frame().forks.size();
    parts_.round();
    // `continue`, `break` and `return` (which the round has noted) and its end are one from here
    // on.
    while (interpreter_.frame().forks.size() > forks)
      close_forks_that(interpreter_, forks, interpreter_.frame().forks.back()->other_completion());
    if (interpreter_.output().effects.size() != effects_) fail("it prints");
    for (size_t i = results_; i < interpreter_.results().size(); ++i)
      if (is_of_round(*interpreter_.results()[i])) fail("it makes texts of what a round computes");
    if (interpreter_.grad_enabled != grad_enabled_) fail("it changes the grad mode");
    graph::for_each_node(*body_, [&](const graph::Node& node) {
      if (node.op == &op::gradient) fail("gradients inside a loop");
    });
  }

  // --- the state at the begin of a round

  /// Sets the state of before the loop, with a parameter for all that is carried.
  void set_state(const Parameter& parameter) {
    before_.restore();
    interpreter_.heap = heap_;
    interpreter_.grad_enabled = grad_enabled_;
    interpreter_.history = history_;
    interpreter_.known_classes = known_classes_;
    tensors_.clear();
    set_objects(parameter);
    for (auto& [place, form] : heap_forms_) {
      Heap::Change& change = interpreter_.heap.table(place.first)->changes[place.second];
      change.value = instantiate(form, change.value, parameter, "an attribute or item");
    }
  }

  void set_objects(const Parameter& parameter) {
    // By index: instantiating may reach more tensors of the entry.
    for (size_t i = 0; i < before_.objects().size(); ++i) {
      const Snapshot::Saved& saved = before_.objects()[i];
      auto forms = forms_.find(saved.object);
      bool grows = growth_.contains(dynamic_cast<Sequence*>(saved.object));
      if (!saved.alive() || (forms == forms_.end() && !grows)) continue;
      if (auto* tensor = dynamic_cast<Tensor*>(saved.object)) {
        begin_contents(*tensor, parameter);
      } else if (auto* variables = dynamic_cast<Variables*>(saved.object)) {
        for (auto& [name, form] : forms->second)
          if (Value value = instantiate(form, variables->values[name], parameter, name))
            variables->values[name] = value;
      } else if (auto* sequence = dynamic_cast<Sequence*>(saved.object)) {
        if (growth_.contains(sequence)) {
          begin_list(*sequence, parameter);
          continue;
        }
        for (size_t e = 0; e < sequence->elements.size(); ++e)
          sequence->elements[e] = instantiate(form_at(*saved.object, key_of(e)),
                                              sequence->elements[e], parameter, "an element");
      } else if (auto* dictionary = dynamic_cast<Dictionary*>(saved.object)) {
        for (size_t e = 0; e < dictionary->items.size(); ++e)
          dictionary->items[e].second = instantiate(
              form_at(*saved.object, key_of(e)), dictionary->items[e].second, parameter, "an item");
      }
    }
  }

  /// A list that the rounds make longer: of the elements that it has before, and those that follow.
  void begin_list(Sequence& sequence, const Parameter& parameter) {
    const Growth& growth = growth_.at(&sequence);
    auto list = std::make_shared<Rolled>();
    const Rolled* before = sequence.elements.rolled().get();
    if (before != nullptr) {
      *list = *before;
    } else {
      graph::Block* inside = &interpreter_.builder().block();
      interpreter_.enter_block(outer_);
      list = roll(interpreter_, test_, growth.form, sequence.elements.known(), growth.front);
      interpreter_.enter_block(*inside);
    }
    for (const PossibleAlias& alias : list->memory->possible_aliases)
      growth.memory->possible_aliases.push_back(alias);
    if (before != nullptr) growth.memory->possible_aliases.push_back({list->memory, 0});
    list->test = test_;
    list->memory = growth.memory;
    list->front = growth.front;
    list->undecided = growth.undecided;
    list->length = nullptr;
    for (graph::Value*& each : list->lists) each = parameter(each);
    sequence.elements = ElementList(std::move(list));
  }

  /// Contents that are written in place: the same object with other contents.
  void begin_contents(Tensor& tensor, const Parameter& parameter) {
    interpreter_.history.overwritten.emplace(tensor.value, nullptr);
    tensor.past_values.push_back(tensor.value);
    tensor.value = parameter(tensor.value);
    if (tracked_contents_.contains(&tensor)) {
      tensor.requires_grad = true;
      tensor.is_leaf = false;
    }
    if (tensor.requires_grad) interpreter_.differentiable.insert(tensor.value);
    tensor.written = true;
    ++tensor.version;
    ++tensor.silent_writes;
  }

  Value instantiate(const Form& form, const Value& initial, const Parameter& parameter,
                    const std::string& name) {
    switch (form.kind) {
      case Form::Kind::same:
        return initial;
      case Form::Kind::last:
        return instantiate_last(form, initial, name, parameter);
      case Form::Kind::unmerged:
        return std::make_shared<Unmerged>(
            test_, cat(name, " is not the same kind of thing in all rounds: ", form.why_not));
      case Form::Kind::parts: {
        auto tuple = std::make_shared<Sequence>(false);
        const auto& from = *as<Sequence>(initial);
        tuple->type = from.type;
        for (size_t i = 0; i < from.elements.size(); ++i)
          tuple->elements.push_back(instantiate(form.parts[i], from.elements[i], parameter, name));
        return tuple;
      }
      case Form::Kind::carried:
        break;
    }
    if (is_number(initial)) return interpreter_.number(parameter(initial_number(initial)));
    if (!form.classes.empty())
      return std::make_shared<RuntimeObject>(parameter(initial_object(initial)), form.classes);
    auto from = shared_as<Tensor>(initial);
    if (!is_current(*from)) fail("it carries a view of what was written");
    auto tensor = std::make_shared<Tensor>();
    tensor->value = parameter(from->value);
    tensor->requires_grad = form.tracked;
    tensor->is_leaf = !form.tracked && from->is_leaf;
    if (form.tracked) interpreter_.differentiable.insert(tensor->value);
    tensor->version = from->version;
    tensor->uncertain_alias = from->uncertain_alias;
    CarriedTensor record{tensor, {memory_of(from)}};
    for (const PossibleAlias& alias : record.roots.front()->possible_aliases)
      if (auto other = alias.tensor.lock()) record.roots.push_back(other);
    for (const auto& root : record.roots) tensor->possible_aliases.push_back({root, root->version});
    tensors_.push_back(std::move(record));
    return tensor;
  }

  /// A variable that nothing was known of before the loop. The rounds can't read it.
  Value instantiate_last(const Form& form, const Value& initial, const std::string& name,
                         const Parameter& parameter) {
    Value unreadable = initial;
    if (initial == nullptr)
      unreadable = std::make_shared<Unmerged>(
          test_, cat(name, " is read in a round of the loop before it is set in it"));
    if (at_ != nullptr) {
      for (const graph::Type& type : form.types) parameter(placeholder(type));
      return unreadable;
    }
    size_t next = 0;
    return last_value(form.last, form, next, parameter);
  }

  Value last_value(const Value& like, const Form& form, size_t& next, const Parameter& parameter) {
    if (const auto* tuple = as<Sequence>(like)) {
      auto made = std::make_shared<Sequence>(false);
      made->type = tuple->type;
      for (const Value& part : tuple->elements.known())
        made->elements.push_back(last_value(part, form, next, parameter));
      return made;
    }
    if (as<Known>(like) != nullptr && !is_number(like)) return like;
    graph::Value* value = parameter(placeholder(form.types[next++]));
    if (is_number(like)) return interpreter_.number(value);
    const Tensor& from = *as<Tensor>(like);
    auto tensor = std::make_shared<Tensor>();
    tensor->value = value;
    tensor->requires_grad = from.requires_grad;
    tensor->is_leaf = from.is_leaf;
    if (from.requires_grad) interpreter_.differentiable.insert(value);
    tensors_.push_back({tensor, {}});
    return tensor;
  }

  /// What stands for a value before the first round, which certainly sets it.
  graph::Value* placeholder(const graph::Type& type) {
    graph::Block* inside = &interpreter_.builder().block();
    interpreter_.enter_block(outer_);
    graph::Builder& builder = interpreter_.builder();
    graph::Value* value = nullptr;
    if (type.is_tensor())
      value =
          op::full(builder, {builder.constant(0.0)}, {{"size", type.shape}, {"dtype", type.dtype}});
    else if (type.kind == Type::Kind::boolean)
      value = builder.constant(false);
    else if (type.kind == Type::Kind::i64)
      value = builder.constant(int64_t{0});
    else
      value = builder.constant(0.0);
    interpreter_.enter_block(*inside);
    return value;
  }

  /// A number's graph value, made in front of the loop.
  graph::Value* initial_number(const Value& number) {
    graph::Block* inside = &interpreter_.builder().block();
    interpreter_.enter_block(outer_);
    graph::Value* value = interpreter_.graph_value(number);
    interpreter_.enter_block(*inside);
    return value;
  }

  graph::Value* initial_object(const Value& object) {
    graph::Block* inside = &interpreter_.builder().block();
    interpreter_.enter_block(outer_);
    graph::Value* value = object_value(interpreter_, object);
    interpreter_.enter_block(*inside);
    return value;
  }

  // --- what a round has changed

  bool collect_changes() {
    settled_ = true;
    tracks_ = needs_round_ = false;
    heap_pending_.clear();
    ends_.clear();
    end_roots_.clear();
    for (size_t i = 0; i < before_.objects().size(); ++i) {
      const Snapshot::Saved& saved = before_.objects()[i];
      if (!saved.alive()) continue;
      if (auto* tensor = dynamic_cast<Tensor*>(saved.object)) {
        collect_contents(*tensor, std::get<TensorState>(saved.state));
      } else if (auto* variables = dynamic_cast<Variables*>(saved.object)) {
        collect_variables(*variables, std::get<VariableValues>(saved.state));
      } else if (auto* sequence = dynamic_cast<Sequence*>(saved.object)) {
        const auto& initial = std::get<Elements>(saved.state);
        if (collect_list(*sequence, initial)) continue;
        for (size_t e = 0; e < initial.size(); ++e)
          join_slot(*saved.object, key_of(e), initial[e], sequence->elements[e], false);
      } else if (auto* dictionary = dynamic_cast<Dictionary*>(saved.object)) {
        const auto& initial = std::get<Items>(saved.state);
        bool same = std::equal(
            initial.begin(), initial.end(), dictionary->items.begin(), dictionary->items.end(),
            [](const auto& a, const auto& b) { return a.first.is(b.first.get()); });
        if (!same) fail("a dict gets or loses keys in it");
        for (size_t e = 0; e < initial.size(); ++e)
          join_slot(*saved.object, key_of(e), initial[e].second, dictionary->items[e].second,
                    false);
      } else if (!same_state(saved.state, state_of(*saved.object))) {
        fail("it changes a set or takes from an iterator");
      }
    }
    collect_heap();
    for (const auto& [place, pending] : heap_pending_) {
      ends_.insert(ends_.end(), pending.ends.begin(), pending.ends.end());
      end_roots_.insert(end_roots_.end(), pending.roots.begin(), pending.roots.end());
    }
    return settled_;
  }

  // Changes of objects that outlive the call.

  void collect_heap() {
    const Heap now = interpreter_.heap;
    for (PyObject* identity : now.table_order()) collect_table(*now.table(identity));
    for (PyObject* object : now.list_order()) collect_real_list(object, now.list_at(object));
  }

  void collect_table(const Heap::Table& now) {
    PyObject* identity = now.target.table;
    const Heap::Table* before = heap_.table(identity);
    if (now.cleared != (before != nullptr && before->cleared)) fail("it clears a container");
    for (const Heap::Change& change : now.changes)
      if (!place_of(identity, change)) add_place(now, change);
    before = heap_.table(identity);
    if (before == nullptr) return;
    if (before->changes.size() != now.changes.size()) fail("it deletes an attribute or item");
    for (const Heap::Change& change : now.changes) {
      const size_t place = *place_of(identity, change);
      const Value initial = before->changes[place].value;
      if ((initial == nullptr) != (change.value == nullptr))
        fail("it makes or deletes an attribute or item");
      if (initial == nullptr) continue;
      Form form;
      auto known = heap_forms_.find({identity, place});
      if (known != heap_forms_.end()) form = known->second;
      std::string why;
      pending_ = {};
      if (!join(form, initial, change.value, why)) fail(why);
      if (form.kind == Form::Kind::same) continue;
      heap_forms_[{identity, place}] = form;
      heap_pending_[{identity, place}] = pending_;
    }
  }

  std::optional<size_t> place_of(PyObject* identity, const Heap::Change& wanted) {
    const Heap::Table* before = heap_.table(identity);
    for (size_t i = 0; before != nullptr && i < before->changes.size(); ++i)
      if (same_key(interpreter_, before->changes[i].key.get(), wanted.key.get())) return i;
    return std::nullopt;
  }

  /// A place that the rounds write: from now on as if what it holds at the entry was written there
  /// before the loop.
  void add_place(const Heap::Table& now, const Heap::Change& change) {
    Value at_entry = value_at_entry(interpreter_, now, change);
    if (at_entry == nullptr) fail("it makes an attribute or item");
    Heap::Table& table = heap_.table_of(now.target);
    table.paths.insert(now.paths.begin(), now.paths.end());
    table.changes.push_back({change.key, at_entry, change.at_entry});
    settled_ = false;
  }

  void collect_real_list(PyObject* object, const Heap::List& now) {
    if (heap_.has_list(object)) return;  // what it holds is that of a list like others
    if (now.twin != nullptr) {
      if (!(now.twin->elements == now.at_entry)) fail("a list of before the call changes in it");
      return;
    }
    Heap::List& list = heap_.list_of(object, now.source);
    list.paths.insert(now.paths.begin(), now.paths.end());
    before_.add(*list.appended);
    settled_ = false;
  }

  /// Whether the list is one that goes through the loop as a list of the graph.
  bool collect_list(Sequence& sequence, const Elements& initial) {
    const Rolled* end = sequence.elements.rolled().get();
    auto growth = growth_.find(&sequence);
    if (growth == growth_.end()) {
      if (end == nullptr && initial.size() == sequence.elements.size()) return false;
      if (sequence.elements == initial) return true;
      begin_growth(sequence, initial);
      return true;
    }
    if (end == nullptr) fail("a list is emptied or filled anew in it");
    if (growth->second.form.tracked) tracks_ = true;
    if (end->front != growth->second.front) {
      growth->second.front = end->front;
      growth->second.undecided = false;
      settled_ = false;
    }
    ends_.insert(ends_.end(), end->lists.begin(), end->lists.end());
    return true;
  }

  void begin_growth(Sequence& sequence, const Elements& initial) {
    settled_ = false;
    Growth growth;
    if (const Rolled* before = initial.rolled().get()) {
      growth.form = before->form;
      growth.front = before->front;
      growth_.emplace(&sequence, std::move(growth));
      return;
    }
    const Rolled* end = sequence.elements.rolled().get();
    if (!sequence.is_list || sequence.source != nullptr || sequence.type)
      fail("a list grows or shrinks in it");
    std::string why;
    std::vector<Value> elements = initial.known();
    if (end == nullptr) {
      const std::vector<Value>& now = sequence.elements.known();
      if (now.size() < elements.size()) fail("a list shrinks in it");
      auto kept = static_cast<std::ptrdiff_t>(elements.size());
      bool back = std::equal(elements.begin(), elements.end(), now.begin());
      growth.front = !back && std::equal(elements.begin(), elements.end(), now.end() - kept);
      if (!back && !growth.front) fail("a list changes in it other than by growing at an end");
      elements = now;
    }
    growth.undecided = initial.size() <= 1;
    auto form = end == nullptr ? common_form(interpreter_, elements, why) : end->form;
    if (!form) fail(why);
    if (end != nullptr) growth.front = end->front;
    growth.form = *form;
    growth_.emplace(&sequence, std::move(growth));
  }

  void collect_contents(Tensor& tensor, const TensorState& initial) {
    bool carried = forms_.contains(&tensor);
    bool becomes_tracked = tensor.requires_grad && !initial.requires_grad;
    if (becomes_tracked && tensor.source == nullptr && tensor.base == nullptr) {
      needs_round_ = true;
      if (tracked_contents_.insert(&tensor).second) {
        if (attempt_ > 0) fail("a tensor requires a gradient only after several rounds");
        settled_ = false;
      }
    } else if (tensor.requires_grad != initial.requires_grad || tensor.is_leaf != initial.is_leaf) {
      fail("a tensor becomes part of autograd's graph in it");
    }
    if (tensor.grad_replaced != initial.grad_replaced) fail("it sets a .grad");
    // A view is taken again of what its base then is.
    if (tensor.base != nullptr) return;
    if (!carried && tensor.value == initial.value) return;
    if (tensor.source != nullptr) fail("it writes a tensor of before the call");
    if (initial.requires_grad && initial.is_leaf) fail("it writes a leaf");
    tracks_ = tracks_ || tensor.requires_grad;
    if (!carried) {
      forms_[&tensor];
      settled_ = false;
    }
    ends_.push_back(tensor.value);
  }

  void collect_variables(Variables& variables, const VariableValues& initial) {
    std::set<std::string> names;
    for (const auto& [name, value] : initial) names.insert(name);
    for (const auto& [name, value] : variables.values) names.insert(name);
    for (const std::string& name : names) {
      auto before = initial.find(name);
      auto now = variables.values.find(name);
      join_slot(variables, name, before == initial.end() ? nullptr : before->second,
                now == variables.values.end() ? nullptr : now->second, true);
    }
  }

  static std::string key_of(size_t index) {
    std::string digits = std::to_string(index);
    return std::string(12 - std::min<size_t>(12, digits.size()), '0') + digits;
  }

  const Form& form_at(const Changeable& object, const std::string& key) {
    static const Form same;
    auto forms = forms_.find(&object);
    if (forms == forms_.end()) return same;
    auto form = forms->second.find(key);
    return form == forms->second.end() ? same : form->second;
  }

  void join_slot(Changeable& object, const std::string& key, const Value& initial, const Value& end,
                 bool may_be_unmerged) {
    Form form = form_at(object, key);
    pending_ = {};
    std::string why;
    if (!join(form, initial, end, why)) {
      if (!may_be_unmerged) fail(why);
      form = Form{Form::Kind::unmerged, {}};
      form.why_not = why;
      settled_ = false;
      pending_ = {};
    }
    if (form.kind == Form::Kind::same) return;
    forms_[&object][key] = form;
    ends_.insert(ends_.end(), pending_.ends.begin(), pending_.ends.end());
    end_roots_.insert(end_roots_.end(), pending_.roots.begin(), pending_.roots.end());
  }

  /// Extends the form to what the slot holds at the end of a round; false if nothing fits.
  bool join(Form& form, const Value& initial, const Value& end, std::string& why) {
    if (form.kind == Form::Kind::unmerged) return true;
    if (form.kind == Form::Kind::same) {
      if (initial == end || is_same_number(initial, end)) return true;
      if ((initial == nullptr && end != nullptr && may_begin_certainly()) ||
          as<Undefined>(initial) != nullptr) {
        form = Form{Form::Kind::last, {}};
        settled_ = false;
      }
    }
    if (form.kind == Form::Kind::last) return join_last(form, initial, end, why);
    if (form.kind == Form::Kind::same) {
      if (initial == nullptr || end == nullptr) {
        why = "it is not set in each round";
        return false;
      }
      settled_ = false;
      const auto *first = as<Sequence>(initial), *last = as<Sequence>(end);
      if (first != nullptr && last != nullptr && !first->is_list) {
        form = Form{Form::Kind::parts, std::vector<Form>(first->elements.size())};
      } else {
        form = Form{Form::Kind::carried, {}};
      }
    }
    if (form.kind == Form::Kind::parts) {
      const auto *first = as<Sequence>(initial), *last = as<Sequence>(end);
      if (last == nullptr || last->is_list || last->type.get() != first->type.get() ||
          last->elements.size() != first->elements.size()) {
        why = "a tuple changes its form";
        return false;
      }
      for (size_t i = 0; i < first->elements.size(); ++i)
        if (!join(form.parts[i], first->elements[i], last->elements[i], why)) return false;
      return true;
    }
    return join_carried(form, initial, end, why);
  }

  bool join_last(Form& form, const Value& initial, const Value& end, std::string& why) {
    std::vector<graph::Type> before = std::exchange(form.types, {});
    form.last = end;
    if (!collect_last(form, end)) {
      why = "it is not set in each round to a number or tensor";
      return false;
    }
    if (before != form.types) settled_ = false;
    needs_round_ = needs_round_ || initial == nullptr;
    return true;
  }

  bool collect_last(Form& form, const Value& end) {
    if (end == nullptr || as<Unmerged>(end) != nullptr) return false;
    if (is_number(end)) {
      pending_.ends.push_back(interpreter_.graph_value(end));
      form.types.push_back(pending_.ends.back()->type);
      return true;
    }
    if (const auto* known = as<Known>(end)) return is_immutable_constant(known->object.get());
    if (const auto* tuple = as<Sequence>(end)) {
      if (tuple->is_list || tuple->viewed || tuple->source != nullptr) return false;
      for (const Value& part : tuple->elements.known())
        if (!collect_last(form, part)) return false;
      return true;
    }
    auto tensor = shared_as<Tensor>(end);
    if (tensor == nullptr || tensor->is_parameter || tensor->grad != nullptr ||
        tensor->source != nullptr || (tensor->requires_grad && tensor->is_leaf) ||
        !is_current(*tensor))
      return false;
    if (tensor->requires_grad) tracks_ = true;
    add_end(tensor);
    form.types.push_back(tensor->value->type);
    return true;
  }

  void add_end(const std::shared_ptr<Tensor>& tensor) {
    pending_.ends.push_back(tensor->value);
    std::vector<std::shared_ptr<Tensor>> roots = {memory_of(tensor)};
    for (const PossibleAlias& alias : roots.front()->possible_aliases)
      if (auto other = alias.tensor.lock()) roots.push_back(other);
    pending_.roots.push_back(std::move(roots));
  }

  bool join_carried(Form& form, const Value& initial, const Value& end, std::string& why) {
    if (end == nullptr || as<Unmerged>(end) != nullptr) {
      why = "it is not set in each round";
      return false;
    }
    if (is_number(initial) && is_number(end)) {
      graph::Value* value = interpreter_.graph_value(end);
      if (value->type != initial_number(initial)->type) {
        why = "a number changes its kind";
        return false;
      }
      pending_.ends.push_back(value);
      return true;
    }
    if (as<RuntimeObject>(initial) != nullptr || as<RuntimeObject>(end) != nullptr)
      return join_object(form, initial, end, why);
    auto first = shared_as<Tensor>(initial), last = shared_as<Tensor>(end);
    if (first == nullptr || last == nullptr) {
      why = "it is of another kind in each round";
      return false;
    }
    if (!join_tracked(form, *first, *last, why)) return false;
    if (first->value->type != last->value->type || first->is_parameter || last->is_parameter ||
        last->grad != nullptr) {
      why = cat("it is ", graph::to_string(first->value->type), " first, then ",
                graph::to_string(last->value->type));
      return false;
    }
    if (!is_current(*last)) fail("it carries a view of what was written");
    add_end(last);
    return true;
  }

  /// An object that only the run meets, in the first round or in later ones.
  bool join_object(Form& form, const Value& initial, const Value& end, std::string& why) {
    graph::Value* value = object_value(interpreter_, end);
    if (value == nullptr || initial_object(initial) == nullptr) {
      why = "it is of another kind in each round";
      return false;
    }
    const size_t count = form.classes.size();
    form.classes = united(std::move(form.classes), possible_classes(interpreter_, initial));
    form.classes = united(std::move(form.classes), possible_classes(interpreter_, end));
    if (form.classes.size() != count) settled_ = false;
    if (form.classes.empty()) {
      why = "an object of which nothing was seen";
      return false;
    }
    pending_.ends.push_back(value);
    return true;
  }

  /// Eager's tensors require gradients from the first round on, or never.
  bool join_tracked(Form& form, const Tensor& first, const Tensor& last, std::string& why) {
    if (!first.requires_grad && !last.requires_grad) {
      why = "a leaf and what is computed";
      return first.is_leaf == last.is_leaf;
    }
    if (!last.requires_grad || last.is_leaf) {
      why = "it loses its gradient in the loop";
      return false;
    }
    tracks_ = true;
    if (!first.requires_grad || first.is_leaf) needs_round_ = true;
    if (form.tracked) return true;
    if (!first.requires_grad && attempt_ > 0) {
      why = "it requires a gradient only after several rounds";
      return false;
    }
    form.tracked = true;
    settled_ = false;
    return true;
  }

  static bool is_same_number(const Value& a, const Value& b) {
    const auto *first = as<Known>(a), *second = as<Known>(b);
    if (first != nullptr && second != nullptr)
      return same_constant(first->object.get(), second->object.get());
    const auto *left = as<Number>(a), *right = as<Number>(b);
    return left != nullptr && right != nullptr && left->type == right->type &&
           ((left->dim && right->dim && *left->dim == *right->dim) ||
            (left->value != nullptr && left->value == right->value));
  }

  // --- the node

  void make_node() {
    interpreter_.enter_block(outer_);
    graph::Graph& graph = interpreter_.builder().graph();
    graph::Node* node = graph.new_node(op::while_);
    node->span = span_;
    body_->results = ends_;
    TORCHJANUS_CHECK(
        condition_->parameters.size() == ends_.size() && body_->parameters.size() == ends_.size(),
        "loop: ", ends_.size(), " values for ", body_->parameters.size(), " parameters");
    at_ = nullptr;
    if ((tracks_ || needs_round_ || hands_on_argument()) && begins_certainly())
      node->attributes.set("minimum", int64_t{1}), begins_ = true;
    else if (needs_round_)
      fail("without a round there is no gradient");
    set_state([&](graph::Value* initial) {
      node->inputs.push_back(initial);
      graph::Value* output = graph.new_value(initial->type, initial->name);
      output->definition = node;
      output->index = static_cast<uint32_t>(node->outputs.size());
      node->outputs.push_back(output);
      return output;
    });
    for (auto* block : {&condition_, &body_}) {
      (*block)->parent = node;
      node->blocks.push_back(std::move(*block));
    }
    graph.append(outer_, node);
    interpreter_.scope_nodes[node] = test_;
    finish_lists(*node);
    relate_tensors();
  }

  /// What is known of the lists that grew.
  void finish_lists(const graph::Node& node) {
    for (auto& [object, growth] : growth_) {
      auto list = std::make_shared<Rolled>(*object->elements.rolled());
      const auto place = std::find(node.outputs.begin(), node.outputs.end(), list->lists.front());
      const auto index = static_cast<size_t>(place - node.outputs.begin());
      list->undecided = false;
      list->length = length_behind(*object, *node.blocks[1], index);
      object->elements = ElementList(list);
      // Tensors of before that it may hold now.
      for (const PossibleAlias& alias : growth.memory->possible_aliases)
        if (auto other = alias.tensor.lock())
          other->possible_aliases.push_back({growth.memory, growth.memory->version});
    }
  }

  /// The length of a list that each round makes longer by as many elements; null: it varies.
  Value length_behind(const Sequence& sequence, const graph::Block& body, size_t index) {
    Value rounds = parts_.rounds ? parts_.rounds() : nullptr;
    if (rounds == nullptr) return nullptr;
    int64_t pushes = 0;
    const graph::Value* value = body.results[index];
    for (; value->definition != nullptr && value->definition->op == &op::list_push; ++pushes)
      value = value->definition->inputs[0];
    if (value != body.parameters[index]) return nullptr;
    const auto& initial = std::get<Elements>(*before_.find(&sequence));
    Value length = initial.rolled() == nullptr
                       ? interpreter_.integer(static_cast<int64_t>(initial.size()))
                       : initial.rolled()->length;
    if (length == nullptr) return nullptr;
    Value added =
        binary(interpreter_, syntax::Operator::Mult, rounds, interpreter_.integer(pushes));
    return binary(interpreter_, syntax::Operator::Add, length, added);
  }

  /// Whether the first round always comes: known, or seen in all runs and guarded.
  bool begins_certainly() {
    if (!may_begin_certainly()) return false;
    before_.restore();
    Truth truth = parts_.test();
    return truth.known
               ? *truth.known
               : interpreter_.follow(truth.flag, python::Object::borrow(Py_True), test_.fact);
  }

  /// Whether a tensor that goes through the loop is one of the entry without a round.
  bool hands_on_argument() const {
    return std::any_of(tensors_.begin(), tensors_.end(), [](const CarriedTensor& carried) {
      return std::any_of(carried.roots.begin(), carried.roots.end(),
                         [](const auto& root) { return root->source != nullptr; });
    });
  }

  bool may_begin_certainly() const {
    if (parts_.may_be_empty) return false;
    const speculate::NodeFact* seen = interpreter_.fact(test_.fact);
    bool is_random = false;
    graph::for_each_node(*condition_, [&](const graph::Node& node) {
      is_random = is_random || node.op->is(graph::Trait::random) || node.op == &op::opaque;
    });
    if (const auto* chosen = interpreter_.call().chosen)
      for (const auto& choice : *chosen)  // it was seen after all that no round came
        if (choice.fact == test_.fact && test_.facts_key.is(choice.facts_key.get()) &&
            !choice.outcome)
          return false;
    return (seen == nullptr || seen->least_trips != 0) && !is_random;
  }

  /// Which tensors may be one after the loop: as they were before it, or as the last round left
  /// them.
  void relate_tensors() {
    TORCHJANUS_CHECK(tensors_.size() == end_roots_.size(), "loop: tensors without an end");
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (begins_) tensors_[i].roots.clear();
      tensors_[i].roots.insert(tensors_[i].roots.end(), end_roots_[i].begin(), end_roots_[i].end());
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      Tensor& tensor = *tensors_[i].tensor;
      tensor.possible_aliases.clear();
      for (const auto& root : tensors_[i].roots) {
        if (forms_.contains(root.get())) fail("it writes a tensor that it also hands on");
        tensor.possible_aliases.push_back({root, root->version});
      }
      for (size_t j = 0; j < i; ++j) {
        if (!share_roots(tensors_[i], tensors_[j])) continue;
        tensor.possible_aliases.push_back({tensors_[j].tensor, tensors_[j].tensor->version});
        tensors_[j].tensor->possible_aliases.push_back({tensors_[i].tensor, tensor.version});
      }
    }
    // What needs no gradient outside must not seem to have one through the blocks.
    if (interpreter_.differentiable.empty()) return;
    for (const CarriedTensor& carried : tensors_) detach(*carried.tensor);
    for (const Snapshot::Saved& saved : before_.objects())
      if (auto* tensor = dynamic_cast<Tensor*>(saved.object);
          saved.alive() && tensor != nullptr && forms_.contains(tensor))
        detach(*tensor);
  }

  void detach(Tensor& tensor) {
    if (!tensor.requires_grad) tensor.value = op::detach(interpreter_.builder(), {tensor.value});
  }

  static bool share_roots(const CarriedTensor& a, const CarriedTensor& b) {
    return std::any_of(a.roots.begin(), a.roots.end(), [&](const auto& root) {
      return std::find(b.roots.begin(), b.roots.end(), root) != b.roots.end();
    });
  }

  struct Pending {
    std::vector<graph::Value*> ends;
    std::vector<std::vector<std::shared_ptr<Tensor>>> roots;
  };

  Interpreter& interpreter_;
  TestKey test_;
  const LoopParts& parts_;
  graph::Block& outer_;
  graph::SourceSpan span_;
  Snapshot before_;
  size_t effects_, results_;  // how many there were before
  Heap heap_;                 ///< before the loop; with what the rounds change as it is then
  /// By table, and which of its changes.
  std::map<std::pair<PyObject*, size_t>, Form> heap_forms_;
  bool grad_enabled_;
  const graph::Block* at_ = nullptr;
  std::unique_ptr<graph::Block> condition_, body_;
  /// Of objects that rounds change: by variable name or position; a tensor's contents need none.
  std::map<const Changeable*, std::map<std::string, Form>> forms_;
  std::map<Sequence*, Growth> growth_;
  std::vector<CarriedTensor> tensors_;
  std::vector<graph::Value*> ends_;
  std::vector<std::vector<std::shared_ptr<Tensor>>> end_roots_;
  Pending pending_;
  std::map<std::pair<PyObject*, size_t>, Pending> heap_pending_;
  bool settled_ = false;
  bool begins_ = false;  ///< the first round always comes
  int attempt_ = 0;
  Interpreter::History history_;
  decltype(Interpreter::known_classes) known_classes_;
  bool tracks_ = false;       ///< a gradient flows from round to round
  bool needs_round_ = false;  ///< without a round something would require no gradient
  std::set<const Tensor*> tracked_contents_;  ///< written with what requires a gradient
};

}  // namespace

void loop_in_graph(Interpreter& interpreter, const TestKey& test, const LoopParts& parts) {
  Loop(interpreter, test, parts).run();
}

void loop_in_graph(Interpreter& interpreter, int fact, const LoopParts& parts) {
  loop_in_graph(interpreter, {interpreter.frame().code->facts_key, fact}, parts);
}

bool rounds_vary(Interpreter& interpreter, int fact) {
  const speculate::NodeFact* seen = interpreter.fact(fact);
  // A loop that runs but was never counted was a graph of its own while this one was profiled.
  bool is_stable = seen != nullptr && seen->most_trips >= 0 &&
                   seen->least_trips == seen->most_trips && !options().is_disabled("unroll");
  return !is_stable && may_merge(interpreter, fact);
}

Truth peek(Interpreter& interpreter, const std::function<Truth()>& test) {
  Snapshot before = Snapshot::take();
  Heap heap = interpreter.heap;
  auto known_classes = interpreter.known_classes;
  graph::Block& block = interpreter.builder().block();
  graph::Block scratch;
  interpreter.enter_block(scratch);
  size_t effects = interpreter.output().effects.size();
  Truth truth = test();
  before.restore();
  interpreter.heap = std::move(heap);
  interpreter.known_classes = std::move(known_classes);
  interpreter.output().effects.resize(effects);
  interpreter.enter_block(block);
  truth.flag = nullptr;
  return truth;
}

}  // namespace janus::frontend
