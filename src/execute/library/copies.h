// Copies of tensors in memory of their own.
#pragma once

#include "execute/library/library.h"

namespace janus::execute {

/// A copy of a tensor that lies as `layout` says.
Slot cloned(Library& library, const Slot& tensor, const Layout& layout);
/// A copy of a tensor, with the same layout where that has no gaps.
Slot cloned(Library& library, const Slot& tensor, bool contiguous = false);

}  // namespace janus::execute
