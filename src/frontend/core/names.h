// Names of the program: variables of frames, globals, closure cells, and the variables of a run of
// statements that is interpreted in place of a function.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "frontend/core/assumptions.h"
#include "frontend/core/frames.h"
#include "frontend/core/graph_writer.h"
#include "frontend/core/heap_places.h"
#include "frontend/core/interpreter_state.h"
#include "frontend/core/lifting.h"
#include "frontend/values/value.h"

namespace janus::frontend {

/// A run of statements that is interpreted in place of a function.
struct StatementRun {
  std::shared_ptr<Variables> variables;                ///< null: it is a function
  int at = -1;                                         ///< which statement is being run
  std::map<std::string, int, std::less<>> written_by;  ///< which one wrote a variable last
};

class Names {
 public:
  Names(const speculate::Call& call, InterpreterState& state, GraphWriter& writer, Frames& frames,
        Assumptions& assumptions, Lifting& lifting, HeapPlaces& places)
      : call_(call),
        state_(state),
        writer_(writer),
        frames_(frames),
        assumptions_(assumptions),
        lifting_(lifting),
        places_(places) {}
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  /// What a name written in a class means: `_C__x` for `__x`.
  std::string mangled(const std::string& name) const;
  Value read_name(const std::string& name);
  void write_name(const std::string& name, Value value);
  void delete_name(const std::string& name);
  Value read_global(const std::string& name);
  /// The path to a variable of the frame that the statements stand in.
  const Source* frame_variable(const python::Object& name) const;
  /// The code of a Python function, or refusal if its source is missing.
  std::shared_ptr<const Code> code_of(PyObject* function, const Source* source);

  /// The statements at hand, if it is no function.
  StatementRun statement_run;
  /// Refusals at the end of a run of statements are laid to the statement that wrote variable
  /// `index` of its result last, until blame_nobody().
  void blame_writer_of(size_t index);
  void blame_nobody() { statement_run.at = -1; }

 private:
  Value* find_variable(const std::string& name);
  Value read_statement_variable(const std::string& name);
  Value read_closure_cell(const std::string& name);
  void write_closure_cell(const std::string& name, const Value& value);
  void write_global(const std::string& name, const Value& value);
  /// The function by which the guards reach the globals of the code at hand.
  const Source* globals_owner();
  bool may_be_variable(const std::string& name, PyObject* cell) const;
  void check_not_written(const std::string& name, PyObject* cell) const;

  const speculate::Call& call_;
  InterpreterState& state_;
  GraphWriter& writer_;
  Frames& frames_;
  Assumptions& assumptions_;
  Lifting& lifting_;
  HeapPlaces& places_;
  std::map<PyObject*, const Source*> globals_owners_;
};

}  // namespace janus::frontend
