// Merges the state of two sides of a branch, object by object: what differs becomes a result of the
// `if` node, if it is a number or tensor of one type on both sides.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/control/fork.h"
#include "frontend/core/autocast_state.h"
#include "frontend/values/restart.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

/// Two values have no common one; becomes an Either, an Unmerged variable, or ends the merge.
struct NotMerged {
  std::string why;
  bool in_sizes = false;  ///< CannotMerge::in_sizes
};

/// What it is called in a report.
const char* name_of(const Value& value);
/// "None on one side, a tensor on the other"
NotMerged differing(const Value& a, const Value& b);
/// Gives the result the name of the autograd node that eager has there, if it has one name on both
/// sides.
void name_merged(TensorState& merged, const TensorState& a, const TensorState& b);

/// The two sides become one path again, with what both left behind; gives the merged result. Throws
/// CannotMerge.
Value merge(Fork& fork);

class Merger {
 public:
  explicit Merger(Fork& fork);

  /// Merges all objects that both sides knew, and the sides' results. Throws CannotMerge.
  Value run();

 private:
  class AsLeft;
  /// Tensors made for a pair that were found to share their memory with others.
  struct MergedTensor {
    std::shared_ptr<Tensor> tensor;
    std::vector<std::shared_ptr<Tensor>> roots;
  };

  [[noreturn]] void fail(const NotMerged& reason) const {
    throw CannotMerge{*fork_.test(), reason.why, /*in_first_iteration=*/false, reason.in_sizes};
  }
  const ChangeableState& state_in(size_t side, const Changeable& object);
  const TensorState& tensor_in(size_t side, const Tensor& tensor);
  const Elements& elements_in(size_t side, const Sequence& sequence);
  bool existed(const Changeable& object) const;

  void join_state();
  void join_heap(const Heap& first, const Heap& second);
  void join_casts(const Casts& first, const Casts& second);
  void join_effects(const std::vector<speculate::Effect>& first,
                    const std::vector<speculate::Effect>& second);
  void merge_object(Changeable& object);
  void merge_tensor_contents(Tensor& tensor, const TensorState& of_first,
                             const TensorState& of_second);
  static void join_findings(TensorState& a, TensorState& b);
  bool may_become_tracked(const Tensor& tensor, const TensorState& a, const TensorState& b) const;
  graph::Value* merge_contents(const TensorState& a, const TensorState& b);
  void leave_size(graph::Value* (&values)[2], const TensorState& a, const TensorState& b);
  graph::Dim merged_size(const graph::Dim& a, const graph::Dim& b);
  void merge_variables(Variables& variables, const VariableValues& a, const VariableValues& b);
  void merge_writes(TensorState& merged, const TensorState& a, const TensorState& b);
  void write_gradient_on_both(TensorState& a, TensorState& b);
  void write_met_on_both(Sequence& writes, const Elements& a, const Elements& b);
  graph::Value* number_of_writes(size_t side, const TensorState& state);
  PyObject* object_before(const Variables& variables, const std::string& name);
  Value number_before(const Variables& variables, const std::string& name);
  bool is_deleted_on_one_side(const Variables& variables, const std::string& name,
                              const VariableValues& a, const VariableValues& b);
  Value merge_grad(const TensorState& a, const TensorState& b);
  Value kept_on(size_t side, const Value& value);

  Value merge_value(const Value& a, const Value& b);
  void merge_results();
  Value merge_deferred(const Value& a, const Value& b);
  Value merge_optionals(const Value& a, const Value& b);
  Value merge_undefined(size_t side, const Value& other);
  Value merge_outcomes(const Outcome& a, const Outcome& b);
  Value merge_exceptions(const Instance& a, const Instance& b);
  Value only(size_t side, const Value& value);
  Value either(const Value& a, const Value& b, const NotMerged& why);
  Value either_or_unmerged(const Value& a, const Value& b, const NotMerged& reason);
  graph::Value* negated_flag();
  Value either_kind(const Value& a, const Value& b);
  Value alone(size_t side, const Value& value);
  Value new_alone(size_t side, const Value& value);
  graph::Value* placeholder_of(const graph::Type& type);
  Value placeholder_like(const Value& value, size_t side_of_value);
  Value merge_known(const Known& a, const Known& b);
  Value merge_numbers(const Value& a, const Value& b);
  Value merge_objects(const Value& a, const Value& b);
  Value merge_tensors(const std::shared_ptr<Tensor>& a, const std::shared_ptr<Tensor>& b);
  Value merge_sequences(const Sequence& a, const Sequence& b);
  Value merge_dictionaries(const Dictionary& a, const Dictionary& b);
  Elements merge_elements(const Elements& a, const Elements& b, bool is_list);
  std::shared_ptr<const Rolled> merge_rolled(const Elements& a, const Elements& b);
  ElementForm form_of(const Elements& a, const Elements& b);
  std::shared_ptr<const Rolled> rolled_in(size_t side, const Elements& elements,
                                          const Rolled& merged);
  void put_back(size_t side, const std::vector<Value>& values, AsLeft& as_left);
  void put_back(size_t side, Tensor& tensor, AsLeft& as_left);
  Items merge_items(const Items& a, const Items& b);
  graph::Value* merge_graph_values(graph::Value* a, graph::Value* b);
  graph::Value* number_in(size_t side, const Value& number);
  void expect_one_partner(const AbstractValue* a, const AbstractValue* b);
  void expect_no_partner(size_t side, const AbstractValue* value);
  bool may_vary(const TensorState& untracked) const;
  bool is_current(size_t side, const Tensor& tensor);
  void collect_roots(size_t side, const std::shared_ptr<Tensor>& tensor,
                     std::vector<std::shared_ptr<Tensor>>& roots);
  bool is_visible(const graph::Block* block) const;
  bool is_visible(const graph::Value* value) const;
  void finish_value(Tensor& tensor);
  void finish_tensors();

  Fork& fork_;
  Interpreter& interpreter_;
  graph::Node* node_;
  /// By the values of the sides, which it keeps: another value at the place in memory of one that
  /// is gone would be taken for that.
  std::map<std::pair<Value, Value>, Value> merged_;
  /// Null: it is merged with nothing.
  std::map<std::shared_ptr<const AbstractValue>, std::shared_ptr<const AbstractValue>>
      partner_of_first_, partner_of_second_;
  /// By the side that has it; what was there before the branch may come from both.
  std::map<Value, Value> alone_[2];
  std::map<std::pair<graph::Value*, graph::Value*>, graph::Value*> results_;
  /// Sizes that differ: what they are on the two sides, the dimension behind, and its value.
  struct MergedSize {
    graph::Dim first, second, merged;
    graph::Value* value;
  };
  std::vector<MergedSize> sizes_;
  std::vector<MergedTensor> tensors_;
  std::vector<MergedTensor> memories_;  // of lists that were merged
  std::vector<Tensor*> written_;        // of those that existed before
};

}  // namespace janus::frontend
