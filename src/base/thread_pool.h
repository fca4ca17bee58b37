// The process's team of threads, for parallel loops over large index ranges in equal pieces.
//
// If an OpenMP runtime is loaded (torch's), its team is used: those threads are awake after a
// matrix product and would otherwise spin beside ours. Elsewhere, and in the child of a fork, the
// process has threads of its own. They spin for some microseconds after a piece of work and then
// sleep. Threads start at first use and never end.
#pragma once

#include <cstdint>
#include <type_traits>

namespace janus {

/// The number of threads that a loop may use, the caller included. With OpenMP's team, the calling
/// thread's setting counts (omp_set_num_threads, which torch.set_num_threads calls). Otherwise this
/// one counts, which begins with the number of processors that the process may run on.
void set_thread_count(int count);
int thread_count();
/// Of the calling thread alone. Without OpenMP's team, nothing happens.
void set_thread_count_here(int count);
/// Whether OpenMP's team is used. It may be found later; the child of a fork has none.
bool uses_openmp();

namespace detail {
using RangeFunction = void (*)(const void* context, int64_t begin, int64_t end);
void parallel_for(int64_t count, int64_t grain, RangeFunction function, const void* context);
}  // namespace detail

/// Calls `function(begin, end)` for pieces that cover [0, count), on up to thread_count() threads,
/// and returns when all are done. Each piece has at least `grain` indices, or is the whole. Which
/// piece holds which index depends on count, grain and thread_count() alone. The caller runs all of
/// it if there is one piece, inside another parallel_for, or while another thread uses the team.
/// The first exception of a piece is thrown here, after all have ended.
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
