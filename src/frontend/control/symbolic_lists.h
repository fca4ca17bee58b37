// Operations on symbolic lists: lists that grew in a loop or on one side of a branch of the graph,
// so that only the run knows how many elements they have. The graph holds one list for each number
// or tensor that an element consists of.
//
// A tensor that is read from such a list may be any of those that were put in. `memory` stands for
// the memory of all of them; whatever may share memory with one of them is its possible alias.
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
/// The form of both, if there is one.
std::optional<ElementForm> joined(const ElementForm& a, const ElementForm& b, std::string& why);

// --- making, growing and shrinking

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

// --- its length and elements

/// How many elements it has, as a number.
Value length_of(Interpreter& interpreter, const Rolled& list);
/// How many elements it has, as a dimension.
graph::Dim dimension_of(Interpreter& interpreter, const Rolled& list);
/// list[position]; `taken`: the list does not keep it.
Value element_at(Interpreter& interpreter, const Rolled& list, const Value& position,
                 bool taken = false);
/// The same list, growing at its front or at its end: with `front`, popped(..., true) takes the
/// elements from its beginning.
std::shared_ptr<Rolled> facing(GraphWriter& writer, const Rolled& list, bool front);
/// The elements in the other order.
std::shared_ptr<Rolled> reversed(const Rolled& list);
/// What the tensor may be, or may share memory with: first what it was taken from. An element of a
/// list may be whatever that holds; the list may be gone before the element.
std::vector<std::shared_ptr<Tensor>> roots_of(const std::shared_ptr<Tensor>& tensor);
/// Notes that the tensor may be `root`: of a list's memory, that it may hold the tensor.
void relate(const std::shared_ptr<Tensor>& tensor, const std::shared_ptr<Tensor>& root);
/// Notes that a tensor that may be one of `roots` may be any of those that may be one of these too:
/// the root itself may be gone before the two.
void relate_to_others(const std::shared_ptr<Tensor>& tensor,
                      const std::vector<std::shared_ptr<Tensor>>& roots, const Snapshot& others);
/// Adds what is known of one list's memory to that of another list, which may hold the same
/// tensors.
void add_to_memory(Tensor& memory, const TensorState& other);
/// add_to_memory(), and from now on `memory` may share its memory with `other`.
void follow_memory(Tensor& memory, const std::shared_ptr<Tensor>& other);
bool holds_tensors(const ElementForm& form);
/// Whether lists with these memories may hold the same tensor.
bool may_overlap(const Tensor& a, const Tensor& b);
/// The memory of another list that may hold the same tensors, of elements of that form.
std::shared_ptr<Tensor> memory_with(const ElementForm& form,
                                    const std::vector<std::shared_ptr<Tensor>>& memories);

// --- as one tensor

/// The first of its lists, with the first element first.
graph::Value* in_order(GraphWriter& writer, const Rolled& list);
/// A size as an attribute of a node.
graph::AttributeValue size_attribute(const graph::Dim& size);
/// A tensor that the operator makes of all elements.
Value tensor_of_list(Interpreter& interpreter, const Rolled& list, graph::Value* value,
                     const graph::OpDef& op);
/// torch.tensor of it; null: it does not take it.
Value tensor_of_numbers(Interpreter& interpreter, const Rolled& list, graph::DType dtype);

}  // namespace janus::frontend
