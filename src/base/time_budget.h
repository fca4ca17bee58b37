// The time that a thread may spend on a graph. It is checked where a node is made and where a
// statement is interpreted; these checks also count the work.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>

namespace janus {

/// Thrown where a pass exceeds the budget.
struct OutOfTime : std::exception {
  const char* what() const noexcept override { return "out of time"; }
};

/// While it lives, the thread may use so many seconds of processor time. Of nested budgets the
/// innermost counts.
class TimeBudget {
 public:
  explicit TimeBudget(std::optional<double> seconds);  ///< nullopt: no limit
  ~TimeBudget();
  TimeBudget(const TimeBudget&) = delete;
  TimeBudget& operator=(const TimeBudget&) = delete;

  /// Called when a piece of work begins: whether the time is over. Most calls do not read the
  /// clock.
  static bool is_spent();
  /// The seconds of the innermost budget; 0 if there is none.
  static double seconds();
  /// What is left of them; infinite without a limit. Reads the clock.
  static double seconds_left();
  /// Whatever is left is not used: from now on the innermost budget counts as spent.
  static void give_up();
  /// Pieces of work that this thread has ever begun.
  static int64_t work_done();

 private:
  bool spent();

  std::optional<double> seconds_;
  double start_;
  TimeBudget* outer_;
  int until_look_;
};

/// The same where only an exception leads out.
inline void spend_time() {
  if (TimeBudget::is_spent()) throw OutOfTime();
}

/// Seconds of processor time for one graph, until its kernels are compiled.
extern int64_t most_seconds_of_generation;

/// For tests: each piece of work takes that long. nullopt: the processor's clock again.
void simulate_work(std::optional<double> seconds);
bool is_work_simulated();

}  // namespace janus
