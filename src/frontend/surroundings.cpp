#include "frontend/surroundings.h"

#include <algorithm>

#include "frontend/form.h"

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
        return follow(as<Dictionary>(value)->factory);
      case ValueKind::instance:
        return follow(as<Instance>(value)->fields);
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

/// Of variables only those that others can see.
ChangeableState visible_state(const Changeable& object) {
  ChangeableState state = state_of(object);
  const auto* variables = dynamic_cast<const Variables*>(&object);
  if (variables != nullptr)
    std::erase_if(std::get<VariableValues>(state),
                  [&](const auto& each) { return !is_shared(variables->scope, each.first); });
  return state;
}

bool same_variables(const VariableValues& a, const VariableValues& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_value(x.second, y.second);
  });
}

}  // namespace

Surroundings::Surroundings(Interpreter& interpreter, const std::vector<Value>& given)
    : heap_(interpreter.heap) {
  Reachable reachable;
  for (const Value& value : given) reachable.follow(value);
  for (const auto& tensor : interpreter.entry_tensor_order) reachable.follow(tensor);
  for (PyObject* identity : heap_.table_order()) {
    reachable.follow(heap_.table(identity)->twin);
    for (const Heap::Change& change : heap_.table(identity)->changes)
      reachable.follow(change.value);
  }
  for (PyObject* object : heap_.list_order()) {
    reachable.follow(heap_.list_at(object).appended);
    reachable.follow(heap_.list_at(object).twin);
  }
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

void Surroundings::add(const Changeable& object) {
  if (auto owner = object.owner()) seen_.push_back({owner, &object, visible_state(object)});
}

bool Surroundings::hold(Interpreter& interpreter, const Ignored& ignored) const {
  return same_heap(interpreter.heap, ignored) &&
         std::all_of(seen_.begin(), seen_.end(), [&](const Seen& seen) {
           return seen.owner.expired() || ignored(*seen.object) || is_same(seen);
         });
}

bool Surroundings::is_same(const Seen& seen) const {
  const ChangeableState now = visible_state(*seen.object);
  if (const auto* variables = std::get_if<VariableValues>(&seen.state))
    return same_variables(*variables, std::get<VariableValues>(now));
  return same_but_for_reads(seen.state, now);
}

bool Surroundings::same_heap(const Heap& now, const Ignored& ignored) const {
  static const std::vector<Heap::Change> none;
  for (const auto* order : {&now.table_order(), &heap_.table_order()})
    for (PyObject* identity : *order) {
      const Heap::Table *a = heap_.table(identity), *b = now.table(identity);
      if ((a != nullptr && a->cleared) != (b != nullptr && b->cleared)) return false;
      const auto& before = a == nullptr ? none : a->changes;
      const auto& after = b == nullptr ? none : b->changes;
      const auto same = [](const Heap::Change& x, const Heap::Change& y) {
        return x.key.is(y.key.get()) && same_value(x.value, y.value);
      };
      if (!std::equal(before.begin(), before.end(), after.begin(), after.end(), same)) return false;
    }
  // The elements of lists that had changed are seen as those of other lists.
  for (PyObject* object : now.list_order()) {
    if (heap_.has_list(object) &&
        (heap_.list_at(object).twin != nullptr) == (now.list_at(object).twin != nullptr))
      continue;
    const Heap::List& list = now.list_at(object);
    if (list.twin != nullptr && list.twin->elements != ElementList(list.at_entry)) return false;
    if (list.twin == nullptr && !ignored(*list.appended) &&
        (list.appended->elements.rolled() != nullptr || !list.appended->elements.empty()))
      return false;
  }
  return true;
}

}  // namespace janus::frontend
