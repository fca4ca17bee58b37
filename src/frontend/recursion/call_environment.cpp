#include "frontend/recursion/call_environment.h"

#include <algorithm>

#include "frontend/recursion/outside_places.h"
#include "frontend/recursion/runtime_store_log.h"

namespace janus::frontend {

namespace {

/// Whether code outside of the scope's own can read or write its variable.
bool is_shared(const syntax::Scope* scope, const std::string& name) {
  return scope == nullptr || scope->kind == syntax::Scope::Kind::statements ||
         scope->kind == syntax::Scope::Kind::class_ ||
         scope->kind_of(name) == syntax::NameKind::cell;
}

/// Follows values to all objects that they lead to.
class Reachable {
 public:
  void follow(const Value& value) {
    if (value == nullptr || !seen_.insert(value.get()).second) return;
    if (const auto* object = dynamic_cast<const Changeable*>(value.get())) objects.insert(object);
    switch (value->kind) {
      case ValueKind::tensor:
        return follow(as<Tensor>(value)->base), follow(as<Tensor>(value)->grad);
      case ValueKind::sequence:
        return follow_sequence(*as<Sequence>(value));
      case ValueKind::dictionary:
        for (const auto& [key, item] : as<Dictionary>(value)->items) follow(item);
        follow(as<Dictionary>(value)->attributes);
        return follow(as<Dictionary>(value)->factory);
      case ValueKind::instance:
        follow(as<Instance>(value)->elements);
        return follow(as<Instance>(value)->fields), follow(as<Instance>(value)->items);
      case ValueKind::either:
        return follow(as<Either>(value)->if_true), follow(as<Either>(value)->if_false);
      case ValueKind::method:
        return follow(as<Method>(value)->self), follow(as<Method>(value)->function);
      case ValueKind::closure:
        return follow_closure(*as<Closure>(value));
      case ValueKind::iterator:
      case ValueKind::native:
      case ValueKind::context:
      case ValueKind::super:
        leads_anywhere = true;
        return;
      default:
        return;
    }
  }

  std::set<const Changeable*> objects;
  bool leads_anywhere = false;  ///< to what nobody can follow

 private:
  void follow_sequence(const Sequence& sequence) {
    follow(sequence.viewed);
    if (sequence.elements.rolled() != nullptr) return;
    for (const Value& element : sequence.elements.known()) follow(element);
  }

  void follow_closure(const Closure& closure) {
    for (const Value& value : closure.defaults) follow(value);
    for (const auto& [name, value] : closure.keyword_defaults) follow(value);
  }

  std::set<const AbstractValue*> seen_;
};

/// The state of the object. Of variables it has only those that other functions can see.
ChangeableState visible_state(const Changeable& object) {
  ChangeableState state = state_of(object);
  const auto* variables = dynamic_cast<const Variables*>(&object);
  if (variables != nullptr)
    std::erase_if(std::get<VariableValues>(state),
                  [&](const auto& each) { return !is_shared(variables->scope, each.first); });
  return state;
}

/// The values that the object holds, each with its name.
std::vector<std::pair<std::string, Value>> parts_of(const ChangeableState& state) {
  std::vector<std::pair<std::string, Value>> parts;
  if (const auto* variables = std::get_if<VariableValues>(&state))
    return {variables->begin(), variables->end()};
  if (const auto* items = std::get_if<Items>(&state))
    for (const auto& [key, value] : *items) parts.emplace_back(element_name(parts.size()), value);
  else
    for (const Value& value : std::get<Elements>(state).known())
      parts.emplace_back(element_name(parts.size()), value);
  return parts;
}

bool same_keys(const ChangeableState& a, const ChangeableState& b) {
  const auto* items = std::get_if<Items>(&a);
  if (items == nullptr) return true;
  const auto& others = std::get<Items>(b);
  return std::equal(items->begin(), items->end(), others.begin(), others.end(),
                    [](const auto& x, const auto& y) { return x.first.is(y.first.get()); });
}

bool is_rolled(const ChangeableState& state) {
  const auto* elements = std::get_if<Elements>(&state);
  return elements != nullptr && elements->rolled() != nullptr;
}

}  // namespace

CallEnvironment::CallEnvironment(Interpreter& interpreter, const std::vector<Value>& given)
    : heap_(interpreter.heap) {
  Reachable reachable;
  for (const Value& value : given) reachable.follow(value);
  for (const auto& tensor : interpreter.entry_tensor_order) reachable.follow(tensor);
  for (PyObject* identity : heap_.table_order()) {
    reachable.follow(heap_.table(identity)->shadow);
    for (const Heap::Change& change : heap_.table(identity)->changes)
      reachable.follow(change.held.value_or_null());
  }
  for (PyObject* object : heap_.list_order()) {
    reachable.follow(heap_.list_at(object).appended);
    reachable.follow(heap_.list_at(object).shadow);
  }
  for (const Value& list : runtime_store_log_of(interpreter).lists()) reachable.follow(list);
  std::vector<const Changeable*> others;
  for (const Changeable* each = Changeable::first(); each != nullptr;
       each = each->next_changeable()) {
    const auto* variables = dynamic_cast<const Variables*>(each);
    if (variables == nullptr) {
      others.push_back(each);
      continue;
    }
    for (const auto& [name, value] : variables->values)
      if (is_shared(variables->scope, name)) reachable.follow(value);
    add(*each);
  }
  for (const Changeable* each : others)
    if (reachable.leads_anywhere || reachable.objects.contains(each)) add(*each);
}

void CallEnvironment::add(const Changeable& object) {
  // Changes of real dicts are seen in the heap.
  const auto* dictionary = dynamic_cast<const Dictionary*>(&object);
  if (dictionary != nullptr && dictionary->object) return;
  if (auto owner = object.owner()) seen_.push_back({owner, &object, visible_state(object)});
}

bool CallEnvironment::hold(const InterpreterState& state, const Apart& apart) const {
  return same_tables(state.heap, apart) && same_lists(state.heap, apart) &&
         std::all_of(seen_.begin(), seen_.end(), [&](const Seen& seen) {
           return seen.owner.expired() || is_same(seen, apart);
         });
}

bool CallEnvironment::is_same(const Seen& seen, const Apart& apart) {
  const ChangeableState now = visible_state(*seen.object);
  if (apart.list(*seen.object) || apart.place(*seen.object, {})) return true;
  const bool is_container = dynamic_cast<const Variables*>(seen.object) != nullptr ||
                            dynamic_cast<const Sequence*>(seen.object) != nullptr ||
                            dynamic_cast<const Dictionary*>(seen.object) != nullptr;
  if (!is_container || is_rolled(seen.state) || is_rolled(now))
    return same_but_for_reads(seen.state, now);
  const auto before = parts_of(seen.state), after = parts_of(now);
  return same_keys(seen.state, now) &&
         std::equal(before.begin(), before.end(), after.begin(), after.end(),
                    [&](const auto& a, const auto& b) {
                      return a.first == b.first &&
                             (same_value(a.second, b.second) || apart.place(*seen.object, a.first));
                    });
}

bool CallEnvironment::same_tables(const Heap& now, const Apart& apart) const {
  const auto changes = [&](const Heap::Table* table) {
    std::vector<Heap::Change> all;
    if (table == nullptr) return all;
    for (const Heap::Change& change : table->changes)
      if (!apart.change(table->target.table, change.key.get())) all.push_back(change);
    return all;
  };
  const auto same = [](const Heap::Change& a, const Heap::Change& b) {
    return a.key.is(b.key.get()) && same_held(a.held, b.held);
  };
  for (const auto* order : {&now.table_order(), &heap_.table_order()})
    for (PyObject* identity : *order) {
      const Heap::Table *a = heap_.table(identity), *b = now.table(identity);
      if ((a != nullptr && a->cleared) != (b != nullptr && b->cleared)) return false;
      const auto before = changes(a), after = changes(b);
      if (!std::equal(before.begin(), before.end(), after.begin(), after.end(), same)) return false;
    }
  return true;
}

/// Elements of lists that had changed are compared as those of other lists.
bool CallEnvironment::same_lists(const Heap& now, const Apart& apart) const {
  return std::all_of(now.list_order().begin(), now.list_order().end(), [&](PyObject* object) {
    const Heap::List& list = now.list_at(object);
    const bool was_there = heap_.has_list(object) &&
                           (heap_.list_at(object).shadow != nullptr) == (list.shadow != nullptr);
    if (was_there) return true;
    if (list.shadow != nullptr) return list.shadow->elements == ElementList(list.at_entry);
    return apart.list(*list.appended) ||
           (list.appended->elements.rolled() == nullptr && list.appended->elements.empty());
  });
}

}  // namespace janus::frontend
