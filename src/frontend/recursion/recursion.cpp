#include "frontend/recursion/recursion.h"

#include <algorithm>

#include "base/policy.h"
#include "frontend/core/heap.h"
#include "frontend/core/operations.h"
#include "frontend/core/recursion_state.h"
#include "frontend/recursion/recursive_body.h"
#include "frontend/recursion/recursive_call.h"
#include "frontend/recursion/recursive_function.h"
#include "frontend/values/constants.h"
#include "frontend/values/symbolic_list.h"
#include "graph/functions.h"

namespace janus::frontend {

using python::Object;

namespace {

bool is_same_function(const Frame& frame, const Activation& activation) {
  return frame.variables->scope == activation.scope && frame.environment == activation.environment;
}

}  // namespace

Recursion::Recursion(Interpreter& interpreter, const Generalisation& known)
    : RecursionState(interpreter, known), interpreter_(interpreter), functions_(interpreter) {}
Recursion::~Recursion() = default;

Recursion& recursion_of(AttachedStates& attached) {
  return static_cast<Recursion&>(attached.recursion());
}

bool Recursion::is_building() const { return functions_.is_building(); }

Value Recursion::invoke(const Activation& activation) {
  if (!known().recursive.contains(activation.scope)) {
    detect(activation);
    return activation.run(activation.variables);
  }
  if (is_first_of_entry(activation)) return activation.run(activation.variables);
  return call(activation);
}

/// The first activation for an object of the entry, whose class is known: its tests are decided.
/// Of many such objects, as the trees of a batch, only the first few are interpreted in place: the
/// graph stays small, and the first activations of the others are computed together.
bool Recursion::is_first_of_entry(const Activation& activation) {
  if (is_building() || first_activations_[activation.scope] == policy::kMostFirstActivations)
    return false;
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
        known->second.classes.size() == 1) {
      ++first_activations_[activation.scope];
      return true;
    }
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
    const Source* path = path_at_entry(before->second);
    const bool is_one =
        path_at_entry(value) == path ||
        (known_object(value) != nullptr && known_object(value) == known_object(before->second));
    if (path == nullptr || path_at_entry(value) == nullptr || is_one) continue;
    if (interpreter_.differs_from_call_to_call(path))
      throw Generalise{activation.scope, activation.facts_key, place_of(path), {}};
  }
  if (count >= policy::kActivationsFollowed &&
      interpreter_.open_scopes() > outermost->open_scopes &&
      interpreter_.open_scopes() > innermost->open_scopes)
    throw Generalise{activation.scope, activation.facts_key, {}, {}};
}

// --- functions of the graph ---------------------------------------------------------------------

namespace {

bool same_specs(const Parameters& a, const Parameters& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_spec(x.second, y.second);
  });
}

/// The first part that is the same in all activations in one form and in the other is not.
std::optional<std::pair<std::string, const TreeSpec*>> differing_part(const TreeSpec& a,
                                                                      const TreeSpec& b,
                                                                      const std::string& part) {
  if (same_spec(a, b)) return std::nullopt;
  if (a.kind == TreeSpec::Kind::same || b.kind == TreeSpec::Kind::same) {
    // A container is varied by its parts.
    return std::pair(part, a.kind == TreeSpec::Kind::same ? &a : &b);
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

/// Whether all that the function sees besides its arguments is as it was.
bool Recursion::is_applicable(const RecursiveFunction& function) const {
  const auto& places = function.places;
  const Heap& heap = interpreter_.heap;
  for (const GrowingList& growth : function.growths)
    if (growth.real && (!heap.has_list(growth.real.get()) ||
                        heap.list_at(growth.real.get()).appended != growth.list))
      return false;
  return function.call_environment->hold(
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

/// The arguments taken apart.
Passed Recursion::take_arguments(const Activation& activation, Parameters& parameters) const {
  const auto& variables = activation.variables->values;
  std::set<const AbstractValue*> fresh;  // dicts of keywords are made for this call
  for (const auto& [name, value] : variables)
    if (const auto* rest = as<Dictionary>(value); rest != nullptr && value.use_count() == 1)
      fresh.insert(rest);
  Flattening given(
      interpreter_,
      [&](const std::string& part) { return known().varying.contains({activation.scope, part}); },
      [&](const AbstractValue& object) { return !fresh.contains(&object); });
  for (const auto& [name, value] : variables)
    parameters.emplace_back(name, given.take(value, name));
  Passed passed;
  passed.add(given);
  return passed;
}

/// The function that a call with these arguments runs; null if it is not made yet.
RecursiveFunction* Recursion::find_function(const Activation& activation, const Parameters& given) {
  for (const auto& each : functions_) {
    if (each->scope != activation.scope || each->environment != activation.environment ||
        each->modes != interpreter_.modes)
      continue;
    const bool applies = is_applicable(*each);
    if (!applies && !each->is_building) continue;
    if (fits(*each, given)) {
      if (!applies) each->building->collect_changes();
      return each.get();
    }
    if (!each->is_building) continue;
    for (size_t i = 0; i < given.size() && i < each->parameters.size(); ++i) {
      const auto& [name, spec] = each->parameters[i];
      if (auto part = differing_part(spec, given[i].second, name))
        vary(activation, part->first, *part->second);
    }
  }
  return nullptr;
}

/// Whether the function takes such arguments; one that is being made takes more classes of objects.
bool Recursion::fits(RecursiveFunction& function, const Parameters& given) {
  if (!same_specs(function.parameters, given)) return false;
  bool grew = false;
  Parameters wider = function.parameters;
  for (size_t i = 0; i < given.size(); ++i)
    if (add_classes(wider[i].second, given[i].second)) grew = true;
  if (grew && !function.is_building) return false;
  if (grew) {
    function.parameters = std::move(wider);
    function.at_fixpoint = false;
  }
  return true;
}

/// Begins anew with the part of the arguments, the same in all activations so far, as one that
/// differs.
void Recursion::vary(const Activation& activation, const std::string& part, const TreeSpec& spec) {
  const Source* path = is_data(spec.value) ? path_at_entry(spec.value) : nullptr;
  if (path != nullptr && interpreter_.differs_from_call_to_call(path))
    throw Generalise{activation.scope, activation.facts_key, place_of(path), {}};
  if (known().varying.contains({activation.scope, part}))
    interpreter_.refuse(ReasonCode::dynamic_value, cat(part, " in a recursion"));
  throw Generalise{activation.scope, activation.facts_key, {}, part};
}

RecursiveFunction& Recursion::make_function(const Activation& activation, Parameters parameters) {
  if (functions_.size() == policy::kMostGraphFunctions)
    interpreter_.refuse(ReasonCode::limit, "too many forms of a recursion");
  auto function = std::make_unique<RecursiveFunction>();
  function->scope = activation.scope;
  function->environment = activation.environment;
  function->modes = interpreter_.modes;
  function->name = function->program_name = activation.name;
  for (const auto& other : functions_)
    if (other->name.starts_with(activation.name))
      function->name = cat(activation.name, "_", functions_.size() + 1);
  function->parameters = std::move(parameters);
  const size_t count = functions_.size();
  RecursiveFunction& made = functions_.add(std::move(function));
  try {
    RecursiveBody(functions_, interpreter_, made, activation).run();
  } catch (const UnknownResult&) {
    functions_.drop_after(count);
    throw;
  }
  return made;
}

Value Recursion::call(const Activation& activation) {
  Parameters parameters;
  Passed given = take_arguments(activation, parameters);
  RecursiveFunction* function = find_function(activation, parameters);
  if (function == nullptr) function = &make_function(activation, std::move(parameters));
  if (!function->result) throw UnknownResult{function};
  return RecursiveCall(interpreter_, *function).run(std::move(given));
}

}  // namespace janus::frontend
