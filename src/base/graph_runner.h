// The process's thread that runs graphs while Python goes on.
//
// It runs one graph at a time, in the order in which they were given. A graph should not ask for
// Python's lock: whoever waits gives that up, but a fork, which holds it, can't. A fork waits for
// the end of a run, and the child gets a thread of its own for what has not begun. Where no thread
// can be started, a run is over when start() returns.
#pragma once

#include <functional>
#include <memory>

namespace janus {

class GraphRunner {
 public:
  class Run {
   public:
    virtual ~Run() = default;
    virtual bool is_over() const = 0;
    /// Until it is over. Throws what the work has thrown.
    virtual void wait() = 0;
    /// That it took, once it is over.
    virtual double seconds() const = 0;
  };

  /// Queues the work. It has the caller's floating-point mode, and one processor less: Python needs
  /// one.
  static std::shared_ptr<Run> start(std::function<void()> work);
  /// Ends the thread after its run, for good: the process ends.
  static void stop();
};

}  // namespace janus
