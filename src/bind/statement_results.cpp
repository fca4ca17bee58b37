#include "bind/statement_results.h"

#include "base/check.h"
#include "speculate/recipe.h"

namespace janus::bind {

StatementResults unpack_results(PyObject* result, const std::vector<size_t>& numbers,
                                size_t count) {
  constexpr Py_ssize_t kBeforeVariables = 2;
  TORCHJANUS_CHECK(
      PyTuple_CheckExact(result) &&
          PyTuple_GET_SIZE(result) == static_cast<Py_ssize_t>(numbers.size()) + kBeforeVariables,
      "region: the graph's result has the wrong form");
  StatementResults given;
  given.end = static_cast<End>(python::to_integer(PyTuple_GET_ITEM(result, 0)));
  given.returned = python::Object::borrow(PyTuple_GET_ITEM(result, 1));
  given.values.resize(count);
  given.deleted.resize(count, false);
  for (size_t i = 0; i < numbers.size(); ++i) {
    PyObject* value = PyTuple_GET_ITEM(result, static_cast<Py_ssize_t>(i) + kBeforeVariables);
    if (value == speculate::untouched_marker()) continue;
    if (value == speculate::unbound_marker())
      given.deleted[numbers[i]] = true;
    else
      given.values[numbers[i]] = python::Object::borrow(value);
  }
  return given;
}

void write_globals(const StatementResults& given, const std::vector<python::Object>& names,
                   PyObject* globals) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (given.values[i])
      python::check_status(PyDict_SetItem(globals, names[i].get(), given.values[i].get()));
    else if (given.deleted[i] && PyDict_Contains(globals, names[i].get()) == 1)
      python::check_status(PyDict_DelItem(globals, names[i].get()));
  }
}

}  // namespace janus::bind
