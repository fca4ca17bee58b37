// Errors of our own making.
//
// There are three kinds of error in this project. A user's error is eager's own: whatever goes
// wrong in a graph, the call is run imperatively and raises what eager raises. A fallback is not an
// error: it is a Reason (speculate/reason.h). What is left is a bug in torchjanus, and that is
// InternalError: it is thrown by TORCHJANUS_CHECK, caught at the border to Python, reported once,
// and the call runs eagerly.
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
