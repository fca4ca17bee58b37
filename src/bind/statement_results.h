// What a graph of statements gave: how they ended, and what their variables are now.
#pragma once

#include <cstdint>
#include <vector>

#include "python/object.h"

namespace janus::bind {

/// How statements end; the numbers are Generated::result's.
enum class End : int64_t { fell_through = 0, continue_ = 1, break_ = 2, return_ = 3 };

/// Variables have the numbers of the whole run of statements, of which a graph may be a part.
struct StatementResults {
  End end = End::fell_through;
  python::Object returned;
  std::vector<python::Object> values;  ///< null: the graph did not set it
  std::vector<bool> deleted;

  void clear() { *this = {}; }
};

/// Takes the result of a graph apart. Its variables are `numbers`, of `count` in all.
StatementResults unpack_results(PyObject* result, const std::vector<size_t>& numbers, size_t count);

/// At module level variables are globals: sets and deletes them. `names`: of all variables.
void write_globals(const StatementResults& given, const std::vector<python::Object>& names, PyObject* globals);

}  // namespace janus::bind
