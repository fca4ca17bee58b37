#include "speculate/active_tracer.h"

#include "python/version.h"
#include "speculate/replaced_kernels.h"
#include "speculate/tensor_class.h"

namespace janus::speculate {
namespace {

/// Whether a debugger or coverage tool is registered with sys.monitoring.
bool is_monitored() {
  static PyObject* get_tool = [] {
    PyObject* monitoring = PySys_GetObject("monitoring");
    PyObject* found =
        monitoring == nullptr ? nullptr : PyObject_GetAttrString(monitoring, "get_tool");
    if (found == nullptr) PyErr_Clear();
    return found;
  }();
  if (get_tool == nullptr) return false;
  constexpr long kDebugger = 0, kCoverage = 1;
  for (const long tool : {kDebugger, kCoverage}) {
    const python::Object number = python::Object::steal(PyLong_FromLong(tool));
    const python::Object name = python::Object::steal(PyObject_CallOneArg(get_tool, number.get()));
    if (!name) PyErr_Clear();
    if (name && !name.is(Py_None)) return true;
  }
  return false;
}

}  // namespace

const char* active_tracer(const Environment& environment) {
  if (environment.mode_active) return "a torch mode";
  if (environment.anomaly_mode) return "autograd's anomaly detection";
  if (PyThreadState_Get()->c_tracefunc != nullptr) return "a trace function";
  if (python::kHasMonitoring && is_monitored()) return "a debugger or coverage tool";
  if (const char* kernel = replaced_kernel()) return kernel;
  return changed_tensor_class();
}

}  // namespace janus::speculate
