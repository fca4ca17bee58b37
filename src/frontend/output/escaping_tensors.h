// Tensors that Python can reach once a run has ended, and the memory that they share.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

class EscapingTensors {
 public:
  /// `written`: all values that the run gives back or writes to what existed before it.
  EscapingTensors(Interpreter& interpreter, const std::vector<Value>& written);

  /// How often Python reaches it. Of a list of the graph: the tensor that stands for its elements.
  size_t count(const Tensor* tensor) const { return tensors_.count(tensor); }

  /// What becomes a `.grad` must not be, in some runs only, another tensor that Python holds.
  void check_new_gradients(const std::vector<Value>& written) const;

  /// Whether the tensor shares memory with another one that Python holds must not depend on a
  /// branch.
  void check_possible_aliases(const Tensor& tensor) const;

  /// Whether Python can tell that the tensor shares memory with another, has other strides than a
  /// fresh one, or requires the gradient of what it is a view of.
  bool is_shown_view(const Tensor& tensor) const;

  /// Whether the gradient of another result goes through the view. Taken again, it would not lie
  /// there: a hook on it would not be called. Views of tensors from outside don't count.
  bool is_on_the_way(const std::shared_ptr<Tensor>& view) const;

  /// Whether a view that is on the way may be given as a tensor of its own: no other tensor that
  /// Python holds shows any of its elements.
  bool may_stand_alone(const Tensor& view) const;

 private:
  using Tensors = std::set<const Tensor*>;
  Tensors find_on_the_way(const Tensor& memory) const;
  bool may_be_another(const Tensor& tensor) const;
  bool may_be_another(const Tensor& tensor, const Tensor& step,
                      std::set<const Tensor*>& seen) const;
  [[noreturn]] void follow_branch_of(const Optional* optional, const Tensor& grad) const;

  Interpreter& interpreter_;
  std::multiset<const Tensor*> tensors_;
  mutable std::map<const Tensor*, Tensors> on_the_way_;  ///< views, by their memory
};

/// Whether the run made the tensor as a leaf that gradients come to.
bool is_made_leaf(const Tensor& tensor);

/// The tensor of the entry whose new `.grad` that tensor is: a result that is the gradient must be
/// the same object as the attribute. Null: there is none.
std::shared_ptr<Tensor> leaf_with_gradient(const Interpreter& interpreter, const Tensor& gradient);

}  // namespace janus::frontend
