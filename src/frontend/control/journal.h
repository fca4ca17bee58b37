// The deferred effect log: calls with side effects (effects.h) and texts that iterations of loops
// in the graph make. Which calls are made, and with what arguments, goes through the loops as
// lists; the calls are made in order when the run is complete.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "frontend/core/interpreter.h"
#include "frontend/core/journal_state.h"
#include "frontend/values/value.h"

namespace janus::frontend {

/// Writes calls, and texts, to a state of which there is one for the interpretation as a whole.
class Journal {
 public:
  explicit Journal(Interpreter& interpreter);
  Journal(Interpreter& interpreter, JournalState& state);

  /// Lives while the iterations of a loop are interpreted. At the end of the outermost loop, what
  /// the iterations have shown becomes an effect.
  class Iterations {
   public:
    explicit Iterations(Interpreter& interpreter);
    ~Iterations();
    Iterations(const Iterations&) = delete;
    Iterations& operator=(const Iterations&) = delete;
    /// The loop has become a node.
    void finish();

   private:
    Interpreter& interpreter_;
  };

  /// The call, in an iteration.
  void add(const speculate::Template& call);
  /// What the only entry is, time after time, as a list; nothing if there are several.
  std::optional<speculate::Template> each() const;

 private:
  size_t entry_of(speculate::Template call, const std::vector<graph::Value*>& values);
  std::shared_ptr<Sequence> new_list() const;
  speculate::Template each_of(const JournalEntry& entry) const;
  void show();

  Interpreter& interpreter_;
  JournalState& state_;
};

/// callable(*arguments) made after the run; `type` is the exact class of the result.
Value defer(Interpreter& interpreter, python::Object callable, const CallArguments& arguments,
            PyTypeObject* type);

/// The call after the commit, in program order; in an iteration of a loop, as often as that is run.
void add_effect(Interpreter& interpreter, speculate::Template call);

/// callable(*arguments) after the commit, in program order.
void call_behind_run(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments);

}  // namespace janus::frontend
