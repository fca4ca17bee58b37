// A generator that is run to its end where it is called. The program may not be able to tell that
// from running it step by step: the generator changes nothing, and what it may have read is as it
// was when its elements are taken.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/core/interpreter.h"
#include "frontend/values/snapshot.h"

namespace janus::frontend {

class RunAhead {
 public:
  /// Before the run; the generator's frame has its arguments.
  RunAhead(Interpreter& interpreter, const Frame& generator);

  /// The generator yields the value, which it may hold and change later.
  void yields(const Value& value);
  /// Behind the run: refuses one that has changed something.
  void check_only_read() const;
  /// Where an element is taken: refuses if the run may have read what is no longer as it was.
  void check_unchanged() const;

 private:
  struct Variable {
    std::shared_ptr<Variables> scope;
    std::string name;
    Value value;  ///< null: unbound

    Value now() const;
  };

  void watch_variables(const syntax::Scope& scope, const std::shared_ptr<Variables>& variables);
  void watch(const Value& value, Snapshot& seen);
  void watch_parts(const Value& value, Snapshot& seen);
  void watch_heap();
  [[noreturn]] void refuse() const { interpreter_.refuse(speculate::ReasonCode::generator, name_); }

  Interpreter& interpreter_;
  const std::string name_;
  const bool is_library_;
  const Variables* const own_;
  const SavedState before_;
  const Modes modes_;
  const size_t changes_;
  Snapshot read_, yielded_;
  std::vector<Variable> variables_;
};

}  // namespace janus::frontend
