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
  /// As they are now: what variables that nested functions use, changed objects, tensors of the
  /// entry and `given` lead to.
  CallEnvironment(Interpreter& interpreter, const std::vector<Value>& given);

  /// An object of the entry that was reached only later, as it is now.
  void add(const Changeable& object);

  /// What goes in and out of the function as parameters, so that it may be anything.
  struct Apart {
    std::function<bool(const Changeable& object)> list;
    std::function<bool(const Changeable& object, const std::string& name)> place;
    std::function<bool(PyObject* table, PyObject* key)> change;
  };
  /// Whether everything else is as it was.
  bool hold(Interpreter& interpreter, const Apart& apart) const;

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
