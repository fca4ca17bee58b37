// What the processor that runs this has.
#pragma once

namespace janus {

/// The AVX-512 that libraries look for before they use any of it: on bytes and words, on double and
/// quad words, and on shorter vectors. False where there is no such thing.
inline bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
#else
  return false;
#endif
}

}  // namespace janus
