// The cut copy of a function that can't be converted as a whole: its body is runs of statements
// that are regions (torchjanus/regions.py).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "python/object.h"
#include "speculate/reason.h"

namespace janus::bind {

struct CutFunction {
  python::Object original, code;        ///< the plain function, and its code then
  python::Object function;              ///< with the parameters of the plain function
  std::vector<python::Object> regions;  ///< in its body
  bool is_forward = false;  ///< a module's, whose call was converted: valid without hooks only

  /// The copy, with the defaults that the plain function has by now; null: that runs other code.
  PyObject* current() const;
};

/// The cut copy of the plain function in `wrapped` (of a module's call: of its forward). nullopt if
/// there is no source, or nothing to cut in it. Never raises.
std::optional<CutFunction> cut_function(PyObject* wrapped, PyObject* function);

struct Outlined {
  std::vector<python::Object> regions;  ///< none: nothing was replaced
  std::string why_not;                  ///< "" if there are regions
};

/// Replaces the code of a plain function, for all callers, by that of a copy whose body is a region
/// or several. `may_be_whole`: even if it is one region that can't be cut. Nothing is replaced if
/// the function is converted itself, has no source, or has nothing to convert. Never raises.
Outlined outline(PyObject* function, bool may_be_whole);

/// Outlines the user's function in which a caller was refused. Returns its regions; none if there
/// is no such function, or nothing to cut in it. Never raises.
std::vector<python::Object> cut_callee(const speculate::Reason& reason);

/// Converts the module that a caller was refused around, as torchjanus.function does. `on_account`:
/// nobody has asked for it. Nothing is done if there is none, or it is converted already. Never
/// raises.
void convert_module_within(const speculate::Reason& reason, bool on_account);

/// Whether the code makes a generator or coroutine, whose body is never a region.
bool makes_generator(PyObject* code);

/// Whether calling the module only calls that function as its forward: it has no hooks, all modules
/// together have none, nothing is traced, and the instance has no `forward` attribute.
bool calls_only(const python::Object& forward, PyObject* module);

/// Whether the callable is a module's call: the bound method Module._call_impl.
bool is_module_call(PyObject* wrapped);

}  // namespace janus::bind
