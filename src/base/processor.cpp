#include "base/processor.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/check.h"

namespace janus {
namespace {

InstructionSet set_of_processor() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0)
    return InstructionSet::avx512;
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0)
    return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

InstructionSet most_wanted() {
  constexpr const char* variable = "TORCHJANUS_INSTRUCTIONS";
  const char* value = std::getenv(variable);
  const std::string_view wanted = value == nullptr ? "" : value;
  if (wanted == "baseline") return InstructionSet::baseline;
  if (wanted == "avx2") return InstructionSet::avx2;
  if (!wanted.empty() && wanted != "avx512")
    std::fputs(cat("torchjanus: ", variable, "=", wanted,
                   " is ignored: avx512, avx2 or baseline is expected\n")
                   .c_str(),
               stderr);
  return InstructionSet::avx512;
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet instance = std::min(set_of_processor(), most_wanted());
  return instance;
}

bool has_fused_multiply_add() {
#if defined(__aarch64__)
  return true;
#else
  return instruction_set() >= InstructionSet::avx2;
#endif
}

bool is_instruction_set_narrowed() { return instruction_set() != set_of_processor(); }

}  // namespace janus
