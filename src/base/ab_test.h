// A sequential A/B test of two variants, an old and a new one: they run by turns until it is clear
// which is faster. The new one wins a draw; it is given up only if it is clearly slower.
#pragma once

#include <cstddef>
#include <vector>

namespace janus {

class AbTest {
 public:
  enum class Verdict { open, kept, given_up };

  Verdict verdict() const { return verdict_; }
  bool is_over() const { return verdict_ != Verdict::open; }
  /// Whether the next run must use the old variant. Runs come in pairs, one of each variant, in an
  /// order that is drawn. So a program whose runs alternate by themselves does not bias the test.
  bool next_is_old() const;
  /// The time of the run that was next.
  void add(double time);
  /// Keeps the new variant without further runs.
  void keep() { verdict_ = Verdict::kept; }
  /// Median times of each variant.
  double with_new() const;
  double with_old() const;
  bool has_both() const { return !new_.empty() && !old_.empty(); }
  /// Whether there are as many of each as a verdict needs.
  bool has_enough() const;
  bool is_empty() const { return new_.empty() && old_.empty(); }

 private:
  void decide();

  Verdict verdict_ = Verdict::open;
  std::vector<double> new_, old_;
};

}  // namespace janus
