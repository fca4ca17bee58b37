// The instruction set of this processor, for our own loops and generated code. What torch's
// libraries use is another matter (ops/eager_arithmetic.h).
#pragma once

#include <cstdint>

namespace janus {

enum class InstructionSet : uint8_t { baseline, avx2, avx512 };

/// The widest set that the processor has, or a narrower one where TORCHJANUS_INSTRUCTIONS asks for
/// it ("avx512", "avx2", "baseline"), as tests do. AVX-512 includes BW, DQ and VL; AVX2 includes
/// fused multiply-add.
InstructionSet instruction_set();

/// Whether vectors of that set have an instruction that multiplies and adds, and rounds once.
bool has_fused_multiply_add();

/// Whether that is narrower than the processor's own.
bool is_instruction_set_narrowed();

}  // namespace janus
