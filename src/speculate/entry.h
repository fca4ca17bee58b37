// One compiled version in the code cache: a graph with its guards and its program, and the
// conversion of Python objects to inputs and from results.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/background.h"
#include "execute/program/program.h"
#include "speculate/differentiable.h"
#include "speculate/generated.h"
#include "speculate/guards.h"
#include "speculate/heap_write.h"
#include "speculate/recipe.h"
#include "speculate/taken_locks.h"

namespace janus::speculate {

/// Sets the tensors and operators that programs use. torch/ calls it once at start-up.
void set_library(execute::Library* library);
execute::Library* library();

/// A collective would be made where the run may still be given up: what() names the operator.
class UncertainCollective : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Entry {
 public:
  struct Times {
    double optimise = 0, compile = 0;  ///< milliseconds
  };

  /// Optimises and compiles the graph, its kernels in the background. Throws InternalError, and
  /// what the passes throw.
  static std::shared_ptr<Entry> make(Generated generated, const Call& call);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  const Guards& guards() const { return *guards_; }
  /// Whether an object died that the graph needs: it can never be entered again.
  bool retired() const { return retired_; }
  /// Milliseconds of processor time of the background compilation; nullopt while it goes on, when a
  /// run would wait for it. Throws its exception if it failed.
  std::optional<double> compiled_in_background();
  /// The same so far.
  double milliseconds_in_background() const;

  /// A run frees what its writes replace after all its effects. The reason why Python must run the
  /// call, if a finalizer makes that visible.
  std::optional<Reason> finalizer_in_the_way(std::span<const python::Object> captured) const;
  /// The same, if the wrapper's forward pass would raise for what an earlier step left undone.
  std::optional<Reason> reducer_in_the_way() const;

  /// Takes the locks that the run uses. The reason why Python must run the call, if one is taken.
  std::optional<Reason> take_locks(std::span<const python::Object> captured,
                                   TakenLocks& taken) const;

  /// Runs the graph on the objects that the guards captured, and gives `locks` back. If it returns
  /// nullopt, `result` is set, or null with a Python exception of one of the program's effects.
  /// `committed` is set before anything becomes visible: after that, no exception may lead to a
  /// second, imperative run.
  std::optional<execute::Failure> run(std::vector<python::Object> captured, TakenLocks& locks,
                                      python::Object& result, bool& committed);

  /// As generated, before the passes; and as compiled.
  const std::string& generated_text() const { return generated_text_; }
  /// By line of that text: where in the program the node stands that begins there.
  const std::vector<graph::SourceSpan>& generated_places() const { return generated_places_; }
  /// Null once it is retired.
  const execute::Program* program() const { return program_.get(); }
  std::string optimised_text() const;
  std::string program_text() const;
  /// Programs of the backward run of what it gives; 0 if that has no gradient.
  size_t backward_parts() const {
    return differentiable_ ? differentiable_->backward_parts() : size_t{0};
  }
  /// Buckets of gradients that the graph shares with other processes.
  size_t exchanged_buckets() const { return exchanged_buckets_; }
  execute::Program::Timing timing() const;
  const std::vector<LineMark>& lines() const { return lines_; }
  const std::vector<GraphTest>& tests() const { return tests_; }
  const Times& times() const { return times_; }

  uint64_t hits = 0, aborts = 0;
  uint64_t misses = 0;
  int outgrown = 0;  ///< runs that met what the profile had not seen
  /// The outcomes for which it was generated, beside those of the profile.
  std::vector<ChosenOutcome> chosen;

 private:
  struct Cell {
    CellBinding::Kind kind = CellBinding::Kind::tensor;
    size_t captured = 0;
    python::Object key;
    bool is_read = false;
    bool is_alias = false;  ///< the captured object keeps the tensor alive during the run
    int64_t writes = 0;
  };
  class Running;
  Entry() = default;
  void compile(const graph::Graph& graph);
  void bind(const Generated& generated, const Call& call, PyObject* on_death);
  execute::Slot input(size_t index, PyObject* object) const;
  execute::Slot list_input(size_t index, PyObject* list) const;
  execute::Slot cell(const Cell& cell, PyObject* object) const;
  void rebind(const Cell& cell, PyObject* object, PyObject* value) const;
  void commit(const execute::Program& program, std::span<const python::Object> captured,
              std::span<execute::Slot> rebound, std::span<const void* const> replaced) const;
  std::vector<const void*> offer_gradients(const execute::Program& program,
                                           std::span<const python::Object> captured,
                                           std::span<execute::Slot> rebound) const;
  /// Commits: changes the heap, gives the locks back, performs the effects, and builds the result.
  python::Object finish(std::span<const python::Object> captured, std::span<execute::Slot> results,
                        TakenLocks& locks) const;
  void finish_wrongly(std::span<const python::Object> captured,
                      std::span<const python::Object> values, std::span<execute::Slot> results,
                      Recipe::Made& made) const;
  int64_t deepest_call() const;
  void retire();
  void release();
  friend void retire_entry(Entry& entry);

  std::unique_ptr<Guards> guards_;
  std::shared_ptr<execute::Program> program_;
  std::shared_ptr<BackgroundWork>
      compiling_;  ///< the compilation of its kernels; null when it is done
  std::shared_ptr<Differentiable> differentiable_;
  std::vector<graph::Type::Kind> input_kinds_;
  std::vector<size_t> inputs_;      ///< positions among the captured objects
  std::vector<ElementPart> parts_;  ///< InputBinding::part, of inputs that are lists
  std::vector<Cell> cells_;         ///< as program_->cells()
  size_t result_count_ = 0;
  size_t exchanged_buckets_ = 0;
  std::vector<UsedReducer> reducers_;
  Recipe result_;
  std::vector<HeapWriter> writes_;
  std::vector<Recipe> effects_;
  std::vector<size_t> locks_;  ///< positions among the captured objects
  std::vector<LineMark> lines_;
  std::vector<GraphTest> tests_;
  std::string generated_text_;
  std::vector<graph::SourceSpan> generated_places_;
  Times times_;
  int64_t frames_of_call_ = 0;
  int running_ = 0;
  bool retired_ = false;
};

/// Milliseconds on a steady clock.
double now();

}  // namespace janus::speculate
