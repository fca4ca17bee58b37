// The interface through which the executor reaches tensors and operators; torch/ implements it,
// tests use a fake.
//
// A library makes, reads and copies tensors (handles in Slots) and binds operators (operation.h).
// Errors of both are C++ exceptions; they are turned into a Failure in one place,
// Library::protect, inside of which a whole run happens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "execute/library/failure.h"
#include "execute/library/operation.h"
#include "execute/library/random_state.h"
#include "execute/values/layout.h"
#include "graph/graph.h"

namespace janus::execute {

/// When a run gives up Python's lock: that takes microseconds, and serves only other threads.
enum class Unlock : uint8_t { never, if_others_want_it, always };

class Library {
 public:
  virtual ~Library() = default;

  // --- tensors
  virtual Layout layout(const Slot& tensor) const = 0;
  /// Whether the tensor has the dtype, sizes and strides of `layout`. Called for every tensor that
  /// enters a run.
  virtual bool has_layout(const Slot& tensor, graph::DType dtype, std::span<const int64_t> sizes,
                          std::span<const int64_t> strides) const = 0;
  bool has_layout(const Slot& tensor, const Layout& layout) const {
    return has_layout(tensor, layout.dtype, layout.sizes, layout.strides);
  }
  /// Address of the first element; null if the tensor has no element.
  virtual void* data(const Slot& tensor) const = 0;
  /// Identity of the memory: equal for tensors that share it.
  virtual const void* storage(const Slot& tensor) const = 0;
  /// Whether nothing but this slot refers to the tensor, and nothing but the tensor to its memory.
  virtual bool has_no_other_owner(const Slot& tensor) const = 0;
  /// What can have new contents in the place of a tensor that one cell and this slot refer to: the
  /// tensor itself, if nobody can tell that from a new one; a new one in its memory, if nothing
  /// else refers to that. Empty otherwise.
  virtual Slot take_over(Slot& /*tensor*/) { return {}; }
  /// A new tensor of its own memory, not initialised.
  virtual Slot allocate(const Layout& layout) = 0;
  /// A tensor over memory that somebody else owns and keeps.
  virtual Slot over_memory(void* memory, const Layout& layout) = 0;
  /// Moves a tensor that over_memory made to another address.
  virtual void repoint(Slot& tensor, void* memory) = 0;
  /// A tensor that shares the memory of `base` and keeps it alive: its first element lies
  /// `byte_offset` after that of `base`.
  virtual Slot share(const Slot& base, int64_t byte_offset, const Layout& layout) = 0;
  /// Copies the elements; sizes and dtypes are equal, strides need not be.
  virtual void copy(Slot& to, const Slot& from) = 0;
  /// A new tensor: the sum of two of equal sizes and dtypes.
  virtual Slot sum(const Slot& one, const Slot& other) = 0;
  /// Counts `by` in-place writes.
  virtual void bump_version(Slot& tensor, int64_t by) = 0;

  /// Whether operators have tried several ways since memory was given back: the slower ones may
  /// have needed more.
  virtual bool has_compared_ways() const { return false; }
  /// Hands memory that is free but kept back to the system: what comes needs less.
  virtual void give_back_free_memory() {}

  // --- operators
  /// An operator that neither the executor nor a native kernel computes. Dimension expressions in
  /// the attributes have the values that `symbols` gives. Throws InternalError if there is none.
  virtual std::unique_ptr<Operation> bind(const graph::Node& node, const SymbolLookup& symbols) = 0;
  /// Whether the operator can't fail on operands of the sizes on which it ran before, unless memory
  /// runs out: whatever the elements are, they are no reason.
  virtual bool is_certain(const graph::Node& /*node*/) const { return false; }

  /// operation.run(operands), with results at the given places as far as the library can bring that
  /// about; it may learn from what it sees for the next time. The caller looks where they lie.
  virtual void run_placed(Operation& operation, const Operands& operands,
                          std::span<Placement> /*placements*/) {
    operation.run(operands);
  }

  /// The calls' run_into side by side, as far as there are threads for it.
  virtual void run_beside(std::span<const OperationCall> calls) {
    for (const OperationCall& call : calls) call.operation->run_into(call.operands);
  }

  // --- runs
  virtual std::unique_ptr<RandomState> random_state() = 0;
  /// Calls `body(context)` where a run may happen: no gradients are recorded, and Python's lock is
  /// given up as `unlock` says. Exceptions become a Failure; InternalError passes through.
  virtual std::optional<Failure> protect(Unlock unlock, void (*body)(void*), void* context) = 0;
  /// Called inside protect where a run can't be given up any more: it is not interrupted from here
  /// on.
  virtual void enter_certain_part() {}
  /// Throws if the user has asked to stop; called now and then in long runs, inside protect.
  virtual void check_interrupt() {}
};

}  // namespace janus::execute
