// Internal errors: what torchjanus itself did wrong.
//
// The project has three kinds of error. A user's error is eager's own: whatever fails in a graph,
// the call is repeated in Python and raises what eager raises. A fallback is no error but a Reason
// (speculate/reason.h). An InternalError is a bug of ours. TORCHJANUS_CHECK throws it; the border
// to Python catches it, reports it once, and the call runs eagerly.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace janus {

/// A violated invariant of torchjanus itself; never caused by a correct or a wrong user program.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The concatenation of its arguments as `operator<<` prints them: `cat("dim ", 3, " of ", n)`.
template <class... Args>
std::string cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return std::move(out).str();
}

[[noreturn]] void fail_check(const char* file, int line, const char* condition,
                             const std::string& message);

}  // namespace janus

/// Throws InternalError with the condition, the place and the message (made by `cat`) unless it
/// holds. Message style: `where: what was expected, what came`, lower case, no final period.
#define TORCHJANUS_CHECK(condition, ...)                                              \
  do {                                                                                \
    if (!(condition)) [[unlikely]]                                                    \
      ::janus::fail_check(__FILE__, __LINE__, #condition, ::janus::cat(__VA_ARGS__)); \
  } while (false)
