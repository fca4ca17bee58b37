// What crosses the boundary of a run: inputs and cells on their way in, results, rebound values and
// the new contents of cells on their way out.
//
// A program owns what it is given: no result may lie in memory that the run writes, that another
// result has, or that something in the graph still refers to. Where one would, it is copied.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/library/library.h"

namespace janus::execute {

/// Puts inputs and cells into their slots.
void enter(const Code& code, Frame& frame, std::span<const Slot> inputs,
           std::span<const Slot> cells);

/// For how many writes in place a `commit` stands in this run, and whether a `rebind` is to a
/// value.
int64_t writes_of(const Write& commit, const Frame& frame);
bool is_rebound(const Write& rebind, const Frame& frame);
/// What a `rebind` is to, of its `value`; an empty slot: the cell stays what it is.
Slot bound_to(const Write& rebind, const Frame& frame, const Slot& value);
/// How result `index` has to lie if that is known, and otherwise than it does.
std::optional<std::vector<int64_t>> other_strides(const Code& code, size_t index,
                                                  const Layout& layout, const Frame& frame);
/// How what a `rebind` is to lies, a value of these sizes.
std::vector<int64_t> rebound_strides(const Write& rebind, std::span<const int64_t> sizes,
                                     const Frame& frame);

/// After an ordinary run: gives out results and rebound values, writes the cells.
void finish(const Code& code, Library& library, Frame& frame, std::span<const Slot> cells,
            std::span<Slot> results, std::span<Slot> rebound);
/// Copies tensors of lists among the results that share memory with others: passes compute equal
/// values once, and in the program each was a tensor of its own.
void set_apart(Library& library, std::span<Slot> results);

}  // namespace janus::execute
