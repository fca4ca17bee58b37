// One team of threads for the whole process: loops over large index ranges, cut into equal pieces.
//
// Where an OpenMP runtime is already loaded (torch's), its team is used: those threads are awake
// after a matrix product and would otherwise spin beside ours. Elsewhere, and in the children of a
// fork, the process has threads of its own, which spin for some microseconds after a piece of work
// and then sleep. Threads are started at first use and never end.
#pragma once

#include <cstdint>
#include <type_traits>

namespace janus {

/// How many threads a loop may use, the caller included. Where OpenMP's team is used, the calling
/// thread's setting of it counts (omp_set_num_threads, which torch.set_num_threads calls); else
/// what was set here, at first the number of processors that this process may run on.
void set_thread_count(int count);
int thread_count();
/// Whether OpenMP's team is used. It may be found later, and a fork's child has none.
bool uses_openmp();

namespace detail {
using RangeFunction = void (*)(const void* context, int64_t begin, int64_t end);
void parallel_for(int64_t count, int64_t grain, RangeFunction function, const void* context);
}  // namespace detail

/// Calls `function(begin, end)` for pieces that together cover [0, count), each of at least `grain`
/// indices, or all in one, at the same time on up to thread_count() threads; returns when all are
/// done. Which piece holds which index depends on count, grain and thread_count() alone. Runs all
/// in the caller where there is only one piece, inside another parallel_for, or while another
/// thread uses the team. The first exception that a piece throws is thrown here, after all have
/// ended.
template <class Function>
void parallel_for(int64_t count, int64_t grain, const Function& function) {
  if (count <= 0) return;
  if (count / 2 < grain) return static_cast<void>(function(int64_t{0}, count));
  detail::parallel_for(
      count, grain,
      [](const void* context, int64_t begin, int64_t end) {
        (*static_cast<const Function*>(context))(begin, end);
      },
      &function);
}

}  // namespace janus
