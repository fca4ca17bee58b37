// Compilation of assumptions into the tree, and the walk. Steps are kept in an order in which each
// comes after its base; checks of one object stand together, so that the walk is two nested loops
// over flat arrays.
#include "speculate/guards.h"

#include <structmember.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/check.h"
#include "base/fault.h"
#include "base/options.h"
#include "python/dict_keys.h"
#include "python/integer.h"
#include "speculate/describe.h"
#include "speculate/guard_tree.h"
#include "speculate/path.h"
#include "speculate/recollection.h"

namespace janus::speculate {
namespace {

using Kind = Assumption::Kind;

/// Objects that live as long as the process in practice, or that no weak reference can be had of.
bool is_kept_strongly(PyObject* object) {
  return PyType_Check(object) || PyCFunction_Check(object) ||
         !PyType_SUPPORTS_WEAKREFS(Py_TYPE(object));
}

std::string separate_memory_text(const std::string& path, bool is_written) {
  return cat(path, " shares no memory with ",
             is_written ? "another tensor" : "a tensor that is written");
}

std::string pattern_text(const ElementPattern& pattern) {
  switch (pattern.kind) {
    case ElementPattern::Kind::integer:
      return "int";
    case ElementPattern::Kind::floating:
      return "float";
    case ElementPattern::Kind::boolean:
      return "bool";
    case ElementPattern::Kind::tensor:
      return graph::to_string(graph::Type::tensor(pattern.tensor.dtype, pattern.tensor.dims));
    case ElementPattern::Kind::tuple:
      break;
  }
  std::string text = "(";
  for (const ElementPattern& part : pattern.parts)
    text += (text.size() > 1 ? ", " : "") + pattern_text(part);
  return text + ")";
}

Wording wording_of(const Assumption& a) {
  switch (a.kind) {
    case Kind::identity:
      return {"", cat(" is ", describe_object(a.object.get()))};
    case Kind::exact_type:
      return {"type(", cat(") is ", describe_object(a.object.get()))};
    case Kind::equals:
      return {"", cat(PyLong_CheckExact(a.object.get()) || PyFloat_CheckExact(a.object.get()) ||
                              PyUnicode_CheckExact(a.object.get())
                          ? " == "
                          : " is ",
                      describe_object(a.object.get()))};
    case Kind::length:
      return {"len(", cat(") == ", a.number)};
    case Kind::keys:
      return {"the keys of ", cat(" are ", describe_object(a.object.get()))};
    case Kind::has_key:
      return {"", cat(" has the item ", describe_object(a.object.get()))};
    case Kind::missing_key:
      return {"", cat(" has no item ", describe_object(a.object.get()))};
    case Kind::missing_attribute:
      return {"", cat(" has no class attribute ", describe_object(a.object.get()))};
    case Kind::truth:
      return {"bool(", a.number != 0 ? ") is True" : ") is False"};
    case Kind::integer:
      return {"", a.symbol.empty() ? " is an int" : cat(" is an int, ", a.symbol)};
    case Kind::floating:
      return {"", " is a float"};
    case Kind::boolean:
      return {"", " is a bool"};
    case Kind::no_grad_value:
      return {"", ".grad is None"};
    case Kind::elements:
      return {"", cat(" has ", a.symbol, " elements ", pattern_text(*a.elements))};
    case Kind::same_object:
      return {"", cat(" is ", a.other->describe())};
    case Kind::not_same_object:
      return {"", a.other != nullptr ? cat(" is not ", a.other->describe())
                                     : cat(" is not one of the others of group ", a.number)};
    case Kind::separate_memory:
      return {"", separate_memory_text({}, a.number != 0)};
    case Kind::tensor:
      break;
  }
  std::string text =
      cat(": ", graph::to_string(graph::Type::tensor(a.tensor.dtype, a.tensor.dims)));
  if (a.tensor.requires_grad) text += a.tensor.is_leaf ? ", requires grad" : ", has a grad_fn";
  if (a.tensor.strides) text += ", not contiguous";
  return {"", std::move(text)};
}

}  // namespace

std::string describe(const Assumption& assumption) {
  return wording_of(assumption).around(assumption.source->describe());
}

ExpectedObject::ExpectedObject(PyObject* object, PyObject* on_death) : raw_(object) {
  if (object == nullptr) return;
  if (is_kept_strongly(object))
    strong_ = python::Object::borrow(object);
  else
    weak_ = python::check(PyWeakref_NewRef(object, on_death));
}

PyObject* ExpectedObject::get() const {
  if (!weak_) return strong_.get();
  PyObject* target = PyWeakref_GET_OBJECT(weak_.get());
  return target == Py_None ? nullptr : target;
}

namespace {

bool is_value_check(const Check& check, PyObject* object) {
  if (check.kind == Kind::equals)
    return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object) ||
           PyTuple_CheckExact(object);
  return check.kind == Kind::tensor || check.kind == Kind::integer ||
         check.kind == Kind::floating || check.kind == Kind::boolean ||
         check.kind == Kind::elements || check.kind == Kind::length;
}

bool holds_length(PyObject* object, int64_t number) {
  if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object) == number;
  if (PyList_Check(object)) return PyList_GET_SIZE(object) == number;
  if (PyDict_Check(object)) return PyDict_GET_SIZE(object) == number;
  if (PyAnySet_Check(object)) return PySet_GET_SIZE(object) == number;
  if (is_deque(object)) return Py_SIZE(object) == number;
  return false;
}

bool is_key(const ExpectedObject& expected, PyObject* key) {
  if (expected.is(key)) return true;
  PyObject* known = expected.get();
  return known != nullptr && equal_constants(known, key);
}

bool holds_keys(const std::vector<ExpectedObject>& keys, PyObject* dict) {
  if (!PyDict_Check(dict) || static_cast<size_t>(PyDict_GET_SIZE(dict)) != keys.size())
    return false;
  if (python::has_own_order(dict)) {
    const std::vector<python::Object> now = python::keys_in_order(dict);
    return std::equal(
        keys.begin(), keys.end(), now.begin(), now.end(),
        [](const auto& expected, const auto& key) { return is_key(expected, key.get()); });
  }
  Py_ssize_t position = 0;
  PyObject *key = nullptr, *value = nullptr;
  for (const ExpectedObject& expected : keys)
    if (PyDict_Next(dict, &position, &key, &value) == 0 || !is_key(expected, key)) return false;
  return true;
}

bool has_key(PyObject* object, PyObject* key) {
  if (key == nullptr) return false;  // it is gone
  if (PyAnySet_Check(object)) {
    const int found = PySet_Contains(object, key);
    if (found < 0) PyErr_Clear();
    return found == 1;
  }
  const auto* slot = PyDict_Check(object) ? nullptr : slot_of(object, key);
  if (slot != nullptr) {
    const python::Object held =
        python::Object::steal(PyMember_GetOne(reinterpret_cast<char*>(object), slot->d_member));
    PyErr_Clear();
    return static_cast<bool>(held);
  }
  PyObject* dict = PyDict_Check(object) ? object : instance_dict(object);
  if (dict == nullptr) return false;
  const int found = PyDict_Contains(dict, key);
  if (found < 0) PyErr_Clear();
  return found != 0;
}

bool has_class_attribute(PyObject* object, PyObject* name) {
  PyTypeObject* type =
      PyType_Check(object) ? reinterpret_cast<PyTypeObject*>(object) : Py_TYPE(object);
  return _PyType_Lookup(type, name) != nullptr;
}

/// Truth of containers, numbers, None and strings only: no __bool__ of the user runs.
bool holds_truth(PyObject* object, bool expected) {
  const bool plain = object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) ||
                     PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
                     PyBytes_CheckExact(object) || PyTuple_Check(object) || PyList_Check(object) ||
                     PyDict_Check(object) || PyAnySet_Check(object);
  if (!plain) return false;
  if (PyDict_Check(object)) return (PyDict_GET_SIZE(object) != 0) == expected;
  const int truth = PyObject_IsTrue(object);
  if (truth < 0) PyErr_Clear();
  return truth == static_cast<int>(expected);
}

bool holds_integer(const Check& check, PyObject* object, Walk& walk) {
  if (!PyLong_CheckExact(object)) return false;
  const std::optional<int64_t> number = python::int64_of(object);
  if (!number) return false;
  return check.symbol < 0 || walk.bind(static_cast<size_t>(check.symbol), *number);
}

bool holds_tensor(const TensorCheck& check, PyObject* object, Walk& walk) {
  int64_t* sizes = walk.sizes.data() + check.first_size;
  if (!tensor_access().matches(object, check.pattern, sizes)) return false;
  for (size_t i = 0; i < check.dims.size(); ++i) {
    const DimCheck& dim = check.dims[i];
    if (dim.kind == DimCheck::Kind::constant && sizes[i] != dim.number) return false;
    if (dim.kind == DimCheck::Kind::symbol &&
        (sizes[i] < dim.number || !walk.bind(dim.symbol, sizes[i])))
      return false;
  }
  return true;
}

bool holds_element(const ElementCheck& check, PyObject* object, Walk& walk) {
  switch (check.kind) {
    case ElementPattern::Kind::integer:
      return PyLong_CheckExact(object) && python::int64_of(object);
    case ElementPattern::Kind::floating:
      return PyFloat_CheckExact(object);
    case ElementPattern::Kind::boolean:
      return PyBool_Check(object);
    case ElementPattern::Kind::tensor:
      return holds_tensor(check.tensor, object, walk);
    case ElementPattern::Kind::tuple:
      break;
  }
  if (!PyTuple_CheckExact(object) || !holds_length(object, std::ssize(check.parts))) return false;
  for (size_t i = 0; i < check.parts.size(); ++i)
    if (!holds_element(check.parts[i], PyTuple_GET_ITEM(object, static_cast<Py_ssize_t>(i)), walk))
      return false;
  return true;
}

/// Lengths 0 and 1 are no ordinary ones, as sizes are not.
bool holds_elements(const Check& check, PyObject* object, Walk& walk) {
  if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return false;
  const Py_ssize_t length = PySequence_Fast_GET_SIZE(object);
  if (length < 2 || !walk.bind(static_cast<size_t>(check.symbol), length)) return false;
  for (Py_ssize_t i = 0; i < length; ++i)
    if (!holds_element(*check.elements, PySequence_Fast_GET_ITEM(object, i), walk)) return false;
  return true;
}

bool is_none_grad(PyObject* tensor) {
  return tensor_access().is_tensor(tensor) && tensor_access().grad_slot(tensor).is_none();
}

}  // namespace

bool holds(const Check& check, PyObject* object, Walk& walk) {
  switch (check.kind) {
    case Kind::identity:
      return check.object.is(object);
    case Kind::exact_type:
      return reinterpret_cast<PyObject*>(Py_TYPE(object)) == check.object.get();
    case Kind::equals:
      return equal_constants(check.object.get(), object);
    case Kind::length:
      return holds_length(object, check.number);
    case Kind::keys:
      return holds_keys(check.keys, object);
    case Kind::has_key:
      return has_key(object, check.object.get());
    case Kind::missing_key:
      return !has_key(object, check.object.get());
    case Kind::missing_attribute:
      return !has_class_attribute(object, check.object.get());
    case Kind::truth:
      return holds_truth(object, check.number != 0);
    case Kind::tensor:
      return holds_tensor(check.tensor, object, walk);
    case Kind::integer:
      return holds_integer(check, object, walk);
    case Kind::floating:
      return PyFloat_CheckExact(object);
    case Kind::boolean:
      return PyBool_Check(object);
    case Kind::no_grad_value:
      return is_none_grad(object);
    case Kind::elements:
      return holds_elements(check, object, walk);
    default:
      return false;  // pairs are checked after the walk
  }
}

namespace {

bool is_pair(Kind kind) { return kind == Kind::same_object || kind == Kind::not_same_object; }

/// Cheap checks that make the others safe come first.
constexpr int kHighestRank = 2;
int rank(Kind kind) {
  if (kind == Kind::exact_type) return 0;
  return kind == Kind::identity ? 1 : 2;
}

}  // namespace

namespace {

/// Builds the tree; forgotten afterwards, with all strong references to the user's objects.
class Compiler {
 public:
  Compiler(Guards::Tree& tree, PyObject* on_death) : tree_(tree), on_death_(on_death) {}

  uint32_t step(const Source* source);
  void add(const Assumption& assumption);
  void add(const DimAssumption& assumption);
  void finish();

 private:
  size_t symbol(const std::string& name);
  TensorCheck tensor_check(const TensorPattern& pattern, const Assumption& assumption);
  ElementCheck element_check(const ElementPattern& pattern, const Assumption& assumption);
  bool is_new(const Assumption& assumption);

  Guards::Tree& tree_;
  PyObject* on_death_;
  std::unordered_map<const Source*, uint32_t> steps_;
  std::unordered_map<const Source*, std::vector<const Assumption*>> seen_;
};

uint32_t Compiler::step(const Source* source) {
  TORCHJANUS_CHECK(source != nullptr, "guards: an assumption without a source");
  if (const auto found = steps_.find(source); found != steps_.end()) return found->second;
  Step made;
  made.path.kind = source->kind;
  if (source->base != nullptr) made.path.parent = step(source->base);
  made.path.key = ExpectedObject(source->key.get(), on_death_);
  made.path.index = source->index;
  if (source->key && source->kind != Source::Kind::constant &&
      source->kind != Source::Kind::argument) {
    made.path.hash = PyObject_Hash(source->key.get());
    if (made.path.hash == -1) throw python::ErrorSet();
  }
  if (made.path.key.may_die()) made.text = source->describe();
  const auto index = static_cast<uint32_t>(tree_.steps.size());
  tree_.steps.push_back(std::move(made));
  steps_.emplace(source, index);
  return index;
}

size_t Compiler::symbol(const std::string& name) {
  return tree_.symbols.try_emplace(name, tree_.symbols.size()).first->second;
}

TensorCheck Compiler::tensor_check(const TensorPattern& pattern, const Assumption& assumption) {
  TensorCheck check{pattern, {}, tree_.size_count};
  tree_.size_count += pattern.dims.size();
  for (size_t i = 0; i < pattern.dims.size(); ++i) {
    const graph::Dim& dim = pattern.dims[i];
    DimCheck made;
    if (dim.is_constant()) {
      made.number = dim.value();
    } else if (const auto names = dim.symbols();
               names.size() == 1 && graph::to_string(dim) == names.front()) {
      made.kind = DimCheck::Kind::symbol;
      made.symbol = symbol(names.front());
      made.number = std::max<int64_t>(0, dim.lower_bound().value_or(0));
    } else {
      made.kind = DimCheck::Kind::expression;
      tree_.relations.push_back({{},
                                 dim,
                                 static_cast<ptrdiff_t>(check.first_size + i),
                                 cat(assumption.source->describe(), ".shape[", i, "]"),
                                 assumption.span});
    }
    check.dims.push_back(made);
  }
  return check;
}

ElementCheck Compiler::element_check(const ElementPattern& pattern, const Assumption& assumption) {
  ElementCheck check;
  check.kind = pattern.kind;
  if (pattern.kind == ElementPattern::Kind::tensor)
    check.tensor = tensor_check(pattern.tensor, assumption);
  for (const ElementPattern& part : pattern.parts)
    check.parts.push_back(element_check(part, assumption));
  return check;
}

bool Compiler::is_new(const Assumption& a) {
  auto& seen = seen_[a.source];
  const bool known =
      a.kind != Kind::tensor && std::any_of(seen.begin(), seen.end(), [&](const Assumption* b) {
        return a.kind == b->kind && a.other == b->other && a.object.is(b->object.get()) &&
               a.number == b->number && a.symbol == b->symbol;
      });
  if (!known) seen.push_back(&a);
  return !known;
}

void Compiler::add(const Assumption& assumption) {
  if (!is_new(assumption)) return;
  const uint32_t at = step(assumption.source);
  if (assumption.kind == Kind::separate_memory) {
    tree_.memory.push_back({at, assumption.number != 0, assumption.span, assumption.elements});
    return;
  }
  if (is_pair(assumption.kind) && assumption.other == nullptr) {
    const auto group = static_cast<size_t>(assumption.number);
    if (tree_.distinct.size() <= group) tree_.distinct.resize(group + 1);
    tree_.distinct[group].steps.push_back(at);
    tree_.distinct[group].span = assumption.span;
    return;
  }
  if (is_pair(assumption.kind)) {
    tree_.pairs.push_back(
        {at, step(assumption.other), assumption.kind == Kind::same_object, assumption.span});
    return;
  }
  Check check;
  check.kind = assumption.kind;
  check.object = ExpectedObject(assumption.object.get(), on_death_);
  check.number = assumption.number;
  check.span = assumption.span;
  check.wording = &*tree_.wordings.insert(wording_of(assumption)).first;
  if (assumption.kind == Kind::keys) {
    check.object = {};
    TORCHJANUS_CHECK(PyTuple_Check(assumption.object.get()), "guards: keys are no tuple");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(assumption.object.get()); ++i)
      check.keys.emplace_back(PyTuple_GET_ITEM(assumption.object.get(), i), on_death_);
  }
  if (!assumption.symbol.empty()) check.symbol = static_cast<ptrdiff_t>(symbol(assumption.symbol));
  if (assumption.kind == Kind::tensor) check.tensor = tensor_check(assumption.tensor, assumption);
  if (assumption.kind == Kind::elements)
    check.elements =
        std::make_unique<ElementCheck>(element_check(*assumption.elements, assumption));
  if (is_value_check(check, assumption.object.get() == nullptr ? Py_None : assumption.object.get()))
    tree_.steps[at].about_value = true;
  tree_.steps[at].checks.push_back(std::move(check));
}

void Compiler::add(const DimAssumption& assumption) {
  tree_.relations.push_back({assumption.left, assumption.right, -1, {}, assumption.span});
}

void Compiler::finish() {
  for (Step& each : tree_.steps) {
    std::vector<Check> ordered;
    ordered.reserve(each.checks.size());
    for (int wanted = 0; wanted <= kHighestRank; ++wanted)
      for (Check& check : each.checks)
        if (rank(check.kind) == wanted) ordered.push_back(std::move(check));
    each.checks = std::move(ordered);
  }
  tree_.steps.shrink_to_fit();
  tree_.pairs.shrink_to_fit();
}

Mismatch mismatch(std::string details, const std::string& path, const graph::SourceSpan& span,
                  bool dead = false) {
  return {{ReasonCode::guard_failed, std::move(details), span}, path, dead};
}

Mismatch explain(const std::string& path, const Check& check, PyObject* object) {
  const bool dead = check.kind == Kind::identity && check.object.dead();
  std::string found = check.kind == Kind::exact_type
                          ? describe_object(reinterpret_cast<PyObject*>(Py_TYPE(object)))
                      : check.kind == Kind::tensor ? describe_against(object, check.tensor.pattern)
                                                   : describe_object(object);
  const std::string text = check.wording->around(path);
  if (text.ends_with(found)) found += " (another one)";
  return mismatch(cat("assumed that ", text, dead ? ", which is gone; found " : ", found ", found),
                  path, check.span, dead);
}

Mismatch explain_missing(const std::string& path, const Step& step) {
  const bool dead = step.path.kind == Source::Kind::item && step.path.key.dead();
  const graph::SourceSpan span =
      step.checks.empty() ? graph::SourceSpan() : step.checks.front().span;
  return mismatch(cat(path, " is not there any more"), path, span, dead);
}

bool same_names(PyObject* a, PyObject* b) {
  const Py_ssize_t a_count = a == nullptr ? 0 : PyTuple_GET_SIZE(a);
  const Py_ssize_t b_count = b == nullptr ? 0 : PyTuple_GET_SIZE(b);
  if (a_count != b_count) return false;
  for (Py_ssize_t i = 0; i < a_count && a != b; ++i)
    if (!equal_constants(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

}  // namespace

std::optional<std::pair<uint32_t, uint32_t>> DistinctCheck::find_same(
    PyObject* const* objects) const {
  Scratch<std::pair<PyObject*, uint32_t>, 256> sorted(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) sorted[i] = {objects[steps[i]], steps[i]};
  std::sort(sorted.data(), sorted.data() + steps.size());
  for (size_t i = 1; i < steps.size(); ++i)
    if (sorted[i - 1].first == sorted[i].first)
      return std::pair(sorted[i - 1].second, sorted[i].second);
  return std::nullopt;
}

std::string Guards::Tree::text(uint32_t step) const {
  const PathStep& path = steps[step].path;
  if (!steps[step].text.empty()) return steps[step].text;
  if (path.kind <= Source::Kind::constant)
    return describe_step(path.kind, path.key.get(), path.index, {}, false);
  return describe_step(path.kind, path.key.get(), path.index, text(path.parent),
                       steps[path.parent].path.kind == Source::Kind::function);
}

std::string Guards::Tree::text(const PairCheck& pair) const {
  return cat(text(pair.step), pair.same ? " is " : " is not ", text(pair.other));
}

/// Visits all objects; with `mismatch` also checks, and stops with false where one does not hold.
bool Guards::Tree::walk(const Call& call, Objects& objects, Walk& walk,
                        std::optional<Mismatch>* mismatch) const {
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool rooted = step.path.kind <= Source::Kind::constant;
    PyObject* base = rooted ? nullptr : objects[step.path.parent];
    PyObject* object =
        rooted || base != nullptr ? take_step(step.path, base, call, walk.owned) : nullptr;
    objects[i] = object;
    if (mismatch == nullptr) continue;
    if (object == nullptr) {
      *mismatch = explain_missing(text(static_cast<uint32_t>(i)), step);
      return false;
    }
    for (const Check& check : step.checks) {
      if (holds(check, object, walk) && !fault_due(Fault::assumption)) [[likely]]
        continue;
      walk.failed = &check;
      walk.failed_step = static_cast<uint32_t>(i);
      *mismatch = explain(text(walk.failed_step), check, object);
      return false;
    }
  }
  return true;
}

/// The object of one step; null if the path leads nowhere in this call.
PyObject* Guards::Tree::reach(uint32_t step, const Call& call,
                              std::vector<python::Object>& owned) const {
  const PathStep& path = steps[step].path;
  if (path.kind <= Source::Kind::constant) return take_step(path, nullptr, call, owned);
  PyObject* base = reach(path.parent, call, owned);
  return base == nullptr ? nullptr : take_step(path, base, call, owned);
}

std::optional<Mismatch> Guards::Tree::check_entry(const Call& call,
                                                  const Environment& found) const {
  if (call.argument_count != argument_count || !same_names(call.keyword_names, keyword_names.get()))
    return mismatch("the call has other arguments", {}, {});
  if (!(found == environment))
    return mismatch("grad mode, autocast or another setting of torch changed", {}, {});
  return std::nullopt;
}

std::optional<Mismatch> Guards::Tree::check_pairs(Objects& objects) const {
  for (const PairCheck& pair : pairs) {
    const bool same = objects[pair.step] == objects[pair.other];
    if (same != pair.same || fault_due(Fault::assumption))
      return mismatch(cat("assumed that ", text(pair)), text(pair.step), pair.span);
  }
  for (const DistinctCheck& group : distinct) {
    const auto same = group.find_same(objects.data());
    if (!same && !fault_due(Fault::assumption)) continue;
    const auto [one, other] = same.value_or(std::pair(group.steps[0], group.steps[1]));
    return mismatch(cat("assumed that ", text(one), " is not ", text(other)), text(one),
                    group.span);
  }
  const auto shared = find_shared_memory(memory, objects.data(), [&](size_t i) {
    return tensor_access().storage_of(objects[memory[i].step]);
  });
  if (shared) {
    const std::string path = text(memory[shared->first].step);
    return mismatch(
        cat("assumed that ", path, " shares no memory with ", text(memory[shared->second].step)),
        path, memory[shared->first].span);
  }
  return std::nullopt;
}

std::optional<int64_t> Guards::Tree::evaluate(const graph::Dim& dim, Walk& walk) const {
  if (dim.is_constant()) return dim.value();
  return dim.evaluate([&](const std::string& name) -> std::optional<int64_t> {
    const auto found = symbols.find(name);
    if (found == symbols.end() || walk.bound[found->second] == 0) return std::nullopt;
    return walk.symbols[found->second];
  });
}

std::optional<Mismatch> Guards::Tree::check_relations(Walk& walk) const {
  for (const Relation& each : relations) {
    const auto left = each.left_size >= 0
                          ? std::optional<int64_t>(walk.sizes[static_cast<size_t>(each.left_size)])
                          : evaluate(each.left, walk);
    const auto right = evaluate(each.right, walk);
    if (left && right && *left == *right) continue;
    const std::string name = each.left_size >= 0 ? each.path : graph::to_string(each.left);
    Mismatch found = mismatch(cat("assumed that ", name, " == ", graph::to_string(each.right),
                                  ", found ", left.value_or(-1), " and ", right.value_or(-1)),
                              each.path, each.span);
    if (each.left_size < 0 && each.right.is_constant()) found.formula = name;
    return found;
  }
  return std::nullopt;
}

Guards::Guards(const Generated& generated, const Call& call,
               std::span<const Source* const> captured, PyObject* on_death)
    : tree_(std::make_unique<Tree>()), is_verified_(log_enabled("verify")) {
  tree_->argument_count = call.argument_count;
  tree_->keyword_names = python::Object::borrow(call.keyword_names);
  tree_->environment = generated.environment;
  Compiler compiler(*tree_, on_death);
  for (const Assumption& each : generated.assumptions) compiler.add(each);
  for (const DimAssumption& each : generated.dim_assumptions) compiler.add(each);
  for (const Source* each : captured) tree_->captured.push_back(compiler.step(each));
  compiler.finish();
  recollection_ = std::make_unique<Recollection>(*tree_);
  if (on_death == nullptr) recollection_->forget();
}

Guards::~Guards() = default;

void Guards::Tree::capture(PyObject* const* objects, std::vector<python::Object>& to) const {
  to.clear();
  to.reserve(captured.size());
  for (const uint32_t step : captured) to.push_back(python::Object::borrow(objects[step]));
}

std::optional<Mismatch> Guards::check(const Call& call, const Environment& environment,
                                      std::vector<python::Object>& captured) const {
  if (auto found = tree_->check_entry(call, environment)) return found;
  const bool recalled = recollection_->holds(call, captured);
  if (recalled && !is_verified_) return std::nullopt;
  std::optional<Mismatch> found = check_all(call, captured);
  TORCHJANUS_CHECK(!recalled || !found, "guards: they hold as recalled, but ",
                   found->reason.details);
  return found;
}

/// Walks the one path to the check that did not hold the last time. Graphs of one function mostly
/// differ in one place: the shape of an argument, the class of an object, a flag.
bool Guards::fail_again(const Call& call) const {
  if (failed_ == nullptr || injected_fault.load(std::memory_order_relaxed) == Fault::assumption)
    return false;
  Walk walk(tree_->size_count, tree_->symbols.size());
  PyObject* object = tree_->reach(failed_step_, call, walk.owned);
  return object == nullptr || !holds(*failed_, object, walk);
}

/// Walks everything from scratch.
std::optional<Mismatch> Guards::check_all(const Call& call,
                                          std::vector<python::Object>& captured) const {
  Walk walk(tree_->size_count, tree_->symbols.size());
  Tree::Objects objects(tree_->steps.size());
  std::optional<Mismatch> found;
  if (!tree_->walk(call, objects, walk, &found)) {
    failed_ = walk.failed;
    failed_step_ = walk.failed_step;
    return found;
  }
  if ((found = tree_->check_pairs(objects))) return found;
  if ((found = tree_->check_relations(walk))) return found;
  tree_->capture(objects.data(), captured);
  recollection_->note(objects.data());
  return std::nullopt;
}

void Guards::forget() {
  if (recollection_) recollection_->forget();
}

uint64_t Guards::recalled() const { return recollection_->hits(); }

namespace {

/// The tensors in an element of a list, as those of one element.
void visit_tensors(const std::string& path, PyObject* object, const Guards::Visit& visit) {
  if (PyTuple_CheckExact(object))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      visit_tensors(cat(path, "[", i, "]"), PyTuple_GET_ITEM(object, i), visit);
  if (!tensor_access().is_tensor(object)) return;
  const auto fact = tensor_access().describe(object, nullptr);
  if (fact && !fact->is_parameter) visit(path, object);
}

/// Of a list or tuple also its length, and the tensors in it.
void visit_value(const std::string& path, PyObject* object, const Guards::Visit& visit) {
  if (!PyList_CheckExact(object)) visit(path, object);
  if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return;
  const Py_ssize_t length = PySequence_Fast_GET_SIZE(object);
  visit(length_text(path), python::check(PyLong_FromSsize_t(length)).get());
  for (Py_ssize_t i = 0; i < length; ++i)
    visit_tensors(element_text(path), PySequence_Fast_GET_ITEM(object, i), visit);
}

}  // namespace

void Guards::visit_values(const Call& call, const Visit& visit) const {
  Walk walk(tree_->size_count, tree_->symbols.size());
  Tree::Objects objects(tree_->steps.size());
  tree_->walk(call, objects, walk, nullptr);
  for (size_t i = 0; i < tree_->steps.size(); ++i)
    if (tree_->steps[i].about_value && objects[i] != nullptr)
      visit_value(tree_->text(static_cast<uint32_t>(i)), objects[i], visit);
}

std::vector<std::string> Guards::describe() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < tree_->steps.size(); ++i)
    for (const Check& check : tree_->steps[i].checks)
      lines.push_back(check.wording->around(tree_->text(static_cast<uint32_t>(i))));
  for (const PairCheck& pair : tree_->pairs) lines.push_back(tree_->text(pair));
  for (const DistinctCheck& group : tree_->distinct) {
    std::string line = "no two are one object:";
    for (const uint32_t step : group.steps)
      line += (step == group.steps.front() ? " " : ", ") + tree_->text(step);
    lines.push_back(std::move(line));
  }
  for (const MemoryCheck& each : tree_->memory)
    lines.push_back(separate_memory_text(tree_->text(each.step), each.is_written));
  for (const Relation& each : tree_->relations)
    if (each.left_size < 0)
      lines.push_back(cat(graph::to_string(each.left), " == ", graph::to_string(each.right)));
  return lines;
}

size_t Guards::assumption_count() const {
  size_t count =
      tree_->pairs.size() + tree_->distinct.size() + tree_->memory.size() + tree_->relations.size();
  for (const Step& step : tree_->steps) count += step.checks.size();
  return count;
}

}  // namespace janus::speculate
