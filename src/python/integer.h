// Python's ints as 64-bit integers.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <optional>

namespace janus::python {

/// The value of an int; nullopt if it does not fit.
inline std::optional<int64_t> int64_of(PyObject* integer) {
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(integer, &overflow);
  return overflow == 0 ? std::optional(number) : std::nullopt;
}

}  // namespace janus::python
