#include "frontend/language/run_ahead.h"

#include <algorithm>

namespace janus::frontend {

namespace {

/// The scope that the name, which the code does not bind, is a variable of; null: none that is
/// open.
std::shared_ptr<Variables> scope_with(const std::string& name, std::shared_ptr<Variables> scope) {
  while (scope != nullptr && !scope->values.contains(name)) scope = scope->parent;
  return scope;
}

bool is_as_it_was(const Snapshot::Saved& saved) {
  return !saved.alive() || same_but_for_reads(saved.state, state_of(*saved.object));
}

}  // namespace

RunAhead::RunAhead(Interpreter& interpreter, const Frame& generator)
    : interpreter_(interpreter),
      name_(generator.name),
      is_library_(generator.is_library),
      own_(generator.variables.get()),
      before_(SavedState::of(interpreter)),
      modes_(interpreter.modes),
      changes_(interpreter.heap.change_count()) {
  for (const auto& [name, value] : generator.variables->values) watch(value, read_);
  watch_variables(*generator.variables->scope, generator.variables->parent);
  watch_heap();
}

Value RunAhead::Variable::now() const {
  const auto found = scope->values.find(name);
  return found == scope->values.end() ? nullptr : found->second;
}

/// What the code's names mean outside of it.
void RunAhead::watch_variables(const syntax::Scope& scope,
                               const std::shared_ptr<Variables>& variables) {
  for (const auto& [name, kind] : scope.names) {
    if (kind != syntax::NameKind::free && kind != syntax::NameKind::global) continue;
    const auto& of_statements = interpreter_.statement_run.variables;
    std::shared_ptr<Variables> outer = scope_with(name, variables);
    if (outer == nullptr) outer = of_statements;
    if (outer == nullptr) continue;
    const Variable variable{outer, name, nullptr};
    const bool is_known = std::ranges::any_of(variables_, [&](const Variable& other) {
      return other.scope == outer && other.name == name;
    });
    if (is_known) continue;
    variables_.push_back({outer, name, variable.now()});
    watch(variables_.back().value, read_);
  }
}

/// What the run has put into containers that were there before it.
void RunAhead::watch_heap() {
  for (PyObject* object : interpreter_.heap.list_order()) {
    const Heap::List& list = interpreter_.heap.list_at(object);
    watch(list.appended, read_);
    watch(list.shadow, read_);
  }
  for (PyObject* identity : interpreter_.heap.table_order())
    watch(interpreter_.heap.table(identity)->shadow, read_);
}

/// A tensor counts as the object that it is: the generator computes nothing from what it holds.
void RunAhead::watch(const Value& value, Snapshot& seen) {
  auto* changeable = dynamic_cast<Changeable*>(value.get());
  if (as<Tensor>(value) == nullptr && changeable != nullptr) {
    if (seen.find(changeable) != nullptr) return;
    seen.add(*changeable);
  }
  watch_parts(value, seen);
}

void RunAhead::watch_parts(const Value& value, Snapshot& seen) {
  const auto watch_all = [&](const auto& values) {
    for (const Value& each : values) watch(each, seen);
  };
  if (const auto* sequence = as<Sequence>(value)) {
    watch(sequence->viewed, seen);
    if (sequence->elements.rolled() == nullptr) watch_all(sequence->elements.known());
  } else if (const auto* dictionary = as<Dictionary>(value)) {
    watch(dictionary->attributes, seen);
    for (const auto& [key, element] : dictionary->items) watch(element, seen);
  } else if (const auto* set = as<SetValue>(value)) {
    watch_all(set->elements);
  } else if (const auto* instance = as<Instance>(value)) {
    watch_all(std::initializer_list<Value>{instance->fields, instance->items, instance->elements});
  } else if (const auto* method = as<Method>(value)) {
    watch_all(std::initializer_list<Value>{method->self, method->function});
  } else if (const auto* closure = as<Closure>(value)) {
    watch_variables(*closure->scope, closure->variables);
  } else if (const auto* optional = as<Optional>(value)) {
    watch(optional->value, seen);
  } else if (const auto* either = as<Either>(value)) {
    watch_all(std::initializer_list<Value>{either->if_true, either->if_false});
  }
}

void RunAhead::yields(const Value& value) { watch(value, yielded_); }

void RunAhead::check_only_read() const {
  const auto is_same = [&](const Snapshot::Saved& saved) {
    return saved.object == own_ || is_as_it_was(saved);
  };
  if (interpreter_.modes != modes_ || interpreter_.heap.change_count() != changes_ ||
      !std::ranges::all_of(before_.objects.objects(), is_same) ||
      !std::ranges::all_of(yielded_.objects(), is_as_it_was))
    refuse();
}

void RunAhead::check_unchanged() const {
  if (is_library_) return;
  const auto is_same = [](const Variable& variable) { return variable.now() == variable.value; };
  if (interpreter_.modes != modes_ || interpreter_.heap.change_count() != changes_ ||
      !std::ranges::all_of(variables_, is_same) ||
      !std::ranges::all_of(read_.objects(), is_as_it_was) ||
      !std::ranges::all_of(yielded_.objects(), is_as_it_was))
    refuse();
}

}  // namespace janus::frontend
