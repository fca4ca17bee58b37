// What converting one function or run of statements costs and saves, where the account of the
// process pays for it (base/conversion_account.h).
//
// A graph is made once the code has run for as long as the graph costs and the account covers that.
// What earlier runs of the program have found out comes first (earlier_runs.h): where graphs paid,
// they are made at once, and where they did not, only when the program has run for clearly longer
// than it did then. All times are milliseconds of processor time. Guarded by the GIL.
#pragma once

#include <cstdint>
#include <optional>

#include "base/conversion_account.h"
#include "speculate/earlier_runs.h"

namespace janus::speculate {

class RegionAccount {
 public:
  RegionAccount() = default;
  ~RegionAccount() { reserve(0); }
  RegionAccount(const RegionAccount&) = delete;
  RegionAccount& operator=(const RegionAccount&) = delete;

  /// From now on the account of the process pays. Before, or if there is none, all is covered.
  void open(const RegionKey& key);
  void close() { is_open_ = false; }
  bool is_open() const { return is_open_; }

  /// Whether this call need not ask, since the account did not cover a graph just before.
  bool waits() {
    if (calls_to_wait_ == 0) return false;
    --calls_to_wait_;
    return true;
  }
  /// Whether the account covers the next graph, and the `calls` so far were worth one. If not and
  /// `may_wait`, the next calls wait: as many as pass in some milliseconds, so that a loop of short
  /// calls does not pay for questions.
  bool covers_graph(uint64_t calls, bool may_wait);
  /// Whether it did not, when it was asked last.
  bool is_short() const { return is_short_; }
  /// Whether code that takes a good part of the program's time waits for the account.
  static bool is_any_waiting();

  void begin_profiled_run();
  /// The run has ended and has met so many tensors.
  void end_profiled_run(uint64_t tensors);
  /// Of a part of `whole`, which was called so often: it has run for as long, and the tensors of
  /// the whole tell its cost until it is profiled.
  void continue_from(const RegionAccount& whole, uint64_t calls);

  void begin_graph() {
    spent_on_graph_ = 0;
    missed_ = 0;
  }
  /// A call fitted no graph, and a further one could be made for such calls.
  void miss() { ++missed_; }
  void spend_on_graph(double milliseconds);
  /// Whether the account covers a probe (Dispatcher::probe), or one of the profiled runs before it.
  bool covers_probe(uint64_t calls) const;
  void spend_on_probe(double milliseconds) { spend(milliseconds); }
  /// A run as a graph was left after so many milliseconds.
  void spend_on_bailout(double milliseconds) { spend(milliseconds); }
  /// Sets aside what the kernels of the graph that was begun will still cost.
  void reserve_for_kernels();
  void release_reserve() { reserve(0); }
  /// The graph that was begun is complete: what it cost tells what others will.
  void complete_graph();
  /// A run as a graph took so many milliseconds. `gain`: what it saved, if that is known; else the
  /// fastest profiled run says it.
  void save(double milliseconds, std::optional<double> gain);
  void graph_ran_first();
  /// The code is given up, and no part of it is left to try. So much was spent on all of it.
  void give_up(double spent);
  double spent() const { return spent_; }

  /// Without profiled runs and bailouts.
  double spent_on_graphs() const { return spent_on_graphs_; }
  /// What the next run of the program may want to know; nullopt: it is not on account.
  std::optional<EarlierRun> told() const;

 private:
  ConversionAccount* account() const { return is_open_ ? conversion_account() : nullptr; }
  std::optional<double> tensors_to_expect() const;
  bool is_worth(const ConversionAccount& paying, uint64_t calls, double used) const;
  double time_of(uint64_t calls, double used) const;
  bool would_have_paid(double cost) const;
  void wait(double since_last_question);
  void spend(double milliseconds);
  void reserve(double milliseconds);

  std::optional<EarlierRun> earlier_;
  bool is_open_ = false;
  bool is_short_ = false;
  double spent_ = 0, saved_ = 0;
  double usual_gain_ = 0;  ///< of a run as a graph
  uint64_t missed_ = 0;    ///< calls that fitted no graph since the last one was begun
  double spent_on_graphs_ = 0;
  double spent_on_graph_ = 0;    ///< on the last one that was begun
  double reserved_ = 0;          ///< for its kernels
  double tensors_ = 0;           ///< that the last profiled run has met
  double expected_tensors_ = 0;  ///< 0: unknown
  uint64_t earlier_calls_ = 0;   ///< of what it is a part of
  uint64_t profiled_ = 0;        ///< runs
  double least_profiled_ = 0;    ///< of the fastest of them; 0: none yet
  double profile_began_ = 0;     ///< the program's time
  double met_ = 0;               ///< the program's time at the first question
  double asked_ = 0;             ///< and at the last one
  uint64_t wait_ = 0;            ///< calls between two questions
  uint64_t calls_to_wait_ = 0;   ///< calls left until the next one
};

}  // namespace janus::speculate
