// Inline caches of instructions in loops and functions.
//
// Such an instruction most likely runs again on operands of the same layouts, in the next iteration
// or in the next run. Its cache holds those layouts, the kernel call prepared for them, where a
// view lies, and tensors for its results.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/policy.h"
#include "execute/frame/kernel_call.h"
#include "execute/library/library.h"
#include "execute/memory/tensor_pool.h"

namespace janus::execute {

/// Most instructions of a program never run in a block, so that one of these which knows nothing
/// takes no room.
class Repeated {
 public:
  /// Whether the instruction's tensor operands are laid out as they were the last time.
  bool fits(const Instruction& instruction, const Slot* slots, const Library& library) const;

  /// Notes the operands' layouts. `outputs`: the results'; empty if they can't be made beforehand.
  void note(const Instruction& instruction, const Slot* slots, const Library& library,
            std::vector<Layout> outputs);

  /// Whether the results can be made before the instruction computes them.
  bool knows_outputs() const { return known_ != nullptr && !known_->outputs.empty(); }
  /// Puts tensors for the results into their slots. Where the instruction `repeats`, those of
  /// earlier iterations and invocations that nobody refers to any more.
  void make_outputs(const Instruction& instruction, Slot* slots, Library& library, bool repeats);

  /// Once operands were noted.
  std::optional<KernelCall>& kernel_call() { return known_->kernel_call; }

  /// A result in the memory of the first operand.
  struct View {
    int64_t byte_offset = 0;  ///< from the operand's first element to its own
    Layout layout;
  };
  std::optional<View>& view() { return known_->view; }

  /// Gives up a tensor: what leaves the run must have no other owner.
  void forget(const Slot& tensor);
  /// Gives up those that somebody else has.
  void forget_shared(const Library& library);
  void forget_large_tensors(int64_t largest = policy::kLargestKept);
  /// About how many bytes its tensors take.
  int64_t bytes_held() const;
  /// Hands over all.
  void take_tensors(std::vector<TensorPool>& to);

 private:
  struct Known {
    std::vector<Layout> inputs;   ///< of the tensor operands
    std::vector<Layout> outputs;  ///< of all results
    std::optional<KernelCall> kernel_call;
    std::optional<View> view;
    std::vector<TensorPool> pools;  ///< by result
  };
  std::unique_ptr<Known> known_;
};

}  // namespace janus::execute
