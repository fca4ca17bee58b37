// One graph in the cache: guards, program, and how Python's objects go in and come out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/background.h"
#include "execute/program/program.h"
#include "speculate/differentiable.h"
#include "speculate/generated.h"
#include "speculate/guards.h"
#include "speculate/heap_write.h"
#include "speculate/recipe.h"

namespace janus::speculate {

/// The tensors and operators that programs use; torch/ provides them. Set once at start-up.
void set_library(execute::Library* library);
execute::Library* library();

class Entry {
 public:
  struct Times {
    double optimise = 0, compile = 0;  ///< milliseconds
  };

  /// Optimises the graph and compiles it, its kernels in the background. Throws InternalError (or
  /// what the passes throw).
  static std::shared_ptr<Entry> make(Generated generated, const Call& call);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  const Guards& guards() const { return *guards_; }
  /// Something that the graph must find is gone: it can never be entered again.
  bool retired() const { return retired_; }
  /// The processor's milliseconds that compiling in the background took; nothing: it goes on, and a
  /// run would wait for it. Throws what was thrown there.
  std::optional<double> compiled_in_background();

  /// A run frees what its writes replace behind all that it shows. Why Python has to run the call,
  /// where the program sees that.
  std::optional<Reason> finalizer_in_the_way(std::span<const python::Object> captured) const;

  /// Runs the graph for what the guards captured. Nothing: `result` is set, or null with a Python
  /// exception set that an effect of the program raised. `committed` is set before anything becomes
  /// visible: what is thrown after that must not lead to an imperative run.
  std::optional<execute::Failure> run(std::vector<python::Object> captured, python::Object& result,
                                      bool& committed);

  /// As generated, before the passes; and as compiled.
  const std::string& generated_text() const { return generated_text_; }
  std::string optimised_text() const;
  std::string program_text() const;
  execute::Program::Timing timing() const;
  const std::vector<LineMark>& lines() const { return lines_; }
  const std::vector<GraphTest>& tests() const { return tests_; }
  const Times& times() const { return times_; }

  uint64_t hits = 0, aborts = 0;
  uint64_t misses = 0;
  int outgrown = 0;  ///< how often a run met what the profile had not seen
  /// Outcomes it was generated for, beside those of the profile.
  std::vector<ChosenOutcome> chosen;

 private:
  struct Cell {
    CellBinding::Kind kind = CellBinding::Kind::tensor;
    size_t captured = 0;
    python::Object key;
    bool is_read = false;
    bool is_alias = false;  ///< the captured object keeps the tensor alive, for a run's purposes
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
  /// The result, once the heap is changed and the effects are done.
  python::Object finish(std::span<const python::Object> captured,
                        std::span<execute::Slot> results) const;
  void finish_wrongly(std::span<const python::Object> captured,
                      std::span<const python::Object> values, std::span<execute::Slot> results,
                      Recipe::Made& made) const;
  int64_t deepest_call() const;
  void retire();
  void release();
  friend void retire_entry(Entry& entry);

  std::unique_ptr<Guards> guards_;
  std::shared_ptr<execute::Program> program_;
  std::shared_ptr<BackgroundWork> compiling_;  ///< of its kernels; null: nothing is
  std::shared_ptr<Differentiable> differentiable_;
  std::vector<graph::Type::Kind> input_kinds_;
  std::vector<size_t> inputs_;      ///< positions among the captured objects
  std::vector<ElementPart> parts_;  ///< of lists: InputBinding::part
  std::vector<Cell> cells_;         ///< as program_->cells()
  size_t result_count_ = 0;
  Recipe result_;
  std::vector<HeapWriter> writes_;
  std::vector<Recipe> effects_;
  std::vector<LineMark> lines_;
  std::vector<GraphTest> tests_;
  std::string generated_text_;
  Times times_;
  int64_t frames_of_call_ = 0;
  int running_ = 0;
  bool retired_ = false;
};

/// Milliseconds on a steady clock.
double now();

}  // namespace janus::speculate
