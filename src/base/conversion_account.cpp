#include "base/conversion_account.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace janus {
namespace {

// Shares are chosen. Graphs of the steps of 41 programs saved 40 to 95 % of their time, so code
// that runs as long again as it has run mostly pays for a graph; programs of 5 s lose more with
// higher shares. First graphs of seven programs took 0.2 to 0.7 ms for each tensor.

/// Beyond what is free: the share of the program's time.
constexpr double kShare = 0.02;
/// Beyond both: the share of the time in code that may become faster.
constexpr double kShareOfHopeful = 0.6;
/// Milliseconds of a graph, and of each tensor in its profiled run, before any graph was made.
constexpr double kCostOfGraph = 20, kCostOfTensor = 0.5;
/// Tensors of a graph whose profiled run is yet to come, and milliseconds of making the copies with
/// hooks for that run.
constexpr double kUsualTensors = 200, kCostOfCopies = 100;
/// The weight of these costs beside those that were measured, in tensors.
constexpr double kWeightOfFirstCost = 50;

/// One for the process, never freed: threads may outlive everything else.
ConversionAccount* account = nullptr;

}  // namespace

bool ConversionAccount::covers(double cost, double used, double hopeful) const {
  const double most = kFree + kShare * used + kShareOfHopeful * hope_ * hopeful + saved_;
  return spent_ + reserved_ + cost <= most;
}

/// What cost as much as a first profiled run halves the hope; what was cheap tells little of
/// others.
void ConversionAccount::failed(double cost) {
  hope_ *= std::exp2(-std::clamp(cost / kCostOfCopies, 0.0, 1.0));
}

void ConversionAccount::learn(double tensors, double cost) {
  tensors_ += tensors;
  cost_ += cost;
  ++graphs_;
}

double ConversionAccount::estimate(std::optional<double> tensors) const {
  const double of_graphs = std::max(0.0, cost_ - kCostOfGraph * graphs_);
  const double of_tensor =
      (kCostOfTensor * kWeightOfFirstCost + of_graphs) / (kWeightOfFirstCost + tensors_);
  if (!tensors) return kCostOfCopies + kCostOfGraph + of_tensor * kUsualTensors;
  return kCostOfGraph + of_tensor * *tensors;
}

std::optional<SimulatedProcessor> simulated_processor;

/// Who wants to see fallbacks as errors wants conversion at once.
ConversionAccount* conversion_account() { return options().strict ? nullptr : account; }

void spend_on_conversion(double milliseconds) {
  if (ConversionAccount* const paying = conversion_account()) paying->spend(milliseconds);
}

void open_conversion_account(double spent) {
  if (account != nullptr || options().is_disabled(kBudgetSwitch.name)) return;
  account = new ConversionAccount(spent);
  // The child's processor time begins at zero.
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    if (account != nullptr) *account = ConversionAccount(0);
  });
  (void)registered;
}

void close_conversion_account() {
  delete account;
  account = nullptr;
}

double processor_milliseconds() {
  if (simulated_processor) return simulated_processor->milliseconds;
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

}  // namespace janus
