// Iterations are taken to cost the same, but for the first, which often does more. The forecast is
// made anew each time that their number has doubled.
#include "frontend/language/unrolling_forecast.h"

#include <algorithm>
#include <bit>

#include "base/options.h"
#include "base/policy.h"
#include "base/time_budget.h"

namespace janus::frontend {

UnrollingForecast::Left UnrollingForecast::left() const {
  const auto made = static_cast<double>(interpreter_.builder().block().nodes.size());
  return {TimeBudget::seconds_left(), static_cast<double>(options().most_operations) - made};
}

void UnrollingForecast::end_iteration(int64_t trips) {
  if (iterations_ < 2 * policy::kIterationsBeforeForecast) return;
  if (trips == 0) after_first_ = left();
  const auto done = static_cast<uint64_t>(trips) + 1;
  if (done < policy::kIterationsBeforeForecast || !std::has_single_bit(done)) return;
  const Left now = left();
  const double ratio = static_cast<double>(std::max<int64_t>(iterations_ - trips - 1, 0)) /
                       static_cast<double>(trips);
  // Without a limit of time nothing exceeds it, whatever infinity less infinity is.
  const bool is_too_long = (after_first_.seconds - now.seconds) * ratio > now.seconds;
  const bool is_too_large = (after_first_.operations - now.operations) * ratio > now.operations;
  if (!is_too_long && !is_too_large) return;
  if (is_too_long) TimeBudget::give_up();
  interpreter_.refuse(ReasonCode::limit,
                      cat("to make a graph takes too long: a loop would be unrolled with ",
                          iterations_, " iterations"));
}

}  // namespace janus::frontend
