// Lists that grew in a loop or on one side of a branch of the graph: how many elements they have
// and which, only the run knows. Their elements are values of the graph's lists: one graph list for
// each number or tensor that an element is made of.
//
// The tensors in them are found again as tensors that may be others: `memory` stands for all of
// them, and whoever may share memory with one of them is its possible alias.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/interpreter.h"

namespace janus::frontend {

/// What all elements of such a list look like.
struct ElementForm {
  enum class Kind { number, tensor, object, tuple };
  Kind kind = Kind::number;
  graph::Type type;                ///< all but tuple
  bool tracked = false;            ///< tensor: requires a gradient
  Classes classes;                 ///< object: those that were seen
  std::vector<ElementForm> parts;  ///< tuple
  /// Whatever classes objects have: which they are is tested where that counts.
  friend bool operator==(const ElementForm& a, const ElementForm& b) {
    return a.kind == b.kind && a.type == b.type && a.tracked == b.tracked && a.parts == b.parts;
  }
};

/// Whether tensors in it require a gradient.
bool is_tracked(const ElementForm& form);

/// The grad_fn_name of a list's memory if different operators made its elements.
inline constexpr std::string_view kManyOperators = "many";

struct Rolled {
  TestKey test;  ///< the loop or branch that is followed if the elements are needed one by one
  ElementForm form;
  std::vector<graph::Value*> lists;  ///< one for each leaf of the form
  bool front = false;      ///< it grew at its beginning: the lists begin with its last element
  bool undecided = false;  ///< nothing says yet at which end it grows
  Value length;            ///< null: only the run knows
  std::shared_ptr<Tensor> memory;
};

/// The form of the value; nothing if it can't be in such a list.
std::optional<ElementForm> element_form(Interpreter& interpreter, const Value& value);
/// One form for all these values; nothing, and why, if there is none.
std::optional<ElementForm> common_form(Interpreter& interpreter, const std::vector<Value>& values,
                                       std::string& why);

/// A list of elements known so far, made in the block at hand.
std::shared_ptr<Rolled> roll(Interpreter& interpreter, const TestKey& test, const ElementForm& form,
                             const std::vector<Value>& elements, bool front);
/// The types of the lists for elements of that form.
std::vector<graph::Type> list_types(const ElementForm& form);

/// list.append(value), or list.insert(0, value) with `front`. Null: it does not grow at that end.
/// Throws CannotMerge if the value has another form than the list's elements.
std::shared_ptr<Rolled> grown(Interpreter& interpreter, const Rolled& list, const Value& value,
                              bool front);
/// The element at the list's end, where the block at hand, or one around it, has put it there; null
/// where it is not known.
Value last_pushed(Interpreter& interpreter, const Rolled& list);
/// Takes an element from an end of the list; nothing if lists do not shrink at that end. `partly`:
/// others may never be taken.
struct Popped {
  std::shared_ptr<Rolled> rest;
  Value element;
};
std::optional<Popped> popped(Interpreter& interpreter, const Rolled& list, bool front,
                             bool partly = false);

/// How many elements it has, as a number.
Value length_of(Interpreter& interpreter, const Rolled& list);
/// list[position]
Value element_at(Interpreter& interpreter, const Rolled& list, const Value& position);
/// The same list, growing at its front or at its end: with `front`, popped(..., true) takes the
/// elements from its beginning.
std::shared_ptr<Rolled> facing(Interpreter& interpreter, const Rolled& list, bool front);
/// The elements in the other order.
std::shared_ptr<Rolled> reversed(const Rolled& list);

/// torch.stack and torch.cat of such a list; null: it is another call, or they do not take it.
Value call_on_rolled(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments);
/// torch.tensor of it; null: it does not take it.
Value tensor_of_numbers(Interpreter& interpreter, const Rolled& list, graph::DType dtype);
/// What the step makes of a total and of each element in turn, by a loop in the graph.
using Step = std::function<Value(const Value& total, const Value& element)>;
Value accumulated(Interpreter& interpreter, const Rolled& list, const Value& start,
                  const Step& step);
/// As accumulated(), beginning with what `begin` makes of the first element, which is guarded to be
/// there. Null: there is none.
Value accumulated_from_first(Interpreter& interpreter, const Rolled& list,
                             const std::function<Value(const Value&)>& begin, const Step& step);
/// The numbers of a tensor of one dimension, as a list of the graph.
Value list_of_numbers(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor);
/// sum(list)
Value sum(Interpreter& interpreter, const Rolled& list, const Value& start);
/// The sum of its elements, which there have to be.
Value total_of(Interpreter& interpreter, const Rolled& list);

/// The list object, if its elements are not known one by one.
const Rolled* rolled(const Value& value);

}  // namespace janus::frontend
