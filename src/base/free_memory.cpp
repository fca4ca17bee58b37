#include "base/free_memory.h"

#include <sys/mman.h>

namespace janus {

bool has_free_memory(int64_t bytes) {
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  ::munmap(memory, static_cast<size_t>(bytes));
  return true;
}

}  // namespace janus
