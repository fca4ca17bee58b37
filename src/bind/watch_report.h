// What the watch for entry points has seen, for reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace janus::bind {

struct WatchReport {
  /// A function that was called again and again, and what became of it.
  struct Function {
    std::string name, file, module;
    int line = 0;
    std::string why_not;  ///< "": its code was replaced
    bool operator==(const Function&) const = default;
  };

  double seconds = 0;
  int64_t windows = 0;
  int64_t events = 0;        ///< calls and returns in windows
  int64_t tensor_calls = 0;  ///< of torch's C functions, in windows
  int64_t blocked = 0;       ///< times that a debugger, a profiler or coverage was in the way
  int64_t over_budget = 0;   ///< windows of which no function was tried: others had cost too much
  std::vector<Function> functions;
  std::string error;  ///< of ours, which ended the watch
};

}  // namespace janus::bind
