// What a function of the graph can see besides its arguments: it was made under the state that
// this had then, and computes the same only where it has that state again.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "frontend/interpreter.h"
#include "frontend/snapshot.h"

namespace janus::frontend {

class Surroundings {
 public:
  /// As they are now: what variables that nested functions use, changed objects, tensors of the
  /// entry and `given` lead to.
  Surroundings(Interpreter& interpreter, const std::vector<Value>& given);

  /// An object of the entry that was reached only later, as it is now.
  void add(const Changeable& object);

  /// Whether everything is as it was; what `ignored` says goes in and out as parameters.
  using Ignored = std::function<bool(const Changeable& object)>;
  bool hold(Interpreter& interpreter, const Ignored& ignored) const;

 private:
  struct Seen {
    std::weak_ptr<const void> owner;
    const Changeable* object;
    ChangeableState state;
  };
  bool is_same(const Seen& seen) const;
  bool same_heap(const Heap& now, const Ignored& ignored) const;

  std::vector<Seen> seen_;
  Heap heap_;
};

}  // namespace janus::frontend
