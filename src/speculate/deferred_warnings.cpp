// Holds the implementation that torch/ provides at start-up.
#include "speculate/deferred_warnings.h"

namespace janus::speculate {
namespace {

std::unique_ptr<DeferredWarnings> (*holder_of_process)() = nullptr;

}  // namespace

void set_warnings_deferrer(std::unique_ptr<DeferredWarnings> (*hold)()) {
  holder_of_process = hold;
}

std::unique_ptr<DeferredWarnings> defer_warnings() {
  return holder_of_process == nullptr ? nullptr : holder_of_process();
}

}  // namespace janus::speculate
