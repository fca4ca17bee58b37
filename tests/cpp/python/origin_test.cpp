// Who made what stands under a library's name.
#include "python/origin.h"

#include <gtest/gtest.h>

#include "embedded/embedded_python.h"
#include "python/classes.h"
#include "python/context_variable.h"

namespace janus {
namespace {

using embedded::evaluate;
using embedded::run;
using python::import_attribute;
using python::is_made_by;
using python::Object;

TEST(Origin, ALibrarysOwnFunctionsLieInItsFolder) {
  EXPECT_TRUE(is_made_by(import_attribute("json", "dumps").get(), "json"));
  EXPECT_TRUE(is_made_by(import_attribute("contextlib", "contextmanager").get(), "contextlib"));
  EXPECT_FALSE(is_made_by(run("def dumps(x): pass\n", "dumps").get(), "json"));
}

TEST(Origin, ADecoratorOfTheProgramsIsNotTheLibrarys) {
  const std::string wrapped =
      "import functools, json\n"
      "@functools.wraps(json.dumps)\n"
      "def dumps(*arguments): return json.dumps(*arguments)\n";
  EXPECT_FALSE(is_made_by(run(wrapped, "dumps").get(), "json"));
}

TEST(Origin, FunctionsInCAreTakenForTheLibrarys) {
  EXPECT_TRUE(is_made_by(import_attribute("math", "sqrt").get(), "math"));
  EXPECT_TRUE(is_made_by(evaluate("len").get(), "builtins"));
}

TEST(Origin, PropertiesAndMethodsAreAsTheirFunctions) {
  const std::string text =
      "class C:\n"
      "  @property\n"
      "  def p(self): return 1\n"
      "p, s = vars(C)['p'], staticmethod(len)\n";
  EXPECT_FALSE(is_made_by(run(text, "p").get(), "json"));
  EXPECT_TRUE(is_made_by(run(text, "s").get(), "json"));
}

TEST(Origin, ClassesByTheirModule) {
  EXPECT_TRUE(is_made_by(import_attribute("json", "JSONDecoder").get(), "json"));
  EXPECT_FALSE(is_made_by(run("class JSONDecoder: pass\n", "JSONDecoder").get(), "json"));
}

TEST(Classes, WhatIsMadeByAStatementAndWhatStandsAbove) {
  const Object own = run("class Own(dict): pass\n", "Own");
  auto* const type = reinterpret_cast<PyTypeObject*>(own.get());
  EXPECT_TRUE(python::is_made_by_statement(type));
  EXPECT_FALSE(python::is_made_by_statement(&PyDict_Type));
  EXPECT_EQ(python::class_in_c(type), &PyDict_Type);
}

TEST(ContextVariables, WhatIsHeldOrTheDefaultOrNothing) {
  const std::string text =
      "from contextvars import ContextVar\n"
      "empty, with_default, held = ContextVar('a'), ContextVar('b', default=2), ContextVar('c')\n"
      "held.set(3)\n";
  EXPECT_FALSE(python::held_by_context_variable(run(text, "empty").get()));
  EXPECT_EQ(PyErr_Occurred(), nullptr);
  EXPECT_EQ(
      python::to_integer(python::held_by_context_variable(run(text, "with_default").get()).get()),
      2);
  EXPECT_EQ(python::to_integer(python::held_by_context_variable(run(text, "held").get()).get()), 3);
}

}  // namespace
}  // namespace janus
