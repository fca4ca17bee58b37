// Reasons as codes, sentences and places.
#include "speculate/reason.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace janus {
namespace {

using speculate::Reason;
using speculate::ReasonCode;

TEST(Reasons, CodesAreUnique) {
  const auto codes = speculate::reason_codes();
  EXPECT_EQ(std::set<std::string>(codes.begin(), codes.end()).size(), codes.size());
  EXPECT_THAT(codes, testing::Contains("guard_failed"));
}

TEST(Reasons, SentencesHoldTheDetails) {
  const Reason reason{ReasonCode::heap_write, "self.n", {}};
  EXPECT_EQ(reason.code_name(), "heap_write");
  EXPECT_EQ(reason.sentence(), "the assignment to self.n changes an object that outlives the call");
  EXPECT_EQ(reason.describe(), "[heap_write] " + reason.sentence());
}

TEST(Reasons, DetailsAreNotLookedIntoForPlaces) {
  EXPECT_EQ((Reason{ReasonCode::statement, "x = {}", {}}).sentence(),
            "the statement 'x = {}' is not converted yet");
}

TEST(Reasons, PlacesStandInFront) {
  graph::SourceSpan span;
  span.file = std::make_shared<const std::string>("train.py");
  span.line = 12;
  const Reason reason{ReasonCode::no_source, "f", span};
  EXPECT_EQ(reason.describe(), "train.py:12: [no_source] there is no source of f");
}

}  // namespace
}  // namespace janus
