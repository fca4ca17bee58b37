// Whoever wants to know when the kernels of a run begin and end: torch's profiler, which the room
// `torch` stands for. It sees operators by itself.
#pragma once

#include <string>

namespace janus::execute {

class KernelWatcher {
 public:
  virtual ~KernelWatcher() = default;
  virtual void begin(const std::string& name) = 0;
  virtual void end() = 0;
};

/// Of the runs on this thread; null: nobody watches.
inline thread_local KernelWatcher* kernel_watcher = nullptr;

}  // namespace janus::execute
