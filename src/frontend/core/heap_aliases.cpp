#include "frontend/core/heap_aliases.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/policy.h"
#include "frontend/core/heap.h"
#include "frontend/core/heap_places.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/keys.h"
#include "frontend/core/operations.h"
#include "frontend/core/resolver.h"
#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;
using Kind = speculate::HeapWrite::Kind;

namespace {

/// A use of a place: the object it belongs to, and the key. Null key: all of the object.
struct Use {
  const Source* owner = nullptr;
  PyObject* object = nullptr;
  PyObject* key = nullptr;
  Value written;  ///< of a write
};

bool is_constant(const Source* source) {
  for (const Source* step = source; step != nullptr; step = step->base)
    if (step->base == nullptr) return step->kind == Source::Kind::constant;
  return false;
}

class Aliases {
 public:
  explicit Aliases(Interpreter& interpreter) : interpreter_(interpreter), resolve_(interpreter) {}

  void assume() {
    collect_writes();
    if (writes_.empty()) return;
    collect_reads();
    assume_distinct();
    for (const Use& read : reads_)
      for (const Use& write : writes_) compare(read, write);
    for (size_t i = 0; i < writes_.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (!write_the_same(writes_[i].written, writes_[j].written))
          compare(writes_[i], writes_[j]);
  }

 private:
  void collect_writes() {
    Heap& heap = interpreter_.heap;
    for (PyObject* identity : heap.table_order()) {
      const Heap::Table& table = *heap.table(identity);
      // Functions are assumed by identity, and with them their globals and closures; context
      // variables too.
      if (table.target.kind == Kind::global || table.target.kind == Kind::cell ||
          table.target.kind == Kind::context_variable)
        continue;
      PyObject* object = table.target.object.get();
      if (table.cleared || !table.changes.empty()) expect_one(table.target.owner, table.paths);
      if (table.cleared) writes_.push_back({table.target.owner, object, nullptr, nullptr});
      for (const Heap::Change& change : table.changes)
        writes_.push_back(
            {table.target.owner, object, change.key.get(), change.held.value_or_null()});
    }
    for (PyObject* object : heap.list_order()) {
      const Heap::List& list = heap.list_at(object);
      if (!is_changed(list)) continue;
      expect_one(list.source, list.paths);
      writes_.push_back({list.source, object, nullptr, nullptr});
    }
  }

  /// Objects of one type to which the run writes the same key, mostly an optimizer's states: that
  /// they are different ones is one assumption, where it would be one for each two.
  void assume_distinct() {
    std::map<std::pair<PyTypeObject*, PyObject*>, std::map<PyObject*, const Source*>> alike;
    for (const Use& write : writes_)
      if (!is_constant(write.owner))
        alike[{Py_TYPE(write.object), write.key}].emplace(write.object, write.owner);
    for (const auto& [kind, owners] : alike) {
      std::vector<const Source*> group;
      for (const auto& [object, owner] : owners) group.push_back(owner);
      if (group.size() >= policy::kLeastDistinct &&
          std::ranges::find(distinct_, group) == distinct_.end())
        distinct_.push_back(std::move(group));
    }
    for (const std::vector<const Source*>& group : distinct_) {
      const int64_t number = interpreter_.new_group();
      for (const Source* owner : group) {
        groups_[owner].push_back(number);
        interpreter_.assume(Assumption::Kind::not_same_object, owner, {}, number);
      }
    }
  }

  bool are_distinct(const Source* one, const Source* other) const {
    const auto first = groups_.find(one), second = groups_.find(other);
    if (first == groups_.end() || second == groups_.end()) return false;
    return std::ranges::any_of(first->second, [&](int64_t group) {
      return std::ranges::find(second->second, group) != second->second.end();
    });
  }

  /// The path of an object's own dictionary.
  const Source* dictionary_of(const Source* owner) {
    const Object name = Object::steal(PyUnicode_InternFromString("__dict__"));
    return interpreter_.sources().step(Source::Kind::attribute, owner, name);
  }

  /// Whether two objects have one dictionary, as those do whose `__dict__` is shared.
  static bool share_dictionary(PyObject* one, PyObject* other) {
    if (PyModule_Check(one) || PyType_Check(one) || PyModule_Check(other) || PyType_Check(other))
      return false;
    const Object own = own_dictionary(one);
    return own && own_dictionary(other).is(own.get());
  }

  /// All these paths led to the object whose changes the run saw through them, or one to an object
  /// and the other to its own dictionary, or to two objects with one dictionary.
  void expect_one(const Source* owner, const std::set<const Source*>& paths) {
    PyObject* object = resolve_(owner);
    for (const Source* path : paths) {
      if (is_own_dictionary(path)) path = path->base;
      if (path == owner || (is_constant(path) && is_constant(owner))) continue;
      PyObject* found = resolve_(path);
      const Source* one = owner;
      if (object != nullptr && found != nullptr && object != found) {
        const bool is_shared = share_dictionary(object, found);
        if (is_shared || own_dictionary(object).is(found)) one = dictionary_of(owner);
        if (is_shared || own_dictionary(found).is(object)) path = dictionary_of(path);
      }
      interpreter_.assume_same_object(path, one);
    }
  }

  void collect_reads() {
    for (const Source& source : interpreter_.sources().all()) {
      if (source.kind == Source::Kind::length) add_read(source.base, nullptr);
      bool reads = source.kind == Source::Kind::instance_value ||
                   source.kind == Source::Kind::attribute || source.kind == Source::Kind::item ||
                   source.kind == Source::Kind::index;
      if (!reads) continue;
      bool by_key = source.kind != Source::Kind::index;
      add_read(source.base, by_key ? source.key.get() : nullptr);
    }
    for (const Assumption& assumption : interpreter_.output().assumptions) {
      bool of_key = assumption.kind == Assumption::Kind::missing_key ||
                    assumption.kind == Assumption::Kind::has_key;
      bool of_all = assumption.kind == Assumption::Kind::keys ||
                    assumption.kind == Assumption::Kind::length ||
                    assumption.kind == Assumption::Kind::truth ||
                    assumption.kind == Assumption::Kind::elements;
      if (of_key || of_all) add_read(assumption.source, of_key ? assumption.object.get() : nullptr);
    }
  }

  void add_read(const Source* owner, PyObject* key) {
    if (is_own_dictionary(owner)) owner = owner->base;
    PyObject* object = resolve_(owner);
    if (object != nullptr) reads_.push_back({owner, object, key, nullptr});
  }

  /// Whether it makes no difference which of two writes comes last. Two deletions would raise.
  static bool write_the_same(const Value& left, const Value& right) {
    if (left == nullptr || right == nullptr) return false;
    if (left == right) return true;
    const auto* a = as<Known>(left);
    const auto* b = as<Known>(right);
    return a != nullptr && b != nullptr && a->object.is(b->object.get()) &&
           is_immutable_constant(a->object.get());
  }

  void compare(const Use& one, const Use& other) {
    if (one.owner == other.owner || (is_constant(one.owner) && is_constant(other.owner))) return;
    if (PyDict_CheckExact(one.object) != PyDict_CheckExact(other.object)) {
      if (PyDict_CheckExact(one.object)) return compare_with_dictionary(one, other);
      return compare_with_dictionary(other, one);
    }
    if (Py_TYPE(one.object) != Py_TYPE(other.object)) return;
    if (one.key != nullptr && other.key != nullptr && one.key != other.key &&
        !same_key(interpreter_, one.key, other.key))
      return;
    if (are_distinct(one.owner, other.owner)) return;
    if (!compared_.emplace(one.owner, other.owner).second) return;
    if (one.object != other.object && share_dictionary(one.object, other.object))
      return interpreter_.assume_same_object(dictionary_of(one.owner), dictionary_of(other.owner));
    interpreter_.assume_same_object(one.owner, other.owner, one.object == other.object);
  }

  /// A dict and an object, whose own dictionary it may be.
  void compare_with_dictionary(const Use& dict, const Use& of) {
    if (is_own_dictionary(dict.owner) || PyModule_Check(of.object) || PyType_Check(of.object))
      return;
    const bool by_key = dict.key != nullptr && of.key != nullptr;
    if (by_key ? !same_key(interpreter_, dict.key, of.key) : !is_variable(dict.owner)) return;
    const Object own = own_dictionary(of.object);
    if (!own) return;
    interpreter_.assume_same_object(dict.owner, dictionary_of(of.owner), own.is(dict.object));
  }

  /// Whether the program holds the object by a name; what only other objects hold is taken to be no
  /// object's dictionary, unless one key is used in both.
  static bool is_variable(const Source* source) {
    return source->kind == Source::Kind::argument || source->kind == Source::Kind::keyword ||
           source->kind == Source::Kind::variable || source->kind == Source::Kind::global ||
           source->kind == Source::Kind::closure;
  }

  Interpreter& interpreter_;
  Resolver resolve_;
  std::vector<Use> writes_, reads_;
  std::set<std::pair<const Source*, const Source*>> compared_;
  std::vector<std::vector<const Source*>> distinct_;
  std::unordered_map<const Source*, std::vector<int64_t>> groups_;  ///< their numbers
};

}  // namespace

void assume_aliases(Interpreter& interpreter) { Aliases(interpreter).assume(); }

}  // namespace janus::frontend
