// Exceptions that the program itself handles. Where one is raised in an expression, `Raised` is
// thrown up to the statement around it, which ends by Completion::raise_; a side of a branch that
// ended so stays open (branches.h) until a handler is come to (handlers.cpp). Out of a function it
// goes as an Outcome. What no handler waits for is eager's to raise: the run is given up.
#pragma once

#include <string>

#include "frontend/core/exception_values.h"
#include "frontend/core/frames.h"

namespace janus::frontend {

class ValueMaker;

/// While it lives, exceptions that are raised in what the frame at hand does are handled.
class Awaiting {
 public:
  enum class What {
    exceptions,  ///< of that class
    nothing      ///< what is done would have to be undone, or to know of them
  };
  Awaiting(Frames& frames, What what, PyObject* type = PyExc_BaseException);
  ~Awaiting() { frame_.awaiting.pop_back(); }
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;

 private:
  Frame& frame_;
};

/// Whether somebody handles an exception that is raised here, and only sides of branches are left
/// on the way there. Null: of any class.
bool is_awaited(const Frames& frames, PyObject* type = nullptr);

/// The program raises that here: gives up where nobody handles it. What the exception holds is not
/// known.
[[noreturn]] void raise(const Frames& frames, PyObject* type, std::string details);

/// BaseException.__init__(exception, *arguments)
Value initialise_exception(ValueMaker& maker, const CallArguments& arguments);

}  // namespace janus::frontend
