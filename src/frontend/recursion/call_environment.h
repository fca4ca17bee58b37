// The environment of a function of the graph: what its body sees besides the arguments. The body
// was interpreted in one state of the environment. A call fits only where the state is the same.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "frontend/core/interpreter.h"
#include "frontend/values/snapshot.h"

namespace janus::frontend {

class CallEnvironment {
 public:
  /// The present state of all objects that can be reached from `given`, from variables that nested
  /// functions use, from changed objects and from tensors of the entry.
  CallEnvironment(Interpreter& interpreter, const std::vector<Value>& given);

  /// Adds the present state of an object of the entry that was reached later.
  void add(const Changeable& object);

  /// What the function takes as parameters and gives back. It may differ.
  struct Apart {
    std::function<bool(const Changeable& object)> list;
    std::function<bool(const Changeable& object, const std::string& name)> place;
    std::function<bool(PyObject* table, PyObject* key)> change;
  };
  /// Whether everything else is as it was.
  bool hold(const InterpreterState& state, const Apart& apart) const;

 private:
  struct Seen {
    std::weak_ptr<const void> owner;
    const Changeable* object;
    ChangeableState state;
  };
  static bool is_same(const Seen& seen, const Apart& apart);
  bool same_tables(const Heap& now, const Apart& apart) const;
  bool same_lists(const Heap& now, const Apart& apart) const;

  std::vector<Seen> seen_;
  Heap heap_;
};

}  // namespace janus::frontend
