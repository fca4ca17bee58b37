// What converting may cost a program that did not ask for it.
//
// `torchjanus run` converts on its own account, in milliseconds of processor time. The account has
// enough to begin, a small share of what the program has used so far, and what graphs have
// saved. All work on converting is paid from it. Work begins only if the account covers its
// estimated cost. A region may overdraw it by a share of its own time, as it will probably run as
// long again. Each region that is given up lowers that share. So a program that gains nothing is
// slower by little. Guarded by the GIL.
#pragma once

#include <optional>

#include "base/options.h"

namespace janus {

/// Not among kSwitches: it changes no graph.
inline constexpr Switch kBudgetSwitch{
    "budget", "under `torchjanus run`, converting takes a small share of the program's time"};

class ConversionAccount {
 public:
  /// Milliseconds that may be spent in any case: about what starting and watching cost until a
  /// first profiled run.
  static constexpr double kFree = 150;

  /// `spent`: milliseconds on starting torchjanus.
  explicit ConversionAccount(double spent) : spent_(spent) {}

  void spend(double milliseconds) { spent_ += milliseconds; }
  void save(double milliseconds) { saved_ += milliseconds; }
  /// Work that goes on and is not paid yet; negative: it is.
  void reserve(double milliseconds) { reserved_ += milliseconds; }
  double spent() const { return spent_; }
  double saved() const { return saved_; }

  /// Whether work of this cost may begin when the program has used that much, `hopeful` of it in
  /// code that the work may make faster.
  bool covers(double cost, double used, double hopeful) const;
  /// What was made has run as a graph.
  void succeeded() { hope_ = 1; }
  /// Code is given up that cost so much, and no part of it is left to try.
  void failed(double cost);

  /// What a graph cost whose profiled run met so many tensors.
  void learn(double tensors, double cost);
  /// What making a graph will cost; nullopt: no run has counted the tensors yet.
  double estimate(std::optional<double> tensors) const;

 private:
  double spent_, saved_ = 0, reserved_ = 0;
  double hope_ = 1;
  double tensors_ = 0, cost_ = 0;  ///< of all graphs that were made
  int graphs_ = 0;
};

/// The account of this process; null: what converting costs is not bounded.
ConversionAccount* conversion_account();
/// It pays for that, if there is one.
void spend_on_conversion(double milliseconds);
/// From now on there is one, unless the switch is off. Again: no-op. A child of a fork begins with
/// an empty one.
void open_conversion_account(double spent);

/// Milliseconds of processor time of this process.
double processor_milliseconds();
/// For tests: there is none from now on.
void close_conversion_account();
/// For tests: so many from now on, of which each profiled run takes some. nullopt: the processor's
/// clock again.
struct SimulatedProcessor {
  double milliseconds = 0, of_run = 0;
};
extern std::optional<SimulatedProcessor> simulated_processor;

}  // namespace janus
