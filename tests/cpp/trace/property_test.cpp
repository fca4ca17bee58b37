// Random programs, thousands of them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "check_program.h"

namespace janus::trace {
namespace {

/// RANDOM_PROGRAMS=count checks more of them.
unsigned program_count() {
  const char* count = std::getenv("RANDOM_PROGRAMS");
  if (count != nullptr) return static_cast<unsigned>(std::atoi(count));
#ifdef TORCHJANUS_SANITIZED
  return 200;
#else
  return 3000;
#endif
}

TEST(RandomPrograms, are_covered_and_computed_by_the_graph_of_their_traces) {
  const unsigned programs = program_count();
  size_t loops = 0, joins = 0, refused = 0, covering_more = 0;
  for (unsigned seed = 0; seed < programs; ++seed) {
    Names names;
    RandomProgram program(seed, names);
    const ProgramCheck check = check_program(program, names);
    ASSERT_EQ(check.failure, "") << "seed " << seed;
    loops += check.loops;
    joins += check.joins;
    refused += !check.refusal.empty();
    covering_more += check.covers_more;
  }
  EXPECT_GT(loops, programs / 4);
  EXPECT_GT(joins, programs / 4);
  EXPECT_GT(covering_more, programs / 4);
  EXPECT_LE(refused, programs / 100);
}

}  // namespace
}  // namespace janus::trace
