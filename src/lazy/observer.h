// Who wants to know what a session does, for reports.
//
// It is told on the session's own thread, without the session's lock: it may take Python's.
#pragma once

#include <string_view>

namespace janus::lazy {

class Observer {
 public:
  Observer() = default;
  virtual ~Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// A call has been noted. Only while wants_calls.
  virtual void noted() = 0;
  /// Something had to run, or to be waited for, for so long. `by`: an operator, or what else
  /// looked.
  virtual void looked(std::string_view by, double seconds) = 0;

  bool wants_calls = false;
};

}  // namespace janus::lazy
