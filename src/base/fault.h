// Failures on demand, for tests: what is assumed, what an operator does and what memory is asked
// for fails at a place that the test chooses. Costs one load of a flag where nothing is asked for.
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

/// After `passed` places of this kind the next one fails, once, in whatever thread it is. `none`
/// takes back what has not happened yet.
void inject_fault(Fault fault, int64_t passed);
/// Whether the fault that was asked for last has happened.
bool fault_happened();

extern std::atomic<Fault> injected_fault;
bool count_fault();
[[noreturn]] void throw_fault(Fault fault);

/// At each place that may fail in this way: whether it is the one.
inline bool fault_due(Fault fault) {
  return injected_fault.load(std::memory_order_relaxed) == fault && count_fault();
}

/// The same where failing is throwing.
inline void fault_point(Fault fault) {
  if (fault_due(fault)) [[unlikely]]
    throw_fault(fault);
}

}  // namespace janus
