// Sums that begin with a number: `total = 0` in front of a loop over a node's children, of which a
// leaf has none. Behind it `total` is the number or a tensor, and a flag says which: an Either, the
// only kind with a tensor in it. As a tensor it is filled with the number where it is that: added
// to a tensor, the two give the same, so most programs need no branch.
#pragma once

#include "frontend/interpreter.h"

namespace janus::frontend {

/// Whether an int or float and a tensor can go together so.
bool may_be_filled(const Value& number, const Value& tensor);
/// A tensor of that type, made in the block at hand.
graph::Value* filled_with(Interpreter& interpreter, const Value& number, const graph::Type& type);
/// left op right, of which one is such a value and the other a tensor; null: it is another case, or
/// the two would not give the same.
Value filled_binary(Interpreter& interpreter, syntax::Operator op, const Value& left,
                    const Value& right);
/// left op= right
Value filled_binary_in_place(Interpreter& interpreter, syntax::Operator op, const Value& left,
                             const Value& right);

}  // namespace janus::frontend
