// Tensors of one layout that a run makes again and again, as in the iterations of a loop: once
// nobody else refers to one, it is used again instead of a new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "execute/library/library.h"

namespace janus::execute {

class TensorPool {
 public:
  const Slot& take(const Layout& layout, Library& library);
  void forget(const Slot& tensor);
  void forget_shared(const Library& library);
  size_t size() const { return tensors_.size(); }

 private:
  std::vector<Slot> tensors_;
  size_t last_ = 0;  ///< which was taken last
};

}  // namespace janus::execute
