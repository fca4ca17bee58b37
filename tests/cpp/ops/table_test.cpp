// Every operator's block is whole: it parses, it has a rule for its types, and whatever can be
// differentiated says how.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "graph/builder.h"
#include "ops/list.h"

namespace janus {
namespace {

using namespace graph;

TEST(OperatorTable, HasManyOperatorsWithUniqueNames) {
  EXPECT_GE(ops::all().size(), 130u);
  std::set<std::string_view> names;
  for (const OpDef* op : ops::all()) EXPECT_TRUE(names.insert(op->name).second) << op->name;
}

TEST(OperatorTable, EverySignatureParses) {
  for (const OpDef* op : ops::all()) EXPECT_NO_THROW(op->signature()) << op->name;
}

TEST(OperatorTable, EveryOperatorIsDocumented) {
  for (const OpDef* op : ops::all()) EXPECT_FALSE(op->doc.empty()) << op->name;
}

TEST(OperatorTable, EveryDifferentiableOperatorHasAGradientOrSaysThatItHasNone) {
  const std::set<std::string_view> structural = {"state", "constant", "gradient", "if",  "while",
                                                 "call",  "fused",    "function", "rows"};
  for (const OpDef* op : ops::all()) {
    if (structural.contains(op->name)) continue;
    EXPECT_TRUE(op->vjp != nullptr || op->is(Trait::no_gradient) || op->is(Trait::composite))
        << op->name;
  }
}

TEST(OperatorTable, TraitsAndRulesAgree) {
  for (const OpDef* op : ops::all()) {
    // What is not composite may say what it is made of, for kernels.
    if (op->is(Trait::composite)) EXPECT_TRUE(op->decompose != nullptr) << op->name;
    if (op->decompose != nullptr) EXPECT_TRUE(op->scalar == nullptr) << op->name;
    EXPECT_EQ(op->is(Trait::elementwise), op->scalar != nullptr) << op->name;
    EXPECT_FALSE(op->is(Trait::random) && op->is(Trait::pure)) << op->name;
    // Parts at positions that the data decide are copies, and are written through nevertheless.
    const bool is_part = op == &op::row || op == &op::index;
    if (op->scatter != nullptr) EXPECT_TRUE(op->is(Trait::view) || is_part) << op->name;
  }
}

}  // namespace
}  // namespace janus
