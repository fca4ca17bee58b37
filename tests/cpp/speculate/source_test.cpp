// Paths from a call to objects: interned, and as the user would write them. Constants as text.
#include "speculate/source.h"

#include <gtest/gtest.h>

#include "embedded/embedded_python.h"
#include "speculate/describe.h"

namespace janus {
namespace {

using embedded::evaluate;
using embedded::run;
using python::Object;
using speculate::Source;
using speculate::SourceTable;
using Kind = Source::Kind;

TEST(Sources, EqualPathsAreOneSource) {
  SourceTable table;
  const Source* self = table.root(Kind::argument, python::string("self"));
  EXPECT_EQ(table.root(Kind::argument), self) << "an argument's name is only for people";
  const Source* weight = table.step(Kind::attribute, self, evaluate("'wei' + 'ght'"));
  EXPECT_EQ(table.step(Kind::attribute, self, python::string("weight")), weight);
  EXPECT_NE(table.step(Kind::instance_value, self, python::string("weight")), weight);
  EXPECT_NE(table.root(Kind::argument, {}, 1), self);
  EXPECT_EQ(table.all().size(), 4u);
}

TEST(Sources, KeysThatAreEqualForPythonButNotForGoodAreApart) {
  SourceTable table;
  const Source* x = table.root(Kind::variable, python::string("x"));
  EXPECT_NE(table.step(Kind::item, x, evaluate("1")), table.step(Kind::item, x, evaluate("1.0")));
  EXPECT_NE(table.step(Kind::item, x, evaluate("1")), table.step(Kind::item, x, evaluate("True")));
}

TEST(Sources, AreDescribedAsTheUserWritesThem) {
  SourceTable table;
  const Source* self = table.root(Kind::argument, python::string("self"));
  const Source* layers = table.step(Kind::instance_value, self, python::string("layers"));
  const Source* first = table.step(Kind::index, layers, {}, 0);
  EXPECT_EQ(first->describe(), "self.layers[0]");
  EXPECT_EQ(table.step(Kind::item, layers, python::string("a"))->describe(), "self.layers['a']");
  EXPECT_EQ(table.step(Kind::length, layers)->describe(), "len(self.layers)");
  EXPECT_EQ(table.step(Kind::grad, first)->describe(), "self.layers[0].grad");
  EXPECT_EQ(table.step(Kind::type, self)->describe(), "type(self)");
  const Source* function = table.root(Kind::function);
  EXPECT_EQ(table.step(Kind::global, function, python::string("F"))->describe(), "F");
  EXPECT_EQ(table.step(Kind::default_value, function, {}, 1)->describe(),
            "the function.__defaults__[1]");
}

TEST(Sources, RootsAndStepsAreNotMixedUp) {
  SourceTable table;
  EXPECT_ANY_THROW(table.root(Kind::attribute));
  EXPECT_ANY_THROW(table.step(Kind::attribute, nullptr));
}

TEST(Constants, AreEqualForGood) {
  const auto equal = [](const char* a, const char* b) {
    return speculate::equal_constants(evaluate(a).get(), evaluate(b).get());
  };
  EXPECT_TRUE(equal("10**30", "10**30"));
  EXPECT_TRUE(equal("(1, ('a', b'b'), None)", "(1, ('a', b'b'), None)"));
  EXPECT_TRUE(equal("slice(1, None)", "slice(1, None)"));
  EXPECT_FALSE(equal("0.0", "-0.0"));
  EXPECT_FALSE(equal("1", "1.0"));
  EXPECT_FALSE(equal("1", "True"));
  EXPECT_FALSE(equal("[1]", "[1]"));
}

TEST(Constants, NoCodeOfTheProgramsIsRunForTheirText) {
  const Object object = run("class C:\n  def __repr__(self): raise SystemExit\nc = C()\n", "c");
  EXPECT_EQ(speculate::describe_object(object.get()), "a C object");
  EXPECT_EQ(speculate::describe_object(evaluate("(1, [2.5, 'a'])").get()), "(1, [2.5, 'a'])");
  EXPECT_EQ(speculate::describe_object(evaluate("int").get()), "the class int");
  EXPECT_EQ(speculate::describe_object(run("l = []\nl.append(l)\n", "l").get()), "[[[[[...]]]]]");
}

}  // namespace
}  // namespace janus
