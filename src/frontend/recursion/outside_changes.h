// What the activations of a function of the graph change of what was there before: variables,
// attributes, items, elements and contents of tensors (outside_places.h), and lists that grow. Each
// goes into the function and comes out of it.
//
// It is found by comparing, after the body was interpreted, everything changeable with what it held
// before. What is found becomes a parameter of the next interpretation.
#pragma once

#include <string>

#include "frontend/recursion/recursive_function.h"
#include "frontend/values/snapshot.h"

namespace janus::frontend {

class OutsideChanges {
 public:
  /// Of what there is now.
  OutsideChanges(Interpreter& interpreter, RecursiveFunction& function)
      : interpreter_(interpreter),
        function_(function),
        before_(SavedState::of(interpreter)),
        heap_(before_.state.heap) {}

  /// An object of the entry that was reached only later: it was there all the time.
  void add_entry_object(Changeable& object) { before_.objects.add(object); }
  bool existed(const AbstractValue& object) const;
  bool existed(const Changeable* object) const { return before_.objects.find(object) != nullptr; }
  /// The state before the function was interpreted.
  const InterpreterState& state() const { return before_.state; }
  /// As everything was then.
  void restore() const { before_.restore(interpreter_); }

  /// What of outside is another than as an activation begins goes in and out from now on.
  void collect();

  /// The places' values as an activation finds them: parameters of the block.
  Rebuilding begin_places(graph::Block& block) const;
  /// Their values as an activation leaves them.
  Flattening end_places();
  /// The lists as an activation finds them.
  void begin_lists(graph::Block& block) const;
  /// What the body has put into the first lists, which were there as it began.
  void check_lists(size_t count);

 private:
  [[noreturn]] void refuse(const std::string& why) const { function_.refuse(interpreter_, why); }
  void add_place(OutsidePlace place, const Value& initial);
  void collect_object(Changeable& object, const ChangeableState& before);
  void collect_variables(Variables& variables, const VariableValues& before);
  void collect_items(Dictionary& dictionary, const Items& before);
  void collect_contents(Tensor& tensor, const TensorState& before);
  void collect_elements(Sequence& sequence, const Elements& initial);
  void collect_state();
  void collect_heap();
  void collect_change(const Heap::Table& table, const Heap::Table* before,
                      const Heap::Change& change);
  void begin_growth(Sequence& sequence, const Elements& initial);

  Interpreter& interpreter_;
  RecursiveFunction& function_;
  SavedState before_;
  Heap& heap_;
};

}  // namespace janus::frontend
