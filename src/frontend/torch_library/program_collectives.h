// Collectives that the program calls, as nodes of the graph.
//
// Torch's own functions are interpreted up to the call of the process group. There a node begins
// the collective, and one that waits for it stands where the program waits. In between nobody may
// write what is received, and eager leaves open what is read there.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// A function of torch.distributed.
Value follow_collective(Interpreter& interpreter, const char* path, const CallArguments& arguments);

/// Methods of torch.distributed.ProcessGroup; the first argument is the group.
Value call_group_all_reduce(Interpreter& interpreter, const CallArguments& arguments);
Value call_group_broadcast(Interpreter& interpreter, const CallArguments& arguments);
Value call_group_all_gather(Interpreter& interpreter, const CallArguments& arguments);
Value call_group_all_gather_single(Interpreter& interpreter, const CallArguments& arguments);
Value call_group_reduce_scatter(Interpreter& interpreter, const CallArguments& arguments);
Value call_group_reduce_scatter_single(Interpreter& interpreter, const CallArguments& arguments);

/// torch._C._distributed_c10d.AllreduceOptions and its like.
Value make_collective_options(Interpreter& interpreter, const CallArguments& arguments);

/// What else than wait() is asked of a collective's work.
Value refuse_of_work(Interpreter& interpreter, const CallArguments& arguments);

/// Refuses if the run ends while a collective goes on, or if it might be repeated for the sake of a
/// gradient.
void check_collectives_done(const Interpreter& interpreter);
void check_not_repeated(const Interpreter& interpreter);

}  // namespace janus::frontend
