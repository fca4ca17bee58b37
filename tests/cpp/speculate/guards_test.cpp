// Entry assumptions about plain objects: they hold, they say what was found instead, and they keep
// nothing of the program's alive.
#include "speculate/guards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedded/embedded_python.h"

namespace janus {
namespace {

using embedded::evaluate;
using embedded::run;
using python::Object;
using speculate::Assumption;
using speculate::Source;
using testing::HasSubstr;

/// Guards of a function of one argument, x.
class GuardsOfOneArgument : public testing::Test {
 protected:
  const Source* x() { return generated.sources->root(Source::Kind::argument, python::string("x")); }
  const Source* step(Source::Kind kind, const char* key) {
    return generated.sources->step(kind, x(), python::string(key));
  }
  void assume(Assumption::Kind kind, const Source* source, Object object = {}, int64_t number = 0) {
    Assumption assumption{};
    assumption.kind = kind;
    assumption.source = source;
    assumption.object = std::move(object);
    assumption.number = number;
    generated.assumptions.push_back(std::move(assumption));
  }

  speculate::Call call_of(const Object& argument) {
    held = argument.get();
    speculate::Call call;
    call.function = function.get();
    call.arguments = &held;
    call.argument_count = 1;
    return call;
  }

  /// Makes the guards for a call with this argument, for which they hold.
  void make_for(const Object& argument, std::vector<const Source*> captured = {}) {
    guards.emplace(generated, call_of(argument), captured);
    EXPECT_EQ(why_not(argument), "");
  }
  std::string why_not(const Object& argument) {
    std::vector<Object> found;
    const auto mismatch = guards->check(call_of(argument), generated.environment, found);
    if (mismatch) return mismatch->path + ": " + mismatch->reason.sentence();
    captured = std::move(found);
    return "";
  }

  static speculate::Generated empty() {
    speculate::Generated result{graph::Graph("f")};
    result.sources = std::make_shared<speculate::SourceTable>();
    return result;
  }

  speculate::Generated generated = empty();
  Object function = run("def f(x): pass\n", "f");
  PyObject* held = nullptr;
  std::optional<speculate::Guards> guards;
  std::vector<Object> captured;
};

TEST_F(GuardsOfOneArgument, AConstant) {
  assume(Assumption::Kind::equals, x(), evaluate("3"));
  make_for(evaluate("3"));
  EXPECT_THAT(why_not(evaluate("4")), HasSubstr("4"));
  EXPECT_NE(why_not(evaluate("3.0")), "");
  EXPECT_NE(why_not(evaluate("'3'")), "");
}

TEST_F(GuardsOfOneArgument, KeysAndLength) {
  assume(Assumption::Kind::keys, x(), evaluate("('a', 'b')"));
  assume(Assumption::Kind::length, step(Source::Kind::item, "a"), {}, 2);
  make_for(evaluate("{'a': [1, 2], 'b': 0}"));
  EXPECT_NE(why_not(evaluate("{'b': 0, 'a': [1, 2]}")), "");
  EXPECT_THAT(why_not(evaluate("{'a': [1], 'b': 0}")), HasSubstr("x['a']"));
}

TEST_F(GuardsOfOneArgument, APathThatEnds) {
  assume(Assumption::Kind::equals, step(Source::Kind::instance_value, "rate"), evaluate("0.5"));
  const std::string text = "class C: pass\nc = C()\n";
  make_for(run(text + "c.rate = 0.5\n", "c"));
  EXPECT_THAT(why_not(run(text, "c")), HasSubstr("x.rate"));
  EXPECT_THAT(why_not(run(text + "c.rate = 0.25\n", "c")), HasSubstr("0.25"));
}

TEST_F(GuardsOfOneArgument, WhatTheGraphNeedsIsCollected) {
  assume(Assumption::Kind::exact_type, x(),
         Object::borrow(reinterpret_cast<PyObject*>(&PyDict_Type)));
  make_for(evaluate("{'a': 1}"), {step(Source::Kind::item, "a")});
  EXPECT_EQ(why_not(evaluate("{'a': 7}")), "");
  ASSERT_EQ(captured.size(), 1u);
  EXPECT_EQ(python::to_integer(captured[0].get()), 7);
}

TEST_F(GuardsOfOneArgument, AnObjectThatDiedIsNeverFoundAgain) {
  const std::string text = "class C: pass\nc = C()\n";
  Object object = run(text, "c");
  assume(Assumption::Kind::identity, x(), object);
  make_for(object);
  generated.assumptions.clear();
  const Object weak = python::weak_reference(object.get());
  object = {};
  captured.clear();
  EXPECT_FALSE(python::referent(weak.get())) << "guards keep an object of the program's alive";
  std::vector<Object> found;
  const Object another = run(text, "c");
  const auto mismatch = guards->check(call_of(another), generated.environment, found);
  ASSERT_TRUE(mismatch);
  EXPECT_TRUE(mismatch->dead);
}

TEST_F(GuardsOfOneArgument, NoCodeOfTheProgramsRuns) {
  assume(Assumption::Kind::equals, x(), evaluate("3"));
  make_for(evaluate("3"));
  const std::string text =
      "class C(int):\n"
      "  def __eq__(self, other): raise SystemExit\n"
      "  __hash__ = __len__ = __getattr__ = __eq__\n"
      "c = C(3)\n";
  EXPECT_NE(why_not(run(text, "c")), "");
  EXPECT_EQ(PyErr_Occurred(), nullptr);
}

TEST_F(GuardsOfOneArgument, ASettingOfTorch) {
  make_for(evaluate("3"));
  speculate::Environment without_gradients = generated.environment;
  without_gradients.grad_enabled = false;
  std::vector<Object> found;
  const Object argument = evaluate("3");
  EXPECT_TRUE(guards->check(call_of(argument), without_gradients, found));
}

}  // namespace
}  // namespace janus
