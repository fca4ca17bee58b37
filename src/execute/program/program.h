// A compiled graph, ready to run: the border between everything that makes graphs and everything
// that runs them.
//
// Inputs and cells are given as Slots. A cell is a place outside the graph that it reads (`state`)
// and writes at the end (`commit`: the contents of a tensor; `rebind`: what the place refers to).
// Symbols of dimensions are bound by the first input or cell whose type has the bare symbol as a
// dimension, or by an i64 input named as the symbol.
//
// run() is all or nothing: guards come first; nothing outside the graph changes before the last
// guard has held, and after a failure everything (also the random generator) is as it was. Only
// where memory runs out after everything else that can fail, that is an error (`broken`).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/policy.h"
#include "execute/code/shown_result.h"
#include "execute/library/failure.h"
#include "execute/values/slot.h"
#include "graph/graph.h"

namespace janus::execute {

class Library;   // execute/library/library.h: the tensors and operators that torch/ provides
class Heap;      // execute/library/heap.h: Python's objects, likewise
class Findings;  // execute/library/findings.h: what of them may be otherwise later

class Program {
 public:
  virtual ~Program() = default;

  /// Compiles an optimised graph. `library` must outlive the program. `heap`: null if the graph has
  /// no operators on objects.
  static std::unique_ptr<Program> compile(graph::Graph graph, Library& library,
                                          std::shared_ptr<const Heap> heap = nullptr,
                                          std::span<const ShownResult> shown = {});

  /// Names of the cells in the order in which run() takes them: those read or written, each once.
  virtual std::span<const std::string> cells() const = 0;
  /// Whether only native kernels touch what cell number `cell` holds: nobody counts references to
  /// it then, and its slot may be an alias.
  virtual bool is_touched_by_kernels_only(size_t cell) const = 0;
  /// Indices into cells() of the places that `rebind` nodes set, in program order.
  virtual std::span<const size_t> rebound_cells() const = 0;

  /// Runs once. `inputs` as graph.inputs(), `cells` as cells() (cells that are only rebound may be
  /// empty). On success fills `results` (as graph.results()) and `rebound` (as rebound_cells()).
  /// The tensors that cells which are only rebound refer to may be given in `rebound`: where nobody
  /// else can see such a tensor, it may come to be the new value. `findings`: where not null, what
  /// the run finds is noted there and closed; if they are closed already, it reads what they have.
  /// Re-entrant and thread-safe. Tensors in `results` and `rebound` are owned by the caller;
  /// nothing in the program refers to their memory any more.
  virtual std::optional<Failure> run(std::span<const Slot> inputs, std::span<const Slot> cells,
                                     std::span<Slot> results, std::span<Slot> rebound,
                                     int64_t deepest_call = policy::kDeepestCall,
                                     Findings* findings = nullptr) = 0;

  /// When instructions ran: what calls take beyond that is the price of entering and leaving.
  struct Timing {
    double seconds = 0;  ///< of all runs so far, but for those before a plan
    double started = 0;  ///< the last one, on the steady clock
  };
  virtual Timing timing() const = 0;

  virtual const graph::Graph& graph() const = 0;
  /// Instructions one a line, with the memory plan: for `explain` and debugging.
  virtual std::string describe() const = 0;
};

}  // namespace janus::execute
