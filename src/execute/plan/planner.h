// Makes a plan from what the first run learned.
//
// Where all memory lies is decided elsewhere (lifetimes.h, certainty.h, memory_plan.h); the planner
// makes the steps that bring it about.
#pragma once

#include <cstdint>
#include <functional>

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/library/library.h"
#include "execute/plan/plan.h"

namespace janus::execute {

/// Gives the memory for so many bytes of values that are there only while a run lasts.
using FindArena = std::function<char*(int64_t bytes)>;

Plan make_plan(const Code& code, Library& library, Frame& frame, const FindArena& find_arena);

}  // namespace janus::execute
