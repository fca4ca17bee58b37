// Accumulators: values to which functions only add, such as gradients of weights that a backward
// version hands from call to call, or from iteration to iteration. Nobody needs to know one before
// everything has been added to it.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

class Accumulators {
 public:
  /// `functions`: those that call each other; `once`: those of them that run once, so that what
  /// their loops give is looked at once; `can_add`: whether the rows that a node adds can be added
  /// together.
  template <class CanAdd>
  Accumulators(std::vector<graph::Node*> functions, const std::vector<graph::Node*>& once,
               CanAdd&& can_add)
      : functions_(std::move(functions)) {
    for (const graph::Node* function : once) once_.insert(function->blocks.front().get());
    collect();
    for (const graph::Node* node : adding_)
      if (!can_add(*node)) cannot_add_.insert(node);
    find();
  }

  bool contains(const graph::Value* value) const { return sums_.contains(value); }
  /// Whether the node adds something to one of them.
  bool adds(const graph::Node& node) const;

 private:
  void collect();
  void find();
  bool is_sum(const graph::Value& value) const;
  bool is_made_as_one(const graph::Value& value) const;
  bool is_used_as_one(const graph::Value& value) const;
  bool is_used_well(const graph::Value& value, const graph::Block& block) const;
  bool is_used_well(const graph::Value& value, const graph::Node& user) const;
  bool is_handed_on(const graph::Node& loop, size_t index) const;
  bool is_added(const graph::Value& value, const graph::Block& block) const;
  bool leaves_well(const graph::Value& value, const graph::Block& block) const;
  static size_t uses(const graph::Value& value, const graph::Block& block);
  bool is_ours(const graph::Node* function) const;

  std::vector<graph::Node*> functions_;
  std::unordered_set<const graph::Block*> once_;
  std::unordered_map<const graph::Value*, const graph::Block*> block_of_;
  std::vector<const graph::Node*> adding_;
  std::unordered_set<const graph::Node*> cannot_add_;
  std::unordered_set<const graph::Value*> sums_;
};

}  // namespace janus::passes
