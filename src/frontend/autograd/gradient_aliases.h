// Which tensors the gradients that torch.autograd.grad gives may share their memory with.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "frontend/autograd/custom_gradient.h"
#include "frontend/values/value.h"
#include "passes/gradient/gradient_memory.h"
#include "passes/reach/paths.h"

namespace janus::frontend {

/// Notes that two tensors, and what else may be in their memory, share it: none may be written as
/// long as another is there.
void relate_both_ways(const std::shared_ptr<Tensor>& one, const std::shared_ptr<Tensor>& other);

/// What a gradient was asked for: a seed for each of the outputs, of which the first came from the
/// program's tensors `given` (a null or None: there is none), the others from its Functions.
struct Seeds {
  const std::vector<graph::Value*>& outputs;
  const std::vector<graph::Value*>& values;
  const std::vector<Value>& given;
};

/// In whose memory gradients are that backward() or autograd.grad gets.
class GradientAliases {
 public:
  /// `targets`: whose gradients they are.
  GradientAliases(const Seeds& seeds, const std::vector<graph::Value*>& targets);

  /// Whether the gradient of that target is surely a new tensor.
  bool is_new(size_t target) const;
  /// Notes for each target's gradient with which seed and which other gradient it may share its
  /// memory, and whether it may be written at all.
  void note(const std::vector<std::shared_ptr<Tensor>>& gradients) const;
  /// The same of gradients that become the `.grad` of leaves; null: it isn't a new one. Eager
  /// copies a gradient that somebody else has, but keeps a view of one, which is a tensor of its
  /// own.
  void note_of_leaves(const std::vector<std::shared_ptr<Tensor>>& gradients) const;

 private:
  /// What a Function gave as a gradient.
  struct Given {
    const graph::Value* identity;  ///< of its memory
    bool is_new;                   ///< nobody else has it, as far as is known
    bool is_known = true;          ///< the identity is: it isn't that of other memory
    bool is_view = false;          ///< a tensor of its own in that memory
  };
  /// Most give what they computed; some the gradient that they were given, as it is: that may be
  /// what another one gave, or a seed.
  Given given_by_function(const graph::Value* value) const;
  /// What a gradient is that is the seed of that output: one that a Function gave. Null if it is
  /// the program's, or none.
  const Given* from_function(std::optional<size_t> output) const;
  /// Whether a tensor of the program that is a seed has that memory.
  bool is_seed_of_program(const graph::Value* identity) const;
  /// The tensors of the program in whose memory the seed of that output lies.
  std::vector<std::shared_ptr<Tensor>> tensors_of_seed(size_t output) const;
  void relate_to_seed(size_t output, const std::shared_ptr<Tensor>& gradient) const;

  /// What tells the memory from another: the seed that it is, or whose gradient was made there.
  const graph::Value* identity_of(const passes::GradientMemory& memory) const;
  bool share(const passes::GradientMemory& one, const passes::GradientMemory& other) const;
  bool is_known(const passes::GradientMemory& memory) const;
  /// Whether it is a tensor of its own in memory that others have.
  bool is_view(const passes::GradientMemory& memory) const;
  /// Whether a gradient may be handed on from the one value to the other, as far as is known: what
  /// a Function does with it isn't.
  bool may_lead_to(const graph::Value* from, const graph::Value* to) const;

  /// Whether the gradient, of which it is known where it is, may be in the memory of one of which
  /// it isn't.
  bool may_be_of_unknown(size_t target) const;
  /// Whether eager copies it, as one of its elements is several.
  bool is_copied_to_leaf(size_t target) const;
  bool may_share_as_leaves(size_t one, size_t other) const;

  const Seeds seeds_;
  const std::vector<graph::Value*>& targets_;
  const std::vector<passes::GradientMemory> memories_;
  // Found out once, as far as it is asked.
  mutable std::map<size_t, Given> given_;  ///< by output
  mutable std::map<const graph::Value*, passes::Reached> reached_;
};

/// Notes that the program may hold the gradient's memory: it got these on the way.
void note_handed_out(const Handed& handed, const std::shared_ptr<Tensor>& gradient);

}  // namespace janus::frontend
