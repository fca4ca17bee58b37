// Whether the program has replaced what torch's own operators compute on the CPU, by a kernel in
// Python: torch.library.Library("aten", "IMPL").impl(…). Graphs would not call it.
#pragma once

namespace janus::speculate {

/// Somebody has registered a kernel in Python, or taken one away (torchjanus/kernel_names.py).
/// Needs the GIL.
void kernel_names_changed();

/// For reports ("a kernel in Python for aten/sin"); null if there is none. Needs the GIL.
const char* replaced_kernel();

}  // namespace janus::speculate
