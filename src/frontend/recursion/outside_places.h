// Places outside of a function of the graph that its activations change: a variable that a nested
// function assigns, an attribute or item, an element, the contents of a tensor. What they hold goes
// into the function and comes out of it.
#pragma once

#include <memory>
#include <string>

#include "frontend/core/heap.h"
#include "frontend/recursion/tree_spec.h"

namespace janus::frontend {

class OutsidePlace {
 public:
  static OutsidePlace variable(Variables& variables, const std::string& name);
  static OutsidePlace element(Changeable& container, size_t index);
  static OutsidePlace contents(Tensor& tensor);
  /// Of an object that outlives the call.
  static OutsidePlace change(const Heap::Table& table, const Heap::Change& change);

  Value get(Interpreter& interpreter) const;
  void set(Interpreter& interpreter, const Value& value) const;
  std::string describe() const;
  bool is_same(const OutsidePlace& other) const;

  /// Whether the place is this variable or element, or the object as a whole.
  bool is(const Changeable& object, const std::string& name) const;
  bool is(PyObject* table, PyObject* key) const;

  TreeSpec spec;  ///< of what it holds

 private:
  std::shared_ptr<const void> owner_;
  Changeable* object_ = nullptr;  // null: a change of the heap
  std::string name_;              // of a variable; digits for an element
  size_t index_ = 0;
  Heap::Table table_;  // without changes
  Heap::Change change_;
};

/// What a CallEnvironment calls an element.
std::string element_name(size_t index);

}  // namespace janus::frontend
