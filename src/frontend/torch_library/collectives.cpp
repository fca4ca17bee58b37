// The functions of torch.distributed that communicate, and the modules of torch that do between
// their own `forward` and that of the module within. Some are nodes of the graph; the others are
// made by Python, under the names that users know. So are the hooks by which
// `torchjanus run --data-parallel` averages gradients.
#include <algorithm>

#include "frontend/core/interpreter.h"
#include "frontend/torch_library/data_parallel.h"
#include "frontend/torch_library/program_collectives.h"
#include "frontend/torch_library/special_callables.h"
#include "python/is_loaded.h"

namespace janus::frontend {

namespace {

template <size_t length>
struct Path {
  constexpr Path(const char (&path)[length]) { std::ranges::copy(path, text); }
  char text[length];
};

template <Path path>
Value refuse_communication(Interpreter& interpreter, const CallArguments&) {
  interpreter.refuse(ReasonCode::communication, path.text);
}

template <Path path>
constexpr SpecialCallable communicates{path.text, refuse_communication<path>};

template <Path path>
Value follow(Interpreter& interpreter, const CallArguments& arguments) {
  return follow_collective(interpreter, path.text, arguments);
}

template <Path path>
constexpr SpecialCallable in_graphs{path.text, follow<path>};

}  // namespace

std::span<const SpecialCallable> collective_callables() {
  static constexpr SpecialCallable table[] = {
      in_graphs<"torch.distributed.all_gather">,
      communicates<"torch.distributed.all_gather_coalesced">,
      in_graphs<"torch.distributed.all_gather_into_tensor">,
      communicates<"torch.distributed.all_gather_object">,
      in_graphs<"torch.distributed.all_gather_single">,
      in_graphs<"torch.distributed.all_reduce">,
      communicates<"torch.distributed.all_reduce_coalesced">,
      communicates<"torch.distributed.all_to_all">,
      communicates<"torch.distributed.all_to_all_single">,
      communicates<"torch.distributed.barrier">,
      communicates<"torch.distributed.batch_isend_irecv">,
      in_graphs<"torch.distributed.broadcast">,
      communicates<"torch.distributed.broadcast_object_list">,
      communicates<"torch.distributed.destroy_process_group">,
      communicates<"torch.distributed.gather">,
      communicates<"torch.distributed.gather_object">,
      communicates<"torch.distributed.init_process_group">,
      communicates<"torch.distributed.irecv">,
      communicates<"torch.distributed.isend">,
      communicates<"torch.distributed.monitored_barrier">,
      communicates<"torch.distributed.new_group">,
      communicates<"torch.distributed.recv">,
      communicates<"torch.distributed.recv_object_list">,
      communicates<"torch.distributed.reduce">,
      in_graphs<"torch.distributed.reduce_scatter">,
      in_graphs<"torch.distributed.reduce_scatter_single">,
      in_graphs<"torch.distributed.reduce_scatter_tensor">,
      communicates<"torch.distributed.scatter">,
      communicates<"torch.distributed.scatter_object_list">,
      communicates<"torch.distributed.send">,
      communicates<"torch.distributed.send_object_list">,
      {"torch.nn.parallel.DistributedDataParallel.forward", call_data_parallel},
      {"torch.distributed.ProcessGroup.allreduce", call_group_all_reduce},
      {"torch.distributed.ProcessGroup.broadcast", call_group_broadcast},
      {"torch.distributed.ProcessGroup.allgather", call_group_all_gather},
      {"torch.distributed.ProcessGroup.all_gather_single", call_group_all_gather_single},
      {"torch.distributed.ProcessGroup._allgather_base", call_group_all_gather_single},
      {"torch.distributed.ProcessGroup.reduce_scatter", call_group_reduce_scatter},
      {"torch.distributed.ProcessGroup.reduce_scatter_single", call_group_reduce_scatter_single},
      {"torch.distributed.ProcessGroup._reduce_scatter_base", call_group_reduce_scatter_single},
      {"torch._C._distributed_c10d.AllreduceOptions", make_collective_options},
      {"torch._C._distributed_c10d.BroadcastOptions", make_collective_options},
      {"torch._C._distributed_c10d.AllgatherOptions", make_collective_options},
      {"torch._C._distributed_c10d.ReduceScatterOptions", make_collective_options},
      {"torchjanus.communication.Work.__getattr__", refuse_of_work},
  };
  return table;
}

std::span<const SpecialCallable> sharding_callables() {
  if (!python::is_loaded("torch.distributed.fsdp")) return {};
  static constexpr SpecialCallable table[] = {
      communicates<"torch.distributed.fsdp.FullyShardedDataParallel.forward">,
      communicates<"torch.distributed.fsdp._fully_shard._fsdp_state.FSDPState._pre_forward">,
  };
  return table;
}

std::span<const SpecialCallable> shared_gradient_callables() {
  if (!python::is_loaded("torchjanus.shared_gradients")) return {};
  static constexpr SpecialCallable table[] = {
      communicates<"torchjanus.shared_gradients.SharedGradients.after_accumulation">,
      communicates<"torchjanus.shared_gradients.SharedGradients.before_step">,
  };
  return table;
}

}  // namespace janus::frontend
