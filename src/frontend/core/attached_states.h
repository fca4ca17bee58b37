// What later rooms keep for an interpretation, as the earlier ones see it.
#pragma once

#include <memory>
#include <utility>

#include "frontend/core/recursion_state.h"
#include "frontend/core/runtime_store_log_state.h"

namespace janus::frontend {

class AttachedStates {
 public:
  AttachedStates() = default;
  AttachedStates(const AttachedStates&) = delete;
  AttachedStates& operator=(const AttachedStates&) = delete;

  /// Before anything is interpreted.
  void attach(std::unique_ptr<RecursionState> recursion,
              std::unique_ptr<RuntimeStoreLogState> runtime_store_log) {
    recursion_ = std::move(recursion);
    runtime_store_log_ = std::move(runtime_store_log);
  }
  /// Functions that call themselves (frontend/recursion/recursion.h).
  RecursionState& recursion() { return *recursion_; }
  const RecursionState& recursion() const { return *recursion_; }
  /// What the run writes to objects that it meets (frontend/recursion/runtime_store_log.h).
  RuntimeStoreLogState& runtime_store_log() { return *runtime_store_log_; }

 private:
  std::unique_ptr<RecursionState> recursion_;
  std::unique_ptr<RuntimeStoreLogState> runtime_store_log_;
};

}  // namespace janus::frontend
