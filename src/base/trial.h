// Which of two ways of doing the same is faster, found out by doing it by turns: the new way has
// the presumption in its favour, and is given up only where it is clearly slower.
#pragma once

#include <cstddef>
#include <vector>

namespace janus {

class Trial {
 public:
  enum class Verdict { open, kept, given_up };

  Verdict verdict() const { return verdict_; }
  bool is_over() const { return verdict_ != Verdict::open; }
  /// Whether the next run is to go the old way. Runs come in pairs, one of each way, whose order is
  /// drawn, so that runs that differ by turns themselves are as often of the one as of the other.
  bool next_is_old() const;
  /// The run that was next took so long.
  void add(double time);
  /// It is clear without any runs.
  void keep() { verdict_ = Verdict::kept; }
  /// Medians of what the runs took.
  double with_new() const;
  double with_old() const;
  bool has_both() const { return !new_.empty() && !old_.empty(); }
  bool is_empty() const { return new_.empty() && old_.empty(); }

 private:
  void decide();

  Verdict verdict_ = Verdict::open;
  std::vector<double> new_, old_;
};

}  // namespace janus
