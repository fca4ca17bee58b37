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

#include "frontend/core/interpreter.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

/// The form of the value; nothing if it can't be in such a list.
std::optional<ElementForm> element_form(Interpreter& interpreter, const Value& value);
/// One form for all these values; nothing, and why, if there is none.
std::optional<ElementForm> common_form(Interpreter& interpreter, const std::vector<Value>& values,
                                       std::string& why);

/// A list of elements known so far, made in the block at hand.
std::shared_ptr<Rolled> roll(Interpreter& interpreter, const TestKey& test, const ElementForm& form,
                             const std::vector<Value>& elements, bool front);

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

/// torch.tensor of it; null: it does not take it.
Value tensor_of_numbers(Interpreter& interpreter, const Rolled& list, graph::DType dtype);

/// A size as an attribute of a node.
graph::AttributeValue size_attribute(const graph::Dim& size);
/// The first of its lists, with the first element first.
graph::Value* in_order(Interpreter& interpreter, const Rolled& list);
/// How many elements it has, as a dimension.
graph::Dim dimension_of(Interpreter& interpreter, const Rolled& list);
/// A tensor that the operator `name` makes of all elements.
Value tensor_of_list(Interpreter& interpreter, const Rolled& list, graph::Value* value,
                     const char* name);

/// The memory of another list that may hold the same tensors, of elements of that form.
std::shared_ptr<Tensor> memory_with(const ElementForm& form,
                                    const std::vector<std::shared_ptr<Tensor>>& memories);

}  // namespace janus::frontend
