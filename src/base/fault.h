// Fault injection, for tests: an assumption, a guard, an operator or an allocation fails at a place
// that the test chooses. It costs one load of a flag where no fault is asked for.
#pragma once

#include <atomic>
#include <cstdint>

namespace janus {

enum class Fault : uint8_t {
  none,
  assumption,  ///< an entry assumption does not hold
  guard,       ///< a guard in the graph does not hold
  operation,   ///< an operator throws
  memory       ///< no memory is left
};

/// The place of this kind that comes after `passed` others fails, once, in whatever thread. `none`
/// cancels a fault that has not happened yet.
void inject_fault(Fault fault, int64_t passed);
/// Whether the fault that was asked for last has happened.
bool fault_happened();

extern std::atomic<Fault> injected_fault;
bool count_fault();
[[noreturn]] void throw_fault(Fault fault);

/// Called at each place that may fail in this way: whether this one must.
inline bool fault_due(Fault fault) {
  return injected_fault.load(std::memory_order_relaxed) == fault && count_fault();
}

/// The same where the failure is an exception: throws it.
inline void fault_point(Fault fault) {
  if (fault_due(fault)) [[unlikely]]
    throw_fault(fault);
}

}  // namespace janus
