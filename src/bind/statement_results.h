// The results of a graph of statements: how they ended, and the new values of their variables.
#pragma once

#include <cstdint>
#include <vector>

#include "python/object.h"

namespace janus::bind {

/// How statements ended; the numbers are those of Generated::result.
enum class End : int64_t { fell_through = 0, continue_ = 1, break_ = 2, return_ = 3 };

/// Variables are numbered as in the whole run of statements; the graph may be a part of it.
struct StatementResults {
  End end = End::fell_through;
  python::Object returned;
  std::vector<python::Object> values;  ///< null: the graph did not set it
  std::vector<bool> deleted;

  void clear() { *this = {}; }
};

/// Unpacks the result of a graph that sets the variables `numbers`, of `count` in all.
StatementResults unpack_results(PyObject* result, const std::vector<size_t>& numbers, size_t count);

/// Sets and deletes globals: the variables at module level. `names`: those of all variables.
void write_globals(const StatementResults& given, const std::vector<python::Object>& names,
                   PyObject* globals);

}  // namespace janus::bind
