// The room `values`: what the front end knows of Python values without an interpreter of programs:
// element lists, kinds of numbers, constants, strides, snapshots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedded/embedded_python.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/restart.h"
#include "frontend/values/snapshot.h"
#include "frontend/values/strides.h"
#include "frontend/values/symbolic_list.h"
#include "graph/graph.h"

namespace janus::frontend {
namespace {

using embedded::evaluate;
using graph::Dim;
using graph::Shape;
using graph::Type;

Value known(const std::string& expression) {
  return std::make_shared<Known>(evaluate(expression), nullptr);
}

// --- element lists

TEST(ElementList, HoldsElementsOneByOne) {
  ElementList list;
  EXPECT_TRUE(list.empty());
  list.push_back(known("1"));
  list.push_back(known("2"));
  list.erase(list.begin());
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(known_integer(list[0]), 2);
  EXPECT_EQ(list.rolled(), nullptr);
}

TEST(ElementList, IsEqualIfItHoldsTheSameValues) {
  const Value one = known("1");
  EXPECT_TRUE(ElementList(std::vector<Value>{one}) == ElementList(std::vector<Value>{one}));
  EXPECT_FALSE(ElementList(std::vector<Value>{one}) == ElementList(std::vector<Value>{known("1")}));
}

TEST(ElementList, RefusesElementsOfASymbolicList) {
  auto symbolic = std::make_shared<Rolled>();
  symbolic->test.fact = 7;
  const ElementList list{std::shared_ptr<const Rolled>(symbolic)};
  try {
    EXPECT_EQ(list.size(), 0U);
    FAIL() << "the length of a symbolic list was given";
  } catch (const CannotMerge& thrown) {
    EXPECT_EQ(thrown.test.fact, 7);
    EXPECT_THAT(thrown.why, testing::HasSubstr("symbolic list"));
  }
}

TEST(SymbolicList, HasOneGraphListForEachLeafOfItsElements) {
  ElementForm number, pair;
  number.type = Type::i64();
  pair.kind = ElementForm::Kind::tuple;
  pair.parts = {number, number};
  EXPECT_EQ(list_types(number).size(), 1U);
  EXPECT_EQ(list_types(pair).size(), 2U);
}

TEST(SymbolicList, IsTrackedIfOnePartOfItsElementsIs) {
  ElementForm tensor, pair;
  pair.kind = ElementForm::Kind::tuple;
  pair.parts = {tensor, tensor};
  EXPECT_FALSE(is_tracked(pair));
  pair.parts[1].tracked = true;
  EXPECT_TRUE(is_tracked(pair));
}

// --- numbers

TEST(NumberKinds, TellsBoolsFromIntsAndFloats) {
  EXPECT_EQ(kind_of_number(known("True")), Type::Kind::boolean);
  EXPECT_EQ(kind_of_number(known("3")), Type::Kind::i64);
  EXPECT_EQ(kind_of_number(known("3.0")), Type::Kind::f64);
  EXPECT_EQ(kind_of_number(known("'3'")), std::nullopt);
  EXPECT_EQ(kind_of_number(std::make_shared<Number>(Type::Kind::f64)), Type::Kind::f64);
}

TEST(NumberKinds, OrdersTwoKinds) {
  const auto kinds = kinds_of_numbers(known("3"), known("0.5"));
  ASSERT_TRUE(kinds);
  EXPECT_EQ(kinds->high, Type::Kind::f64);
  EXPECT_EQ(kinds->low, Type::Kind::i64);
  EXPECT_FALSE(kinds_of_numbers(known("3"), known("4")));
  EXPECT_FALSE(kinds_of_numbers(known("3"), known("None")));
}

TEST(NumberKinds, GivesKnownIntsThatFit) {
  EXPECT_EQ(known_integer(known("-4")), -4);
  EXPECT_EQ(known_integer(known("2**70")), std::nullopt);
  EXPECT_EQ(known_integer(known("True")), std::nullopt);
  EXPECT_EQ(known_integer(nullptr), std::nullopt);
}

TEST(NumberKinds, TakesNumbersOfTheGraphForFlags) {
  EXPECT_TRUE(is_flag(std::make_shared<Number>(Type::Kind::boolean)));
  EXPECT_FALSE(is_flag(std::make_shared<Number>(Type::Kind::i64)));
  EXPECT_FALSE(is_flag(known("True")));
}

// --- constants

TEST(Constants, AreImmutableWithAllTheirParts) {
  EXPECT_TRUE(is_immutable_constant(evaluate("(1, ('a', None))").get()));
  EXPECT_FALSE(is_immutable_constant(evaluate("(1, [2])").get()));
  EXPECT_FALSE(is_immutable_constant(evaluate("{}").get()));
}

TEST(Constants, AreTheSameIfNothingTellsThemApart) {
  const auto same = [](const char* a, const char* b) {
    return same_constant(evaluate(a).get(), evaluate(b).get());
  };
  EXPECT_TRUE(same("(1, 'ab')", "(1, 'a' + 'b')"));
  EXPECT_FALSE(same("1", "1.0"));
  EXPECT_FALSE(same("1", "True"));
  EXPECT_FALSE(same("0.0", "-0.0"));
}

TEST(Constants, GiveTheirText) {
  EXPECT_EQ(text_of(evaluate("'äb'").get()), "äb");
  EXPECT_EQ(text_of(evaluate("3").get()), "");
  EXPECT_EQ(text_of(nullptr), "");
}

// --- strides

/// A tensor of a graph with the strides.
class Strided : public testing::Test {
 protected:
  std::shared_ptr<Tensor> tensor(const Shape& shape, const Strides& strides) {
    auto made = std::make_shared<Tensor>();
    made->value = graph_.new_parameter(graph_.body(), Type::tensor(graph::DType::f32, shape), "x");
    made->strides = strides;
    return made;
  }
  graph::Graph graph_{"strides"};
};

TEST_F(Strided, ContiguousStridesAreProductsOfInnerSizes) {
  const Dim batch = Dim::symbol("B");
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, batch}), (Shape{batch, 1}));
  EXPECT_EQ(contiguous_strides({}), Shape{});
}

TEST_F(Strided, StridesOfSingleElementsDoNotMatter) {
  EXPECT_TRUE(are_contiguous({1, 4}, Shape{99, 1}));
  EXPECT_FALSE(are_contiguous({2, 4}, Shape{1, 2}));
  EXPECT_FALSE(are_contiguous({2, 4}, std::nullopt));
}

TEST_F(Strided, UnknownStridesAreNeitherContiguousNorSurelyNot) {
  const auto unknown = tensor({2, 4}, std::nullopt);
  EXPECT_FALSE(is_contiguous(*unknown));
  EXPECT_FALSE(is_surely_not_contiguous(*unknown));
  EXPECT_TRUE(is_surely_not_contiguous(*tensor({2, 4}, Shape{1, 2})));
}

TEST_F(Strided, ReshapingIsAViewACopyOrUnknown) {
  EXPECT_EQ(reshaping(*tensor({4, 6}, Shape{6, 1}), {24}), Reshaping::view);
  EXPECT_EQ(reshaping(*tensor({4, 6}, Shape{1, 4}), {24}), Reshaping::copy);
  EXPECT_EQ(reshaping(*tensor({4, 6}, Shape{1, 4}), {2, 2, 6}), Reshaping::view);
  EXPECT_EQ(reshaping(*tensor({4, 6}, std::nullopt), {24}), Reshaping::unknown);
}

TEST_F(Strided, ChannelsLastIsToldByStrides) {
  EXPECT_TRUE(is_channels_last(*tensor({2, 3, 4, 5}, Shape{60, 1, 15, 3})));
  EXPECT_FALSE(is_channels_last(*tensor({2, 3, 4, 5}, Shape{60, 20, 5, 1})));
}

TEST_F(Strided, OrderInMemoryIsUndoneByItsInverse) {
  const auto order = order_in_memory({2, 3, 4}, Shape{1, 8, 2});
  ASSERT_TRUE(order);
  EXPECT_EQ(*order, (Shape{1, 2, 0}));
  EXPECT_EQ(inverse_order(*order), (Shape{2, 0, 1}));
  EXPECT_FALSE(order_in_memory({2, 3}, Shape{3, 1}));
}

// --- snapshots

TEST(Snapshot, RestoresWhatObjectsHeld) {
  auto list = std::make_shared<Sequence>(true);
  list->elements.push_back(known("1"));
  auto variables = std::make_shared<Variables>();
  variables->values["a"] = known("2");
  const Snapshot before = Snapshot::take();
  list->elements.push_back(known("3"));
  variables->values.clear();
  before.restore();
  EXPECT_EQ(list->elements.size(), 1U);
  EXPECT_EQ(variables->values.size(), 1U);
}

TEST(Snapshot, KnowsOnlyObjectsThatLivedThen) {
  auto list = std::make_shared<Sequence>(true);
  Snapshot before = Snapshot::take();
  auto later = std::make_shared<Sequence>(true);
  EXPECT_NE(before.find(list.get()), nullptr);
  EXPECT_EQ(before.find(later.get()), nullptr);
  before.add(*later);
  EXPECT_NE(before.find(later.get()), nullptr);
}

TEST(Snapshot, TellsWhatHasChanged) {
  auto list = std::make_shared<Sequence>(true);
  const ChangeableState empty = state_of(*list);
  EXPECT_TRUE(same_state(empty, state_of(*list)));
  list->elements.push_back(known("1"));
  EXPECT_FALSE(same_state(empty, state_of(*list)));
}

TEST(Snapshot, EmptiesObjectsThatHoldEachOtherAtTheEndOfTheirScope) {
  auto outside = std::make_shared<Sequence>(true);
  outside->elements.push_back(known("1"));
  std::weak_ptr<Sequence> circle;
  {
    const ObjectScope scope;
    auto inside = std::make_shared<Sequence>(true);
    inside->elements.push_back(inside);
    circle = inside;
  }
  EXPECT_TRUE(circle.expired());
  EXPECT_EQ(outside->elements.size(), 1U);
}

}  // namespace
}  // namespace janus::frontend
