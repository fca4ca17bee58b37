// Graph breaks in a run of statements. Where one statement can't be converted, those before and
// behind it are segments, each of which may run as a graph. A refused segment is cut in turn, so
// the number of cuts is bounded by the number of statements.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "speculate/dispatch.h"
#include "syntax/tree.h"

namespace janus::bind {

/// The time of some runs, without what other parts report.
struct Spent {
  uint64_t runs = 0;
  double milliseconds = 0;
};

/// The statements `begin` .. `end`-1.
struct Segment {
  Segment(std::string name, const std::shared_ptr<const syntax::Tree>& tree, size_t begin,
          size_t end, speculate::DispatchOptions options);
  const size_t begin, end;
  std::shared_ptr<const syntax::Tree> tree;  ///< a slice of the whole
  std::vector<size_t> variables;             ///< numbers of the variables that they bind
  speculate::Dispatcher dispatcher;
  Spent as_graph;  ///< from entry to exit
};

class Cuts {
 public:
  /// One graph break: where, and why.
  struct Cut {
    size_t begin, end;  ///< the refused statements
    int statement;      ///< the one that stays in Python; -1: none, the segment was halved
    speculate::Reason reason;
  };

  /// `bound[i]`: numbers of the variables that statement i binds, among `names`.
  Cuts(std::shared_ptr<const syntax::Tree> tree, std::vector<std::string> names,
       std::vector<std::vector<size_t>> bound)
      : tree_(std::move(tree)), names_(std::move(names)), bound_(std::move(bound)) {}

  /// Whether a cut could leave something to run as a graph.
  bool possible() const;
  bool any() const { return !cuts_.empty(); }
  /// Cuts the whole where its dispatcher was refused.
  void cut_whole(const speculate::Dispatcher& whole, speculate::Reason reason);
  /// Cuts a segment where its dispatcher was refused.
  void cut(const std::shared_ptr<Segment>& segment, speculate::Reason reason);

  /// The segment that begins there; null if the statement runs in Python or in an earlier segment.
  std::shared_ptr<Segment> starting_at(size_t statement) const {
    return starting_at_.empty() ? nullptr : starting_at_[statement];
  }
  const std::vector<Cut>& cuts() const { return cuts_; }
  /// Where the statement is that stays in Python, or else the refused statements.
  graph::SourceSpan place_of(const Cut& cut) const;
  std::vector<std::shared_ptr<Segment>> segments() const;
  const std::vector<size_t>& bound_by(size_t statement) const { return bound_[statement]; }
  /// The time of a statement in Python, between segments or in one without a graph.
  Spent& in_python(size_t statement) { return in_python_[statement]; }
  const Spent& in_python(size_t statement) const { return in_python_[statement]; }
  /// The time of a segment's runs in Python.
  Spent in_python(const Segment& segment) const;

 private:
  void cut(size_t begin, size_t end, const speculate::Dispatcher& seen, speculate::Reason reason);
  void add(size_t begin, size_t end, const speculate::Dispatcher& seen);

  std::shared_ptr<const syntax::Tree> tree_;
  std::vector<std::string> names_;
  std::vector<std::vector<size_t>> bound_;
  std::vector<std::shared_ptr<Segment>> starting_at_;  ///< by statement, once there is a cut
  std::vector<Spent> in_python_;                       ///< by statement as well
  std::vector<Cut> cuts_;
};

}  // namespace janus::bind
