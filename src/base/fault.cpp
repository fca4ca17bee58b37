#include "base/fault.h"

#include <new>
#include <stdexcept>

namespace janus {
namespace {

std::atomic<int64_t> places_left = 0;
std::atomic<bool> happened = false;

}  // namespace

std::atomic<Fault> injected_fault = Fault::none;

void inject_fault(Fault fault, int64_t passed) {
  injected_fault.store(Fault::none);
  if (fault == Fault::none) return;
  places_left.store(passed);
  happened.store(false);
  injected_fault.store(fault);
}

bool fault_happened() { return happened.load(); }

bool count_fault() {
  if (places_left.fetch_sub(1) != 0) return false;
  injected_fault.store(Fault::none);
  happened.store(true);
  return true;
}

void throw_fault(Fault fault) {
  if (fault == Fault::memory) throw std::bad_alloc();
  throw std::runtime_error("a fault that a test asked for");
}

}  // namespace janus
