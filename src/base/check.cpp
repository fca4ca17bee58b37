#include "base/check.h"

namespace janus {

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(cat(message, " [", condition, " at ", file, ":", line, "]"));
}

}  // namespace janus
