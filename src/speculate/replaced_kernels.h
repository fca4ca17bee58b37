// Whether the program has replaced what torch's own operators compute on the CPU, by a kernel in
// Python: torch.library.Library("aten", "IMPL").impl(…). Graphs would not call it.
#pragma once

#include <string>

namespace janus::speculate {

/// Somebody has registered a kernel in Python under such a name as "aten/sin/CPU", or has taken it
/// away (torchjanus/kernel_names.py). Both need the GIL.
void kernel_registered(const std::string& name);
void kernel_removed(const std::string& name);

/// For reports ("a kernel in Python for aten/sin"); null if there is none. Needs the GIL.
const char* replaced_kernel();
/// Whether there is one, for any thread.
bool has_replaced_kernel();

}  // namespace janus::speculate
