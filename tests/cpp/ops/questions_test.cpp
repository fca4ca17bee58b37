// Asks every operator every question that the compiler asks (graph/op_facts.h). An answer that is
// neither stated in the operator's block nor follows from it fails here, by the operator's name.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <string>

#include "ops/list.h"

namespace janus {
namespace {

using namespace graph;

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  for (const auto word : text | std::views::split(' '))
    result.emplace_back(word.begin(), word.end());
  return result;
}

/// Its results are differentiable, and not by nature constant.
bool has_gradient(const OpDef& op) {
  return (op.vjp != nullptr || op.is(Trait::composite)) && !op.is(Trait::no_gradient);
}

size_t count_of_operands(const OpDef& op) { return op.signature().operands().size(); }

TEST(OperatorQuestions, WhoComputesIt) {
  for (const OpDef* op : ops::all())
    EXPECT_TRUE(op->computed_by != ComputedBy::unstated || !op->aten.empty() ||
                op->is(Trait::composite) || op->number != nullptr)
        << op->name;
}

TEST(OperatorQuestions, HowItsResultsLie) {
  for (const OpDef* op : ops::all())
    if (!op->python.empty()) {
      EXPECT_NE(layout_of(*op), Layout::unstated) << op->name;
    }
}

TEST(OperatorQuestions, WhatAViewSees) {
  for (const OpDef* op : ops::all()) {
    if (op->is(Trait::view)) {
      EXPECT_NE(op->sees, Sees::unstated) << op->name;
    }
    EXPECT_EQ(op->sees == Sees::part, op->part != nullptr) << op->name;
    // Parts at positions that only the run knows are copies, and are written through nevertheless.
    const bool is_part = op->part != nullptr && op->scatter != nullptr;
    if (op->sees != Sees::unstated) {
      EXPECT_TRUE(op->is(Trait::view) || is_part) << op->name;
    }
  }
}

TEST(OperatorQuestions, ForWhichContentsItRaises) {
  for (const OpDef* op : ops::all()) EXPECT_NE(raises_of(*op), Raises::unstated) << op->name;
}

TEST(OperatorQuestions, WhatIsSavedForItsGradient) {
  for (const OpDef* op : ops::all())
    if (has_gradient(*op)) {
      EXPECT_NE(saves_of(*op), Saves::unstated) << op->name;
    }
}

TEST(OperatorQuestions, InWhichOrderItDraws) {
  for (const OpDef* op : ops::all())
    EXPECT_EQ(op->is(Trait::random), op->draws != Draws::unstated) << op->name;
}

TEST(OperatorQuestions, WhichOperandsHaveNoDerivative) {
  for (const OpDef* op : ops::all()) {
    if (op->constants.empty()) continue;
    EXPECT_TRUE(has_gradient(*op)) << op->name;
    for (const std::string& name : words(op->constants)) {
      const Parameter* parameter = op->signature().find(name);
      EXPECT_TRUE(parameter != nullptr && parameter->is_operand()) << op->name << ": " << name;
    }
  }
}

TEST(OperatorQuestions, WhatItReducesAndHow) {
  for (const OpDef* op : ops::all()) {
    const bool reduces = op->reduces != Reduces::nothing;
    if (op->combines != Combines::nothing) {
      EXPECT_TRUE(reduces) << op->name;
    }
    EXPECT_EQ(reduces, op->rounds != Rounds::unstated) << op->name;
    // Kernels combine elements, or know what it is made of.
    if (reduces && op->combines == Combines::nothing) {
      EXPECT_NE(op->decompose, nullptr) << op->name;
    }
  }
}

TEST(OperatorQuestions, WhichOfItsTensorsAreImages) {
  for (const OpDef* op : ops::all()) {
    EXPECT_EQ(op->images.operands == 0, op->images.results == 0) << op->name;
    if (op->images.operands != 0) {
      EXPECT_EQ(op->images.operands >> count_of_operands(*op), 0);
    }
    if (op->images.results != 0) {
      EXPECT_EQ(op->images.results >> op->signature().result_count, 0);
    }
  }
}

TEST(OperatorQuestions, HowRowsAreAddedUp) {
  for (const OpDef* op : ops::all())
    EXPECT_EQ(op->adds != nullptr, op->sum_of_rows != nullptr) << op->name;
}

/// Which of several operators a call means is not known when its operands are cast.
TEST(OperatorQuestions, WhatAutocastMakesOfItsOperands) {
  std::map<std::string, const OpDef*> meant;
  for (const OpDef* op : ops::all())
    for (const std::string& callable : words(op->python)) {
      const OpDef* first = meant.try_emplace(callable, op).first->second;
      EXPECT_EQ(op->autocast, first->autocast) << callable;
    }
}

TEST(OperatorQuestions, WhatItIsInTheStructureOfAGraph) {
  std::set<Role> roles;
  for (const OpDef* op : ops::all())
    if (op->role != Role::none) {
      EXPECT_TRUE(roles.insert(op->role).second) << op->name;
    }
  EXPECT_EQ(roles.size(), static_cast<size_t>(Role::opaque));
}

/// One fact, one place.
TEST(OperatorQuestions, NothingIsStatedThatFollowsFromTheRest) {
  for (const OpDef* op : ops::all()) {
    OpDef silent = *op;
    silent.layout = Layout::unstated;
    silent.raises = Raises::unstated;
    silent.saves = Saves::unstated;
    if (op->layout != Layout::unstated) {
      EXPECT_NE(op->layout, layout_of(silent)) << op->name;
    }
    if (op->raises != Raises::unstated) {
      EXPECT_NE(op->raises, raises_of(silent)) << op->name;
    }
    if (op->saves != Saves::unstated) {
      EXPECT_NE(op->saves, saves_of(silent)) << op->name;
    }
  }
}

}  // namespace
}  // namespace janus
