// What converting may cost a program that did not ask for it.
//
// `torchjanus run` converts on its own account, in milliseconds of processor time. The account has
// a share of what the program has used so far, and what graphs have saved. All work on converting
// is paid from it. Work begins only if the account covers its estimated cost. So a program that
// gains nothing is slower by that share, wherever it ends. Guarded by the GIL.
#pragma once

#include <optional>

#include "base/options.h"

namespace janus {

/// Not among kSwitches: it changes no graph.
inline constexpr Switch kBudgetSwitch{
    "budget", "under `torchjanus run`, converting takes a small share of the program's time"};

class ConversionAccount {
 public:
  /// `used`: milliseconds that the program has used so far; `spent`: on starting torchjanus.
  ConversionAccount(double used, double spent) : used_before_(used), spent_(spent) {}

  void spend(double milliseconds) { spent_ += milliseconds; }
  void save(double milliseconds) { saved_ += milliseconds; }
  /// Work that goes on and is not paid yet; negative: it is.
  void reserve(double milliseconds) { reserved_ += milliseconds; }
  double spent() const { return spent_; }
  double saved() const { return saved_; }

  /// Whether work of this cost may begin when the program has used that much.
  bool covers(double cost, double used) const;

  /// What a graph cost whose profiled run met so many tensors.
  void learn(double tensors, double cost);
  /// What making a graph will cost; nullopt: no run has counted the tensors yet.
  double estimate(std::optional<double> tensors) const;

 private:
  double used_before_, spent_;
  double saved_ = 0, reserved_ = 0;
  double tensors_ = 0, cost_ = 0;  ///< of all graphs that were made
  int graphs_ = 0;
};

/// The account of this process; null: what converting costs is not bounded.
ConversionAccount* conversion_account();
/// From now on there is one, unless the switch is off. Again: no-op. A child of a fork begins with
/// an empty one.
void open_conversion_account(double spent);

/// Milliseconds of processor time of this process.
double processor_milliseconds();
/// For tests: there is none from now on.
void close_conversion_account();
/// For tests: so many, from now on. nullopt: the processor's clock again.
void simulate_processor_time(std::optional<double> milliseconds);

}  // namespace janus
