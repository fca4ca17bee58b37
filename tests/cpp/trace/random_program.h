// Random structured programs that are run operator by operator, as Python does: branches, nested
// loops with `break` and `continue`, layers with weights of their own, feeds, numbers, cells and
// looks at values. Each run decides anew and gives a trace with the values that eager computes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace janus::trace {

/// One iteration of a program.
struct ProgramRun {
  Trace trace;
  std::vector<std::vector<std::vector<double>>> results;  ///< by event and result
  std::vector<std::vector<double>> feeds;                 ///< by number
  std::vector<double> numbers;                            ///< in the order of their events
  std::map<CellId, std::vector<double>> written;          ///< what cells hold afterwards
  size_t size = 0, cell_size = 0;                         ///< of feeds, and of cells
};

class RandomProgram {
 public:
  struct Statement;
  using Statements = std::vector<Statement>;

  /// Gives a number below its argument.
  using Choice = std::function<size_t(size_t)>;

  /// `names` gets the operators.
  RandomProgram(unsigned seed, Names& names);
  /// The program, and then the runs, that these choices make.
  RandomProgram(Choice choice, Names& names);
  ~RandomProgram();

  /// Runs it with decisions that are drawn anew.
  ProgramRun run();
  std::string text() const;

  /// What cells hold before an iteration; they have `size` elements.
  static std::vector<double> cell_contents(CellId cell, size_t size);
  /// What the operator "test::mix" computes, of two elements.
  static double mix(double a, double b) { return 0.5 * a - 0.25 * b + 0.125; }

 private:
  friend class ProgramRunner;
  size_t draw(size_t count) { return choice_(count); }
  Statements make(size_t count, int depth, bool in_loop);
  Statement make_statement(int depth, bool in_loop);
  Statement make_call();

  Choice choice_;
  Names& names_;
  Location next_location_ = 1;
  bool varies_sizes_ = false;
  std::unique_ptr<Statements> body_;
};

}  // namespace janus::trace
