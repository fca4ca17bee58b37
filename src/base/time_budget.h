// How long a thread may work on a graph: looked at where it makes a node or interprets a statement,
// which also counts the work.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>

namespace janus {

/// Thrown where passes run out of time.
struct OutOfTime : std::exception {
  const char* what() const noexcept override { return "out of time"; }
};

/// From its construction to its end the thread may use so many of the processor's seconds. Of
/// budgets within each other the innermost counts.
class TimeBudget {
 public:
  explicit TimeBudget(std::optional<double> seconds);  ///< nothing: as many as it takes
  ~TimeBudget();
  TimeBudget(const TimeBudget&) = delete;
  TimeBudget& operator=(const TimeBudget&) = delete;

  /// A piece of work begins: whether there is no time left. Most calls do not look at the clock.
  static bool is_spent();
  /// The seconds of the budget at hand; 0 if there is none.
  static double seconds();
  /// Pieces of work that this thread ever began.
  static int64_t work_done();

 private:
  bool spent();

  std::optional<double> seconds_;
  double start_;
  TimeBudget* outer_;
  int until_look_;
};

/// The same where there is no other way out.
inline void spend_time() {
  if (TimeBudget::is_spent()) throw OutOfTime();
}

/// Seconds of the processor's that making one graph may take, until its kernels are compiled.
extern int64_t most_seconds_of_generation;

/// For tests: each piece of work takes that long. Nothing: the processor's clock again.
void simulate_work(std::optional<double> seconds);
bool is_work_simulated();

}  // namespace janus
