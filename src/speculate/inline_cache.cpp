// See inline_cache.h.
#include "speculate/inline_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fault.h"
#include "base/options.h"
#include "base/policy.h"
#include "python/dict_keys.h"
#include "python/version.h"
#include "speculate/path.h"

namespace janus::speculate {

using Kind = Assumption::Kind;

namespace {

uint64_t word_at(const void* place) {
  uint64_t word = 0;
  std::memcpy(&word, place, sizeof(word));
  return word;
}

uint64_t word_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

PyObject* dict_entry(PyObject* dict, PyObject* key, Py_hash_t hash) {
  if (key == nullptr) return nullptr;
  PyObject* found = _PyDict_GetItem_KnownHash(dict, key, hash);
  if (found == nullptr && PyErr_Occurred() != nullptr) PyErr_Clear();
  return found;
}

/// Whether no object of the class accepts `object.__class__ = …`.
bool keeps_class(PyObject* object) {
  return (Py_TYPE(object)->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) != 0 && !PyModule_Check(object);
}

/// Whether the object is immortal and unique: None, True, ...
bool is_singleton(PyObject* object) {
  return object == Py_None || PyBool_Check(object) || object == Py_Ellipsis ||
         object == Py_NotImplemented;
}

}  // namespace

/// Fills the cache from one walk.
class InlineCache::Noting {
 public:
  Noting(InlineCache& to, PyObject* const* objects) : to_(to), objects_(objects) {}

  void run();

 private:
  using Source = speculate::Source::Kind;

  const Step& step() const { return to_.tree_.steps[at_]; }
  PyObject* object() const { return objects_[at_]; }
  PyObject* base() const { return objects_[step().path.parent]; }

  bool link();
  bool link_in_dict(PyObject* dict);
  bool link_in_instance();
  bool link_in_module();
  bool link_in_class();
  bool link_in_sequence();
  bool link_in_globals();
  bool link_in_cell();
  bool link_in_tuple(PyObject* const* field, Py_ssize_t index);
  bool link_in_field(PyObject* const* field, PyTypeObject* of);
  bool takes_gradient();

  void check(const Check& check);
  void check_size(const Check& check);
  void check_keys(const Check& check);
  void check_missing_attribute(const Check& check);
  void check_tensor(const Check& check, uint32_t step, bool of_grad);
  void recheck(const Check& check) { to_.rechecks_.push_back({at_, &check}); }

  void expect(const void* place, uint64_t expected, uint64_t mask = ~uint64_t{0});
  void see_class_of(PyObject* object) { expect(&object->ob_type, word_of(Py_TYPE(object))); }
  bool see_version_of(PyTypeObject* type);
  Dictionary* dictionary(PyObject* dict);
  void note_pairs();

  InlineCache& to_;
  PyObject* const* objects_;
  uint32_t at_ = 0;
  bool is_certain_ = false;  ///< the step's object is the same, not only its address
  std::unordered_map<const void*, bool> seen_;
  std::unordered_map<PyObject*, size_t> dictionaries_;
  std::unordered_map<uint32_t, size_t> tensors_;  ///< by step: index in to_.tensors_
};

InlineCache::InlineCache(const GuardTree& tree)
    : tree_(tree),
      is_off_(!python::DictVersion::exist() || options().is_disabled("inline_cache")),
      objects_(tree.steps.size()),
      changes_(tree.steps.size()),
      is_captured_(tree.steps.size()),
      is_changing_(tree.steps.size()) {
  for (const uint32_t step : tree.captured) is_captured_[step] = 1;
  for (const PairCheck& pair : tree.pairs) is_captured_[pair.step] = is_captured_[pair.other] = 1;
  for (const DistinctCheck& group : tree.distinct)
    for (const uint32_t step : group.steps) is_captured_[step] = 1;
  for (const Step& step : tree.steps)
    if (step.path.kind > Source::Kind::constant) is_captured_[step.path.parent] = 1;
}

// --- filling the cache ---------------------------------------------------------------------------

void InlineCache::start_over() {
  std::fill(is_changing_.begin(), is_changing_.end(), 0);
  roots_.clear();
  version_checks_.clear();
  dictionaries_.clear();
  changing_.clear();
  rechecks_.clear();
  tensors_.clear();
  numbers_.clear();
  symbolic_.clear();
  pairs_.clear();
  distinct_.clear();
  memory_.clear();
}

/// Counts the objects that differ from those of the call before, the first one of each path.
void InlineCache::note_changes(PyObject* const* objects) {
  for (size_t i = 0; i < tree_.steps.size(); ++i) {
    const PathStep& path = tree_.steps[i].path;
    const bool is_root = path.kind <= Source::Kind::constant;
    const bool base_changed = !is_root && objects[path.parent] != objects_[path.parent];
    if (objects[i] != objects_[i] && !base_changed && changes_[i] < policy::kMostChangesOfStep)
      ++changes_[i];
  }
}

void InlineCache::note(PyObject* const* objects) {
  if (is_off_ || in_use_) return;
  if (is_known_) note_changes(objects);
  if (++notes_ > policy::kFillsBeforeCheck && notes_ > hits_) {
    is_off_ = true;
    return;
  }
  // Versions that are asked for again stay where they are.
  const std::vector<Dictionary> before = std::exchange(dictionaries_, {});
  start_over();
  std::copy_n(objects, objects_.size(), objects_.data());
  Noting(*this, objects).run();
  storages_.resize(tensors_.size());
  is_known_ = true;
}

void InlineCache::Noting::run() {
  const std::vector<Step>& steps = to_.tree_.steps;
  size_t numbers = 0;
  for (const Step& each : steps)
    for (const Check& check : each.checks) numbers += 2 * check.tensor.dims.size();
  to_.numbers_.reserve(numbers);  // tensors_ points into it
  for (at_ = 0; at_ < steps.size(); ++at_) {
    is_certain_ = false;
    if (takes_gradient()) continue;
    if (!link()) {
      to_.is_changing_[at_] = 1;
      to_.changing_.push_back(at_);
      for (const Check& each : step().checks)
        if (each.kind == Kind::tensor) check_tensor(each, at_, false);
      continue;
    }
    for (const Check& each : step().checks) check(each);
  }
  note_pairs();
}

void InlineCache::Noting::expect(const void* place, uint64_t expected, uint64_t mask) {
  if (!seen_.emplace(place, true).second) return;
  to_.version_checks_.push_back({place, mask, expected, at_, -1});
}

bool InlineCache::Noting::see_version_of(PyTypeObject* type) {
  const unsigned version = python::version_of(type);
  if (version == 0) return false;
  static_assert(sizeof(type->tp_version_tag) == 4);
  expect(&type->tp_version_tag, version, 0xffffffff);
  return true;
}

/// The cached entries of the dictionary, made at first use.
InlineCache::Dictionary* InlineCache::Noting::dictionary(PyObject* dict) {
  const auto [found, added] = dictionaries_.try_emplace(dict, to_.dictionaries_.size());
  if (added) {
    const void* const place =
        to_.dictionaries_.emplace_back(dict, python::DictVersion(dict)).version.place();
    to_.version_checks_.push_back(
        {place, ~uint64_t{0}, word_at(place), at_, static_cast<int32_t>(found->second)});
  }
  return &to_.dictionaries_[found->second];
}

/// Finds the word that shows that the step's object is the same; false if it must be walked.
bool InlineCache::Noting::link() {
  const PathStep& path = step().path;
  if (path.kind <= Source::constant) {
    if (path.kind == Source::constant) return is_certain_ = true;
    const bool expected = to_.changes_[at_] < policy::kMostChangesOfStep;
    to_.roots_.push_back({at_, expected});
    // A root that changes often is found with the roots, but checked with the walked steps.
    return expected;
  }
  if (to_.is_changing_[path.parent] != 0 || to_.changes_[at_] >= policy::kMostChangesOfStep)
    return false;
  PyObject* from = base();
  const auto* function = reinterpret_cast<PyFunctionObject*>(from);
  const auto* method = reinterpret_cast<PyMethodObject*>(from);
  switch (path.kind) {
    case Source::attribute:
      return link_in_module();
    case Source::instance_value:
      return link_in_instance();
    case Source::type:
      see_class_of(from);
      return true;
    case Source::type_attribute:
      return link_in_class();
    case Source::item:
      see_class_of(from);
      return PyDict_Check(from) && link_in_dict(from);
    case Source::index:
      return link_in_sequence();
    case Source::global:
      return link_in_globals();
    case Source::closure:
      return link_in_cell();
    case Source::default_value:
      return PyFunction_Check(from) && link_in_tuple(&function->func_defaults, path.index);
    case Source::keyword_default:
      return link_in_field(&function->func_kwdefaults, &PyFunction_Type) &&
             PyDict_Check(function->func_kwdefaults) && link_in_dict(function->func_kwdefaults);
    case Source::bound_function:
      return link_in_field(&method->im_func, &PyMethod_Type);
    case Source::bound_self:
      return link_in_field(&method->im_self, &PyMethod_Type);
    case Source::code:
      return link_in_field(&function->func_code, &PyFunction_Type);
    default:
      return false;
  }
}

bool InlineCache::Noting::link_in_dict(PyObject* dict) {
  if (dict_entry(dict, step().path.key.get(), step().path.hash) != object()) return false;
  dictionary(dict)->entries.push_back({at_, object()});
  return is_certain_ = true;
}

bool InlineCache::Noting::link_in_instance() {
  PyObject** place = _PyObject_GetDictPtr(base());
  if (place == nullptr || *place == nullptr) return false;
  see_class_of(base());
  expect(place, word_of(*place));
  return link_in_dict(*place);
}

bool InlineCache::Noting::link_in_module() {
  return PyModule_CheckExact(base()) && link_in_instance();
}

bool InlineCache::Noting::link_in_class() {
  PyObject* from = base();
  if (!PyType_Check(from)) return false;
  see_class_of(from);
  return is_certain_ = see_version_of(reinterpret_cast<PyTypeObject*>(from));
}

bool InlineCache::Noting::link_in_sequence() {
  PyObject* from = base();
  Py_ssize_t index = step().path.index;
  if (index < 0) index += Py_SIZE(from);
  see_class_of(from);
  if (PyTuple_Check(from)) {
    auto* tuple = reinterpret_cast<PyTupleObject*>(from);
    expect(&tuple->ob_base.ob_size, static_cast<uint64_t>(Py_SIZE(from)));
    expect(&tuple->ob_item[index], word_of(object()));
    return true;
  }
  if (!PyList_Check(from)) return false;
  auto* list = reinterpret_cast<PyListObject*>(from);
  expect(&list->ob_base.ob_size, static_cast<uint64_t>(Py_SIZE(from)));
  expect(&list->ob_item, word_of(list->ob_item));
  expect(&list->ob_item[index], word_of(object()));
  return true;
}

bool InlineCache::Noting::link_in_globals() {
  PyObject* from = base();
  if (PyDict_CheckExact(from)) {
    see_class_of(from);
    return link_in_dict(from);
  }
  if (!PyFunction_Check(from)) return false;
  auto* function = reinterpret_cast<PyFunctionObject*>(from);
  if (!PyDict_Check(function->func_globals) || !PyDict_Check(function->func_builtins)) return false;
  see_class_of(from);
  expect(&function->func_globals, word_of(function->func_globals));
  if (link_in_dict(function->func_globals)) return true;
  if (dict_entry(function->func_globals, step().path.key.get(), step().path.hash) != nullptr)
    return false;
  dictionary(function->func_globals)->entries.push_back({at_, nullptr});
  expect(&function->func_builtins, word_of(function->func_builtins));
  return link_in_dict(function->func_builtins);
}

bool InlineCache::Noting::link_in_cell() {
  if (!PyFunction_Check(base())) return false;
  auto* function = reinterpret_cast<PyFunctionObject*>(base());
  auto* cells = reinterpret_cast<PyTupleObject*>(function->func_closure);
  auto* cell = reinterpret_cast<PyCellObject*>(cells->ob_item[step().path.index]);
  if (!PyCell_Check(cell)) return false;
  see_class_of(base());
  expect(&function->func_closure, word_of(cells));
  expect(&cells->ob_base.ob_size, static_cast<uint64_t>(Py_SIZE(cells)));
  expect(&cells->ob_item[step().path.index], word_of(cell));
  expect(&cell->ob_ref, word_of(object()));
  return true;
}

bool InlineCache::Noting::link_in_tuple(PyObject* const* field, Py_ssize_t index) {
  auto* tuple = reinterpret_cast<PyTupleObject*>(*field);
  if (tuple == nullptr || !PyTuple_Check(*field)) return false;
  see_class_of(base());
  expect(field, word_of(tuple));
  expect(&tuple->ob_base.ob_size, static_cast<uint64_t>(Py_SIZE(tuple)));
  expect(&tuple->ob_item[index], word_of(object()));
  return true;
}

/// Caches a field of the base: it holds the object, or the container in which it is looked up.
bool InlineCache::Noting::link_in_field(PyObject* const* field, PyTypeObject* of) {
  if (Py_TYPE(base()) != of || *field == nullptr) return false;
  see_class_of(base());
  expect(field, word_of(*field));
  return true;
}

/// Caches a gradient, whose tensor is enough without a Python object.
bool InlineCache::Noting::takes_gradient() {
  if (step().path.kind != Source::grad || to_.is_captured_[at_] != 0) return false;
  const std::vector<Check>& checks = step().checks;
  const bool plain = std::all_of(checks.begin(), checks.end(), [](const Check& each) {
    return each.kind == Kind::tensor && !each.tensor.pattern.is_parameter;
  });
  if (!plain || checks.empty()) return false;
  for (const Check& each : checks) check_tensor(each, at_, true);
  return true;
}

void InlineCache::Noting::check(const Check& check) {
  switch (check.kind) {
    case Kind::identity:
      return;
    case Kind::exact_type:
      if (!is_certain_ || !keeps_class(object())) see_class_of(object());
      return;
    case Kind::equals:
      if (!is_certain_ && !is_singleton(object())) recheck(check);
      return;
    case Kind::floating:
    case Kind::boolean:
      if (!is_certain_) see_class_of(object());
      return;
    case Kind::integer:
      if (!is_certain_ || check.symbol >= 0) recheck(check);
      return;
    case Kind::length:
    case Kind::truth:
      return check_size(check);
    case Kind::keys:
    case Kind::has_key:
    case Kind::missing_key:
      return check_keys(check);
    case Kind::missing_attribute:
      return check_missing_attribute(check);
    case Kind::tensor:
      return check_tensor(check, at_, false);
    default:
      return recheck(check);
  }
}

void InlineCache::Noting::check_size(const Check& check) {
  PyObject* of = object();
  if (is_certain_ && is_singleton(of)) return;
  see_class_of(of);
  if (PyDict_Check(of))
    return expect(&reinterpret_cast<PyDictObject*>(of)->ma_used,
                  static_cast<uint64_t>(PyDict_GET_SIZE(of)));
  if (PyList_Check(of) || PyTuple_Check(of))
    return expect(&reinterpret_cast<PyVarObject*>(of)->ob_size, static_cast<uint64_t>(Py_SIZE(of)));
  recheck(check);
}

void InlineCache::Noting::check_keys(const Check& check) {
  PyObject* of = object();
  see_class_of(of);
  if (check.kind == Kind::keys && PyType_Check(of)) {
    if (!see_version_of(reinterpret_cast<PyTypeObject*>(of))) recheck(check);
    return;
  }
  if (check.kind == Kind::keys && PyDict_Check(of) && python::has_own_order(of))
    return recheck(check);
  if (!PyDict_Check(of)) {
    PyObject** place = PyAnySet_Check(of) ? nullptr : _PyObject_GetDictPtr(of);
    if (place == nullptr || *place == nullptr || slot_of(of, check.object.get()) != nullptr)
      return recheck(check);
    expect(place, word_of(*place));
    of = *place;
  }
  dictionary(of)->checks.emplace_back(at_, &check);
}

void InlineCache::Noting::check_missing_attribute(const Check& check) {
  PyObject* of = object();
  see_class_of(of);
  PyTypeObject* type = PyType_Check(of) ? reinterpret_cast<PyTypeObject*>(of) : Py_TYPE(of);
  if (!see_version_of(type)) recheck(check);
}

void InlineCache::Noting::check_tensor(const Check& check, uint32_t step, bool of_grad) {
  const TensorPattern& pattern = check.tensor.pattern;
  ExpectedTensor expected;
  expected.step = of_grad ? this->step().path.parent : step;
  expected.of_grad = of_grad;
  expected.dtype = pattern.dtype;
  expected.rank = static_cast<uint8_t>(pattern.dims.size());
  expected.requires_grad = pattern.requires_grad;
  expected.is_leaf = pattern.is_leaf;
  expected.is_parameter = pattern.is_parameter;
  expected.may_be_view = pattern.may_be_view;
  expected.has_hooks = pattern.has_hooks;
  expected.is_accumulated_into = pattern.is_accumulated_into;
  expected.is_reduced = pattern.is_reduced;
  expected.first_size = static_cast<uint32_t>(check.tensor.first_size);
  expected.sizes = to_.numbers_.data() + to_.numbers_.size();
  for (const DimCheck& dim : check.tensor.dims) {
    const bool is_constant = dim.kind == DimCheck::Kind::constant;
    expected.is_symbolic |= !is_constant;
    to_.numbers_.push_back(is_constant ? dim.number : -1);
  }
  expected.any_strides = pattern.any_strides;
  if (pattern.strides) {
    expected.strides = to_.numbers_.data() + to_.numbers_.size();
    to_.numbers_.insert(to_.numbers_.end(), pattern.strides->begin(), pattern.strides->end());
  }
  if (expected.is_symbolic) to_.symbolic_.push_back(&check);
  tensors_.emplace(at_, to_.tensors_.size());
  to_.tensors_.push_back(expected);
}

void InlineCache::Noting::note_pairs() {
  const GuardTree& tree = to_.tree_;
  for (const PairCheck& pair : tree.pairs) {
    const bool walked = to_.is_changing_[pair.step] != 0 || to_.is_changing_[pair.other] != 0;
    if (walked) to_.pairs_.push_back(&pair);
  }
  for (const DistinctCheck& group : tree.distinct) {
    const auto walked = [&](uint32_t step) { return to_.is_changing_[step] != 0; };
    if (std::ranges::any_of(group.steps, walked)) to_.distinct_.push_back(&group);
  }
  for (const MemoryCheck& each : tree.memory) {
    if (each.elements != nullptr) {
      to_.memory_.push_back(0);
      continue;
    }
    const auto found = tensors_.find(each.step);
    // Every tensor whose memory matters has a pattern. If one has none, everything is walked.
    if (found == tensors_.end()) {
      to_.is_off_ = true;
      return;
    }
    to_.memory_.push_back(static_cast<uint32_t>(found->second));
  }
}

// --- checking the cache --------------------------------------------------------------------------

bool InlineCache::find_roots(const Call& call) {
  std::vector<python::Object> unused;
  for (const Root& root : roots_) {
    PyObject* object = take_step(tree_.steps[root.step].path, nullptr, call, unused);
    if (object == nullptr || (root.is_expected && object != objects_[root.step])) return false;
    objects_[root.step] = object;
  }
  return true;
}

/// The dictionary has changed: whether the read entries are the same and their checks hold. An
/// object may have died, and another one may have its address.
bool InlineCache::has_same_entries(const Dictionary& dictionary, Walk& walk) const {
  for (const Entry& entry : dictionary.entries) {
    const Step& step = tree_.steps[entry.step];
    if (dict_entry(dictionary.object, step.path.key.get(), step.path.hash) != entry.found)
      return false;
    if (entry.found == nullptr) continue;
    for (const Check& check : step.checks)
      if (check.kind != Kind::tensor && !speculate::holds(check, entry.found, walk)) return false;
  }
  return std::all_of(dictionary.checks.begin(), dictionary.checks.end(), [&](const auto& each) {
    return speculate::holds(*each.second, objects_[each.first], walk);
  });
}

/// A word has changed: whether it is a dictionary's version, and what was read of that is the same.
bool InlineCache::has_changed_elsewhere(VersionCheck& check, Walk& walk) {
  if (check.dictionary < 0) return false;
  Dictionary& dictionary = dictionaries_[static_cast<size_t>(check.dictionary)];
  dictionary.version.renew(dictionary.object);
  check.place = dictionary.version.place();
  const uint64_t found = word_at(check.place);
  if (!has_same_entries(dictionary, walk)) return false;
  check.expected = found;
  return true;
}

bool InlineCache::check_versions(Walk& walk) {
  const size_t count = version_checks_.size();
  for (size_t i = 0; i < std::min(policy::kPrefetchAhead, count); ++i)
    __builtin_prefetch(version_checks_[i].place);
  for (size_t i = 0; i < count; ++i) {
    if (i + policy::kPrefetchAhead < count)
      __builtin_prefetch(version_checks_[i + policy::kPrefetchAhead].place);
    VersionCheck& check = version_checks_[i];
    const uint64_t found = word_at(check.place) & check.mask;
    if (found == check.expected) [[likely]]
      continue;
    if (has_changed_elsewhere(check, walk)) continue;
    uint8_t& changes = changes_[check.step];
    if (changes < policy::kMostChangesOfStep) ++changes;
    return false;
  }
  return true;
}

bool InlineCache::walk_changing(const Call& call, Walk& walk) {
  for (const uint32_t index : changing_) {
    const Step& step = tree_.steps[index];
    if (step.path.kind > Source::Kind::constant)
      objects_[index] = take_step(step.path, objects_[step.path.parent], call, walk.owned);
    if (objects_[index] == nullptr) return false;
    for (const Check& check : step.checks)
      if (check.kind != Kind::tensor && !speculate::holds(check, objects_[index], walk))
        return false;
  }
  return true;
}

bool InlineCache::check_values(Walk& walk) const {
  for (const Recheck& each : rechecks_)
    if (!speculate::holds(*each.check, objects_[each.step], walk)) return false;
  for (const PairCheck* pair : pairs_) {
    const bool same = objects_[pair->step] == objects_[pair->other];
    if (same != pair->same) return false;
  }
  return std::ranges::none_of(distinct_, [&](const DistinctCheck* group) {
    return group->find_same(objects_.data()).has_value();
  });
}

bool InlineCache::check_tensors(Walk& walk) const {
  if (tensors_.empty() && memory_.empty()) return true;
  if (!tensor_access().all_match(tensors_, objects_.data(), walk.sizes.data(), storages_))
    return false;
  for (const Check* check : symbolic_) {
    const int64_t* sizes = walk.sizes.data() + check->tensor.first_size;
    for (size_t d = 0; d < check->tensor.dims.size(); ++d) {
      const DimCheck& dim = check->tensor.dims[d];
      if (dim.kind == DimCheck::Kind::symbol &&
          (sizes[d] < dim.number || !walk.bind(dim.symbol, sizes[d])))
        return false;
    }
  }
  return !find_shared_memory(tree_.memory, objects_.data(),
                             [&](size_t i) { return storages_[memory_[i]]; });
}

bool InlineCache::holds(const Call& call, std::vector<python::Object>& captured) {
  if (is_off_ || !is_known_ || in_use_) return false;
  if (injected_fault.load(std::memory_order_relaxed) == Fault::assumption) return false;
  in_use_ = true;  // paths may run code of torch or of a module, which may come here again
  Walk walk(tree_.size_count, tree_.symbols.size());
  const bool holds = find_roots(call) && check_versions(walk) && walk_changing(call, walk) &&
                     check_values(walk) && check_tensors(walk) && !tree_.check_relations(walk);
  in_use_ = false;
  if (!holds) return false;
  ++hits_;
  tree_.capture(objects_.data(), captured);
  return true;
}

}  // namespace janus::speculate
