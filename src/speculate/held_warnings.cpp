// Where torch/ puts what holds warnings back, at start-up.
#include "speculate/held_warnings.h"

namespace janus::speculate {
namespace {

std::unique_ptr<HeldWarnings> (*holder_of_process)() = nullptr;

}  // namespace

void set_warnings_holder(std::unique_ptr<HeldWarnings> (*hold)()) { holder_of_process = hold; }

std::unique_ptr<HeldWarnings> hold_warnings() {
  return holder_of_process == nullptr ? nullptr : holder_of_process();
}

}  // namespace janus::speculate
