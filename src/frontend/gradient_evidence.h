// What only the run shows to have a gradient.
//
// Where a gradient comes to depends on what a recursion does and on which elements of lists it
// reads. Where no flag tells (reached.h), it is taken for granted that a gradient comes, and the
// run has to show it: a gradient that is not zero came somewhere. One that is zero proves nothing,
// so the run is given up then, and eager decides.
#pragma once

#include <span>
#include <vector>

#include "frontend/interpreter.h"

namespace janus::frontend {

/// Ends the run if one of the gradients is zero, or no number, everywhere.
void expect_gradients(Interpreter& interpreter, std::span<graph::Value* const> gradients);

/// Ends the run unless a backward() that frees what it needs has come to each element that was
/// pushed onto the lists.
void expect_freed(Interpreter& interpreter, std::span<graph::Value* const> lists);

}  // namespace janus::frontend
