// The state of a Region, which its type (bind/region.cpp) and its runs (bind/region_run.h) share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind/co_execution_scope.h"
#include "bind/cuts.h"
#include "bind/statement_results.h"
#include "python/object.h"
#include "speculate/dispatch.h"
#include "syntax/tree.h"

namespace janus::bind {

/// The results of enter() and ran().
enum class Mode : long { plain = 0, ran = 1, profile = 2, cut = 3 };

struct RegionState;

/// A stretch of time on this thread. It excludes the stretches within it that report their own.
class Stretch {
 public:
  /// Ends the stretch and adds it to `spent`.
  void end_as(Spent& spent) const {
    const double took = speculate::now() - start_;
    ++spent.runs;
    spent.milliseconds += took - (told_elsewhere - before_);
  }
  /// Excludes this stretch from the one around it.
  void leave_out() const { told_elsewhere = before_ + speculate::now() - start_; }

 private:
  inline static thread_local double told_elsewhere = 0;  ///< milliseconds
  double start_ = speculate::now(), before_ = told_elsewhere;
};

/// One run of cut statements.
struct Activation {
  PyFrameObject* frame = nullptr;     ///< compared, never followed
  size_t done = 0;                    ///< statements before this one have run in a graph
  StatementResults given;             ///< of the graph that ran last
  std::shared_ptr<Segment> profiled;  ///< the segment that is profiled
  double profile_start = 0;
  Stretch whole;
  size_t resting = 0;  ///< bodies in statements before this one stay in Python in this run
  RegionState* around_resting = nullptr;  ///< what `resting_parts` was before the statement
  std::optional<size_t> in_python;        ///< the statement that Python is running
  Stretch statement;                      ///< that statement's
  uint64_t news_before_statement = 0;
  /// Whether it is timed: it is not part of a cut region that runs already. Then the other members
  /// say what was timed before it.
  bool is_timed = false, around_without_graphs = false;
  RegionState* around = nullptr;
  uint64_t news_before = 0, waits_before = 0;
};

/// A profile run of the whole, in a frame.
struct OpenProfile {
  PyFrameObject* frame;
  double start;  ///< milliseconds
};

/// The state of one thread.
struct Place {
  StatementResults given;
  std::vector<OpenProfile> profiles;  ///< the open profile runs of the whole
  std::vector<Activation> activations;
};

struct RegionState {
  RegionState(std::string name, std::string file, int line, speculate::DispatchOptions options)
      : dispatcher(std::move(name), std::move(file), line, options) {}
  speculate::Dispatcher dispatcher;
  python::Object module;
  std::shared_ptr<const syntax::Tree> tree;
  bool at_module_level = false;
  bool was_entered = false;
  bool is_plain = false;  ///< cut, and nothing in it runs or will run as a graph
  /// Of one that is plain for a time: the run in Python before which it is cut again; 0: for good.
  uint64_t rests_until = 0;
  uint32_t cut_runs = 0;
  /// Measures the graphs of its segments and parts against Python.
  std::optional<speculate::AbMeasurement> measurement{std::in_place};
  uint64_t runs_with_news = 0;
  std::vector<python::Object> assigned;  ///< names of the variables that the statements bind
  std::vector<size_t> all;               ///< their numbers
  Spent as_graph;                        ///< a part's, from entry to exit
  std::unique_ptr<Cuts> cuts;
  std::vector<python::Object> parts;  ///< regions of the bodies of its statements
  std::map<unsigned long, Place> places;
  /// Set if an iteration of the scope, or its only one, begins with these statements.
  std::shared_ptr<CoExecutionScope> scope;
  std::vector<RegionState*> of_iteration;  ///< then: this region, and the others of the iteration

  Place& here() { return places[PyThread_get_thread_ident()]; }
};

struct RegionObject {
  PyObject_HEAD RegionState* state;
  PyObject* weak_references;
};

inline RegionState& state_of(PyObject* object) {
  return *reinterpret_cast<RegionObject*>(object)->state;
}

}  // namespace janus::bind
