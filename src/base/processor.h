// What the processor that runs this has, for our own loops and the code that we generate. What
// torch's libraries do here is another matter (ops/eager_arithmetic.h).
#pragma once

#include <cstdint>

namespace janus {

enum class InstructionSet : uint8_t { baseline, avx2, avx512 };

/// The most of these that the processor has, or less where TORCHJANUS_INSTRUCTIONS says so
/// ("avx512", "avx2", "baseline"), as tests do. AVX-512 is that on bytes and words, on double and
/// quad words, and on shorter vectors; AVX2 comes with fused multiply-add.
InstructionSet instruction_set();

/// Whether that is less than the processor has.
bool is_instruction_set_narrowed();

}  // namespace janus
