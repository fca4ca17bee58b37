// What compiled code and LLVM use of glibc that an older one (2.27) does not have. Hidden where it is linked in, so that
// nobody else gets it in place of their own.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// 2.32. Whether the C++ library may count references without atomics: it may not, that is always right.
char __libc_single_threaded = 0;

// 2.36. LLVM names temporary files by it.
uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number)
    if (errno != EINTR) abort();
  return number;
}

// 2.33. LLVM's statistics, which are off.
struct mallinfo2 mallinfo2(void) {
  struct mallinfo2 none = {0};
  return none;
}
