// Objects of the real world that a run changes: what it has put into them so far, over what they
// held at the entry. Python sees none of it before the commit.
//
// Everything that is looked up by a key is a table: instance dictionaries, dicts, the globals of a
// function, a module's or class's attributes, a closure's cell (a table of one place). Lists that
// only grow keep what was appended, without looking at what they hold; all others are opened.
// A Heap is a value: copying it takes a snapshot (of the opened containers only their places).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

class Frames;
class Interpreter;

/// What a place of a table holds, as far as the run has to do with it.
class Held {
 public:
  /// What was there at the entry, if nothing has read it.
  Held() = default;
  Held(Value value);  // NOLINT: that is what it is
  static Held absent();
  /// In which the value was stored; null: it was deleted.
  static Held stored(const Value& value) { return value == nullptr ? absent() : Held(value); }

  bool is_unknown() const { return state_ == State::unknown; }
  bool is_absent() const { return state_ == State::absent; }
  bool is_value() const { return state_ == State::value; }
  /// It must hold one.
  const Value& value() const;
  /// Null: absent. It must be known.
  const Value& value_or_null() const;

 private:
  enum class State { unknown, absent, value };
  State state_ = State::unknown;
  Value value_;
};

class Heap {
 public:
  /// A table and how the commit reaches it.
  struct Target {
    PyObject* table = nullptr;  ///< identity: the dict, cell, set or object with slots
    speculate::HeapWrite::Kind kind = speculate::HeapWrite::Kind::attribute;
    const speculate::Source* owner = nullptr;
    python::Object object;  ///< at `owner`
    size_t index = 0;       ///< of a cell in its closure
  };
  struct Change {
    python::Object key;
    Held held;                                    ///< known: a value, or absent as it was deleted
    const speculate::Source* at_entry = nullptr;  ///< how the place is read at the entry
  };
  struct Table {
    Target target;
    std::set<const speculate::Source*> paths;  ///< by which the run reached it, once it had state
    bool cleared = false;
    std::vector<Change> changes;  ///< of each key the last one, in an order that gives Python's
    std::shared_ptr<Dictionary> shadow;  ///< of an opened dict, with the changes
  };
  struct List {
    python::Object object;
    const speculate::Source* source = nullptr;
    std::set<const speculate::Source*> paths;  ///< by which the run reached it
    std::shared_ptr<Sequence> appended = std::make_shared<Sequence>(true);  ///< unless opened
    std::shared_ptr<Sequence> shadow;                                       ///< once it is
    ElementList at_entry;  ///< the elements that the shadow began with
  };

  /// What the run has put there; unknown if nothing. `path`: by which the owner of the table is
  /// reached now.
  Held find(const Frames& frames, PyObject* table, PyObject* key, const speculate::Source* path);
  /// Whether the run has emptied the table (then nothing of the entry is left in it).
  bool cleared(PyObject* table) const;
  void write(const Frames& frames, const Target& target, Change change);
  void clear(const Target& target);
  /// The table is again as it was at the entry.
  void forget(PyObject* identity);

  /// Joins the heaps that the two sides of a branch leave. Both began from `before`. `merge_values`
  /// joins what the sides put into one place. Gives the reason if that can't be.
  std::string merge(Interpreter& interpreter, const Heap& before, const Heap& first,
                    const Heap& second,
                    const std::function<Value(const Value&, const Value&)>& merge_values);

  /// The table's state, if the run has changed or opened it.
  Table* table(PyObject* identity);
  const Table* table(PyObject* identity) const;
  const List& list_at(PyObject* object) const { return lists_.at(object); }
  bool has_list(PyObject* object) const { return lists_.contains(object); }
  Table& table_of(const Target& target);
  /// The list's state, if the run has changed or opened it; reached by the path.
  List* list(PyObject* object, const speculate::Source* path);
  List& list_of(PyObject* object, const speculate::Source* source);

  const std::vector<PyObject*>& table_order() const { return table_order_; }
  const std::vector<PyObject*>& list_order() const { return list_order_; }
  /// Whether the run has changed the pre-existing list so far.
  bool has_changed_list() const;
  /// Whether the list is opened here, and was not in `before`.
  bool has_opened(PyObject* list, const Heap& before) const;
  /// Counts changes: if the count is equal, nothing has changed between.
  size_t change_count() const { return change_count_; }
  void note_change() { ++change_count_; }

 private:
  friend class HeapMerger;
  std::map<PyObject*, Table> tables_;
  std::map<PyObject*, List> lists_;
  std::vector<PyObject*> table_order_, list_order_;  // in the order of the first change
  size_t change_count_ = 0;
};

/// Whether the run has changed what the list holds.
bool is_changed(const Heap::List& list);

}  // namespace janus::frontend
