#include "frontend/stop.h"

#include "frontend/branches.h"

namespace janus::frontend {

namespace {

const char* name_of(PyObject* exception) {
  return reinterpret_cast<PyTypeObject*>(exception)->tp_name;
}

}  // namespace

Value stop_by(PyObject* exception) { return std::make_shared<Native>(name_of(exception), nullptr); }

bool is_stop_by(const Value& stop, PyObject* exception) {
  const auto* native = as<Native>(stop);
  return native != nullptr && PyExceptionClass_Check(exception) &&
         native->name == name_of(exception);
}

bool is_awaited(const Frame& frame, size_t open_scopes, PyObject* exception) {
  return is_stop_by(frame.at_stop, exception) && frame.open_scopes == open_scopes &&
         frame.forks.empty();
}

void raise(Interpreter& interpreter, PyObject* exception, std::string details) {
  if (is_awaited(interpreter.frame(), interpreter.open_scopes(), exception)) throw Stopped();
  interpreter.refuse(ReasonCode::would_raise, std::move(details));
}

}  // namespace janus::frontend
