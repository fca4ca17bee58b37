// Starts the interpreter of the build's Python before the tests. It is left running at the end:
// static objects of the rooms hold Python's.
#include "embedded/embedded_python.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace janus::embedded {

using python::Object;

namespace {

Object fresh_globals() {
  Object globals = python::check(PyDict_New());
  python::check_status(PyDict_SetItemString(globals.get(), "__name__", python::string("m").get()));
  return globals;
}

Object evaluated(const Object& code, const Object& globals) {
  return python::check(PyEval_EvalCode(code.get(), globals.get(), globals.get()));
}

/// linecache.cache[file], as for a file that was read.
void show_source(const std::string& statements, const std::string& file) {
  const Object lines =
      python::call_method(python::string(statements).get(), "splitlines", {Py_True});
  const Object entry = python::tuple({python::integer(static_cast<int64_t>(statements.size())),
                                      python::none(), lines, python::string(file)});
  const Object cache = python::import_attribute("linecache", "cache");
  python::check_status(PyObject_SetItem(cache.get(), python::string(file).get(), entry.get()));
}

/// Python as it is started from its own executable, without the user's settings.
void start_python() {
  PyConfig config;
  PyConfig_InitIsolatedConfig(&config);
  const PyStatus named =
      PyConfig_SetBytesString(&config, &config.executable, TORCHJANUS_PYTHON_EXECUTABLE);
  const PyStatus started = PyStatus_Exception(named) ? named : Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(started)) Py_ExitStatusException(started);
}

}  // namespace

Object evaluate(const std::string& expression) {
  const Object code = python::check(Py_CompileString(expression.c_str(), "<test>", Py_eval_input));
  return evaluated(code, fresh_globals());
}

Object run(const std::string& statements, const std::string& name) {
  static int count = 0;
  const std::string file = "<test " + std::to_string(++count) + ">";
  show_source(statements, file);
  const Object code =
      python::check(Py_CompileString(statements.c_str(), file.c_str(), Py_file_input));
  const Object globals = fresh_globals();
  evaluated(code, globals);
  return python::dict_item(globals.get(), name.c_str());
}

Object parse(const std::string& text) {
  return python::call(python::import_attribute("ast", "parse").get(), {python::string(text).get()});
}

std::string dump(PyObject* node) {
  return python::to_string(
      python::call(python::import_attribute("ast", "dump").get(), {node}).get());
}

}  // namespace janus::embedded

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  janus::embedded::start_python();
  std::_Exit(RUN_ALL_TESTS());
}
