// Whether the program has replaced what torch's own operators compute on the CPU, by a kernel in
// Python: torch.library.Library("aten", "IMPL").impl(…). Graphs would not call it.
#pragma once

namespace janus::speculate {

/// For reports ("a kernel in Python for aten/sin"); null if there is none. Needs the GIL.
const char* replaced_kernel();

}  // namespace janus::speculate
