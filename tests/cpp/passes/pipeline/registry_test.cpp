#include "passes/pipeline/registry.h"

#include <gtest/gtest.h>

namespace janus::passes {
namespace {

TEST(Registry, FindsPassesByName) {
  EXPECT_NE(find_pass("fuse"), nullptr);
  EXPECT_EQ(find_pass("no_such_pass"), nullptr);
  for (const NamedPass& pass : all_passes()) EXPECT_EQ(find_pass(pass.name), &pass);
}

}  // namespace
}  // namespace janus::passes
