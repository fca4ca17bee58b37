// What each name means in each scope.
#include "syntax/scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedded/embedded_python.h"
#include "syntax/source.h"
#include "syntax/tree.h"

namespace janus {
namespace {

using embedded::run;
using namespace syntax;
using testing::ElementsAre;

/// The scope of a function `f` that the text defines.
const Scope& scope_of(const std::string& text) {
  const Source& source = source_of(run(text, "f").get());
  if (source.tree == nullptr) throw std::runtime_error(source.why_not);
  return *source.tree->scope;
}

TEST(Scopes, LocalsCellsFreesAndGlobals) {
  const Scope& scope = scope_of(
      "def make(free):\n"
      "  def f(a, b):\n"
      "    c = a + free\n"
      "    return lambda: c + other\n"
      "  return f\n"
      "f = make(1)\n");
  EXPECT_EQ(scope.kind, Scope::Kind::function);
  EXPECT_EQ(scope.kind_of("a"), NameKind::local);
  EXPECT_EQ(scope.kind_of("c"), NameKind::cell);
  EXPECT_EQ(scope.kind_of("free"), NameKind::free);
  EXPECT_EQ(scope.kind_of("other"), NameKind::global);
  EXPECT_EQ(scope.kind_of("nowhere"), NameKind::global);
  EXPECT_THAT(scope.parameters, ElementsAre("a", "b"));
  EXPECT_THAT(scope.assigned, ElementsAre("a", "b", "c"));
}

TEST(Scopes, GlobalStatementsAndDeletedNames) {
  const Scope& scope = scope_of(
      "def f(x):\n"
      "  global count\n"
      "  count = 1\n"
      "  del x\n"
      "  for i in y: pass\n");
  EXPECT_EQ(scope.kind_of("count"), NameKind::global);
  EXPECT_EQ(scope.kind_of("x"), NameKind::local);
  EXPECT_EQ(scope.kind_of("y"), NameKind::global);
  EXPECT_THAT(scope.assigned, ElementsAre("count", "i", "x"));
}

TEST(Scopes, GeneratorsAndCoroutines) {
  EXPECT_TRUE(scope_of("def f():\n  yield 1\n").has_yield);
  EXPECT_FALSE(scope_of("def f():\n  return (i for i in x)\n").has_yield);
  EXPECT_TRUE(scope_of("async def f():\n  await x\n").has_await);
}

TEST(Scopes, PrivateNamesAreMangled) {
  EXPECT_EQ(mangle("C", "__x"), "_C__x");
  EXPECT_EQ(mangle("__C", "__x"), "_C__x");
  EXPECT_EQ(mangle("C", "__x__"), "__x__");
  EXPECT_EQ(mangle("C", "_x"), "_x");
  EXPECT_EQ(mangle("", "__x"), "__x");
  EXPECT_EQ(mangle("___", "__x"), "__x");
}

TEST(Scopes, StatementsTakeTheFramesVariablesForTheirOwn) {
  const auto tree = tree_of_statements(embedded::parse("y = x + z\n").get(), "file", "loop",
                                       /*at_module_level=*/false, {"x"});
  EXPECT_EQ(tree->scope->kind, Scope::Kind::statements);
  EXPECT_EQ(tree->scope->kind_of("x"), NameKind::local);
  EXPECT_EQ(tree->scope->kind_of("y"), NameKind::local);
  EXPECT_EQ(tree->scope->kind_of("z"), NameKind::global);
}

}  // namespace
}  // namespace janus
