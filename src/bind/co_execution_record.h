// What co-execution of one function or loop did, for reports: counts, what looked where, and which
// lines' operators were noted.
//
// A look is rare, so each is told with its line. Finding the line of each noted call would slow
// the program down, so that is done in a sample of the iterations. Guarded by the GIL.
#pragma once

#include <Python.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "lazy/observer.h"
#include "lazy/session.h"

namespace janus::bind {

class CoExecutionRecord final : public lazy::Observer {
 public:
  using Line = std::pair<std::string, int>;  ///< of a file
  struct Looks {
    uint64_t count = 0;
    double milliseconds = 0;
  };

  void noted() override;
  void looked(std::string_view by, double seconds) override;

  /// The session has come from one state to the other.
  void add(const lazy::Session::Progress& before, const lazy::Session::Progress& after);
  /// A call or an iteration has ended, and that is pending.
  void end_iteration(const lazy::Session::Progress& now);

  uint64_t iterations = 0;  ///< that ran lazily, or calls
  uint64_t sampled = 0;     ///< of these: with lines
  lazy::Session::Progress sum;
  size_t pending = 0, pending_bytes = 0;    ///< when the last one ended
  lazy::FamilyGraph::Form trace_graph;      ///< the one that was made last
  std::map<std::string, uint64_t> missing;  ///< operators that no TraceGraph had, and how often
  std::map<Line, uint64_t> lines;           ///< operators noted by the line, or by what it calls
  std::map<std::tuple<std::string, int, std::string>, Looks> looks;  ///< file, line, by what
};

/// While it lives, the record is told what this thread's session does. Lines are told up to this
/// frame: in it, too, if `with_frame`.
class Recording {
 public:
  Recording(CoExecutionRecord& record, PyFrameObject* frame, bool with_frame);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  lazy::Observer* around_;
  PyFrameObject* frame_around_;
  bool with_frame_around_;
};

}  // namespace janus::bind
