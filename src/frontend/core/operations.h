// Python's operations on abstract values, for the rooms that stand before those which implement
// them.
//
// Python's semantics are mutually recursive: to read an attribute may call a property, whose body
// evaluates expressions, which read attributes. The rooms have an order all the same. An earlier
// room calls a later one through this table. output/ fills it once, at start-up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/values/truth.h"
#include "frontend/values/value.h"
#include "speculate/generated.h"
#include "syntax/tree.h"

namespace janus::frontend {

class Interpreter;

/// Who implements what is declared below.
struct Operations {
  Value (*call)(Interpreter&, const Value& callee, const CallArguments&);
  Value (*binary)(Interpreter&, syntax::Operator, const Value& left, const Value& right);
  Value (*compare)(Interpreter&, syntax::CompareOperator, const Value& left, const Value& right);
  bool (*identical)(Interpreter&, const Value& left, const Value& right);
  Truth (*truth_of)(Interpreter&, const Value&);
  Value (*opened)(Interpreter&, const Value&);
  std::vector<Value> (*elements_of)(Interpreter&, const Value&);
  Value (*call_decorated)(Interpreter&, const Known& function, const CallArguments&);
  Value (*call_on_list)(Interpreter&, PyObject* callable, const CallArguments&);
  void (*switch_requires_grad)(Interpreter&, const std::shared_ptr<Tensor>&, bool wanted);
  speculate::Template (*make_template)(Interpreter&, const Value&);
};
/// Called once, at start-up.
void set_operations(const Operations& operations);

/// callee(*arguments)
Value call(Interpreter& interpreter, const Value& callee, const CallArguments& arguments);
/// Python's binary operators, on known objects, numbers, tensors and containers.
Value binary(Interpreter& interpreter, syntax::Operator op, const Value& left, const Value& right);
Value compare(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
              const Value& right);
/// left is right
bool identical(Interpreter& interpreter, const Value& left, const Value& right);
/// The truth of the value: known, or a flag of the graph.
Truth truth_of(Interpreter& interpreter, const Value& value);
/// bool(value): known, or followed and guarded. `fact`: where the outcomes were counted.
bool truth(Interpreter& interpreter, const Value& value, int fact);
/// Whether `left op right`, guarded where only the run knows.
bool holds(Interpreter& interpreter, const Value& left, syntax::CompareOperator op,
           const Value& right);
/// A container of the real world (list, tuple, dict, torch.Size, named tuple, ...) as its shadow
/// copy, with guards for length and keys; any other value as it is.
Value opened(Interpreter& interpreter, const Value& value);
/// list(value)
std::vector<Value> elements_of(Interpreter& interpreter, const Value& value);
/// Calls a function that one of torch's decorators made. Null if it is no such function.
Value call_decorated(Interpreter& interpreter, const Known& function,
                     const CallArguments& arguments);
/// torch.stack and torch.cat of a list of which only the run knows how many elements it has, and
/// what is reduced over such a stack; null: it is another call.
Value call_on_list(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments);
/// tensor.requires_grad_(wanted); refuses where eager raises.
void switch_requires_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                          bool wanted);
/// How to build the Python object that a value stands for, after the run.
speculate::Template make_template(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
