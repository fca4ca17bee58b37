#include "speculate/stages.h"

#include <utility>

namespace janus::speculate {
namespace {

/// Never destroyed: at the process's end there may be no interpreter any more.
python::Object& listener() {
  static auto* const callable = new python::Object;
  return *callable;
}

/// Ctrl-C that arrives in the listener is the program's: it is raised where Python runs next.
void report_error(PyObject* callable) {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
    PyErr_Clear();
    PyErr_SetInterrupt();
  } else {
    PyErr_WriteUnraisable(callable);
  }
}

}  // namespace

void tell_stage(const char* stage, const std::string& name, const std::string& file, int line) {
  if (!listener()) return;
  const python::ErrorScope scope;
  const python::Object callable = listener();  // the call may replace it
  try {
    python::call(callable.get(), {python::string(stage).get(), python::string(name).get(),
                                  python::string(file).get(), python::integer(line).get()});
  } catch (const python::ErrorSet&) {
    report_error(callable.get());
  }
}

void listen_to_stages(python::Object callable) { listener() = std::move(callable); }

}  // namespace janus::speculate
