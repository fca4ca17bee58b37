// What later rooms keep for an interpretation, as the earlier ones see it.
#pragma once

#include <memory>
#include <utility>

#include "frontend/core/met_writes_state.h"
#include "frontend/core/recursion_state.h"

namespace janus::frontend {

class AttachedStates {
 public:
  AttachedStates() = default;
  AttachedStates(const AttachedStates&) = delete;
  AttachedStates& operator=(const AttachedStates&) = delete;

  /// Before anything is interpreted.
  void attach(std::unique_ptr<RecursionState> recursion,
              std::unique_ptr<MetWritesState> met_writes) {
    recursion_ = std::move(recursion);
    met_writes_ = std::move(met_writes);
  }
  /// Functions that call themselves (frontend/recursion/recursion.h).
  RecursionState& recursion() { return *recursion_; }
  const RecursionState& recursion() const { return *recursion_; }
  /// What the run writes to objects that it meets (frontend/recursion/met_writes.h).
  MetWritesState& met_writes() { return *met_writes_; }

 private:
  std::unique_ptr<RecursionState> recursion_;
  std::unique_ptr<MetWritesState> met_writes_;
};

}  // namespace janus::frontend
