// See copies.h.
#include "execute/library/copies.h"

namespace janus::execute {

Slot cloned(Library& library, const Slot& tensor, const Layout& layout) {
  Slot result = library.allocate(layout);
  library.copy(result, tensor);
  return result;
}

Slot cloned(Library& library, const Slot& tensor, bool contiguous) {
  Layout layout = library.layout(tensor);
  if (contiguous || !layout.is_dense()) layout.strides = contiguous_strides(layout.sizes);
  return cloned(library, tensor, layout);
}

}  // namespace janus::execute
