// A function that can't be converted as a whole, as a copy of it whose body is cut: runs of its
// statements that are regions (torchjanus/regions.py).
#pragma once

#include <optional>
#include <vector>

#include "python/object.h"
#include "speculate/reason.h"

namespace janus::bind {

struct CutFunction {
  python::Object function;              ///< takes what the plain function takes
  std::vector<python::Object> regions;  ///< in its body
  bool is_forward = false;  ///< of a module whose call was converted: only valid without hooks
};

/// The cut copy of the plain function in `wrapped` (for a module's call: of its forward). Nothing
/// where there is no source, or nothing to be cut in it. Never raises.
std::optional<CutFunction> cut_function(PyObject* wrapped, PyObject* function);

/// Where a function of the program's own, which what is converted calls, was refused: from now on
/// it runs as a cut copy of itself, whoever calls it. Its regions; nothing if there is no such
/// function, it is converted itself, or there is nothing to be cut in it. Never raises.
std::vector<python::Object> cut_callee(const speculate::Reason& reason);

/// Whether calling the module is just calling its forward: no hooks of its own or of all modules,
/// no tracing, no forward of the instance's own.
bool calls_only_forward(PyObject* module);

/// Whether a callable is the call of a module: the bound method Module._call_impl.
bool is_module_call(PyObject* wrapped);

}  // namespace janus::bind
