// Consumed tapes: what a backward() in the run has certainly freed. A result of the run whose tape
// is consumed gets a grad_fn that raises, so eager's must raise as well (a must analysis).
//
// The analysis works block by block: it finds the values that backward() has reached whenever the
// block was run. So it covers iterations of loops, sides of branches and functions.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "frontend/core/interpreter.h"
#include "passes/reach/reachability.h"

namespace janus::frontend {

class ConsumedTape {
 public:
  /// `pushes`: nodes that push elements to lists. A backward() has reached each of those elements.
  explicit ConsumedTape(Interpreter& interpreter, const std::vector<graph::Node*>& pushes = {});

  /// Whether a backward() has surely reached the value.
  bool contains(graph::Value* value) const;
  /// Whether another backward() of this value surely raises before it has added to a gradient. If a
  /// backward() has reached the value, one consumed way from it is enough; else all ways have to be
  /// consumed. For a list: whether that holds for each element.
  bool raises(graph::Value* value);
  /// Refuses if raises() is not certain.
  void check_raises(graph::Value* value);

 private:
  using Reached = passes::Reached;

  void add_way(const graph::Node& gradient);
  void find();
  void find_in(const graph::Block& block);
  void enter(const graph::Node& node, const Reached& reached);
  Reached carried_by(const graph::Node& loop, std::set<size_t> carried) const;
  Reached from(const graph::Block& block, std::vector<graph::Value*> values) const;
  bool raises(graph::Value* value, bool reached);
  bool find_raises(graph::Value* value, bool reached);
  bool parameter_raises(const graph::Value& parameter);
  bool operands_raise(const graph::Node& node, bool reached);
  bool is_tracked(graph::Value* value);

  Interpreter& interpreter_;
  std::vector<const graph::Node*> gradients_;  ///< that free what they come to
  std::map<const graph::Block*, std::vector<graph::Value*>> begins_;
  /// What autograd.grad() has reached on its way to some of the leaves, outside of branches, loops
  /// and functions.
  Reached on_the_way_;
  std::map<const graph::Block*, Reached> reached_;
  /// By function: the results that backward() has reached at all of its calls.
  std::map<const graph::Node*, std::set<size_t>> results_, results_met_;
  std::map<std::pair<const graph::Value*, bool>, bool> raises_;
  std::map<const graph::Value*, bool> tracked_;
};

}  // namespace janus::frontend
