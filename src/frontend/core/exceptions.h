// Exceptions that the program itself handles. Where one is raised in an expression, `Raised` is
// thrown up to the statement around it, which ends by Completion::raise_; a side of a branch that
// ended so stays open (branches.h) until a handler is come to (handlers.cpp). Out of a function it
// goes as an Outcome. What no handler waits for is eager's to raise: the run is given up.
#pragma once

#include <functional>
#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// An expression raises.
struct Raised {
  Value exception;
};

/// While it lives, exceptions that are raised in what the frame at hand does are handled.
class Awaiting {
 public:
  enum class What {
    exceptions,  ///< of that class
    nothing      ///< what is done would have to be undone, or to know of them
  };
  Awaiting(Interpreter& interpreter, What what, PyObject* type = PyExc_BaseException);
  ~Awaiting() { frame_.awaiting.pop_back(); }
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;

 private:
  Frame& frame_;
};

/// Whether somebody handles an exception that is raised here, and only sides of branches are left
/// on the way there. Null: of any class.
bool is_awaited(const Interpreter& interpreter, PyObject* type = nullptr);

/// The program raises that here: gives up where nobody handles it. What the exception holds is not
/// known.
[[noreturn]] void raise(Interpreter& interpreter, PyObject* type, std::string details);

/// One that Python's own code has raised.
Value exception_of(const python::Object& type, const python::Object& exception);
bool is_exception(const Value& value);
/// The class of one.
PyObject* class_of_exception(const Value& exception);

/// `exception.args`; null: not known.
Value arguments_of_exception(const Instance& exception);
void set_exception_arguments(Instance& exception, const Value& arguments);

/// BaseException.__init__(exception, *arguments)
Value initialise_exception(Interpreter& interpreter, const CallArguments& arguments);

}  // namespace janus::frontend
