// The mirror of Python's syntax: every node comes back as it was, facts are dense, parts share
// nodes.
#include "syntax/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedded/embedded_python.h"
#include "syntax/convert.h"
#include "syntax/scope.h"
#include "syntax/slice.h"
#include "syntax/source.h"

namespace janus {
namespace {

using embedded::dump;
using embedded::parse;
using python::Object;
using namespace syntax;

std::shared_ptr<Tree> tree_of(const std::string& text) {
  return convert(parse(text).get(), std::make_shared<const std::string>("file.py"));
}

/// The text as a Module that went through our nodes.
std::string mirrored(const std::string& text) {
  const auto tree = tree_of(text);
  AstBuilder builder;
  const Object module = AstBuilder::make(
      "Module", {{"body", builder.body(tree->body)}, {"type_ignores", python::list({})}}, nullptr);
  return dump(module.get());
}

class Mirror : public testing::TestWithParam<const char*> {};

TEST_P(Mirror, GivesTheSameSyntaxBack) {
  EXPECT_EQ(mirrored(GetParam()), dump(parse(GetParam()).get()));
}

INSTANTIATE_TEST_SUITE_P(
    Statements, Mirror,
    testing::Values(
        "x = y = (1, *z)\nx += 2.5e3j\nx: int = 3\ndel x[0], y.z",
        "def f(a, /, b=1, *c, d, e=2, **g) -> int:\n  'text'\n  return a",
        "async def f():\n  async with a as b, c:\n    await d\n  async for i in x: pass",
        "@a.b(1)\nclass C(B, metaclass=M):\n  x = 1",
        "for i, (j, *k) in x:\n  continue\nelse:\n  pass\nwhile not x:\n  break",
        "try:\n  raise A from b\nexcept (A, B) as e:\n  raise\nelse: 1\nfinally: 2",
        "try: pass\nexcept* A: pass",
        "import a.b as c, d\nfrom ..e import f as g, h\nglobal i\nassert x, 'no'"));

INSTANTIATE_TEST_SUITE_P(
    Expressions, Mirror,
    testing::Values("a and b or not c", "x if (y := z) else lambda a, *b, c=1: a",
                    "{**a, 'b': 1}, {1, 2}, [x for x in y if x if 1], {k: v for k, v in z}",
                    "f(*a, b=1, **c)[1:2, ::3, ...]", "-a ** ~b // c @ d << e | f ^ g & h",
                    "1 < a <= b is not c not in d", "f'{a!r:>{w}} {b}' 'c', b''[0]",
                    "(yield from (yield)), None, True"));

INSTANTIATE_TEST_SUITE_P(
    Patterns, Mirror,
    testing::Values("match x:\n  case [1, *_] | {'a': A(b, c=None), **rest} if y: pass\n"
                    "  case str() as s: pass\n  case _: pass"));

TEST(Tree, SpansAreThoseOfTheSource) {
  const auto tree = tree_of("x = 1\nfoo(a,\n    b)\n");
  const auto& call = as<Call>(as<Expr>(tree->body[1]).value);
  EXPECT_EQ(*call.span.file, "file.py");
  EXPECT_EQ(call.span.line, 2);
  EXPECT_EQ(call.span.column, 0);
  EXPECT_EQ(call.span.end_line, 3);
  EXPECT_EQ(call.args[1]->span.column, 4);
}

TEST(Tree, EveryNodeHasAFactOfItsOwn) {
  const auto tree = tree_of("x = a + b\n");
  const auto& assign = as<Assign>(tree->body[0]);
  const auto& sum = as<BinOp>(assign.value);
  const std::vector<int> facts = {assign.fact, assign.targets[0]->fact, sum.fact, sum.left->fact,
                                  sum.right->fact};
  EXPECT_THAT(facts, testing::UnorderedElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(tree->fact_count, 5);
}

TEST(Tree, AsChecksTheKind) {
  const auto tree = tree_of("pass");
  EXPECT_EQ(try_as<Expr>(tree->body[0]), nullptr);
  EXPECT_NE(try_as<Pass>(tree->body[0]), nullptr);
  EXPECT_ANY_THROW(as<Expr>(tree->body[0]));
}

TEST(Tree, ASliceSharesNodesAndKeepsTheWholeAlive) {
  std::shared_ptr<const Tree> part;
  const Statement* second = nullptr;
  {
    const std::shared_ptr<const Tree> whole =
        tree_of_statements(parse("a = 1\nb = a\nc = b\n").get(), "file.py", "module", true);
    second = whole->body[1];
    part = slice(whole, 1, 3, {"c", "b"});
  }
  ASSERT_EQ(part->body.size(), 2u);
  EXPECT_EQ(part->body[0], second);
  EXPECT_THAT(part->scope->assigned, testing::ElementsAre("b", "c"));
  EXPECT_EQ(as<Name>(as<Assign>(part->body[0]).targets[0]).id, "b");
}

}  // namespace
}  // namespace janus
