// Programs that run operator by operator, as the bytes choose, and the graphs of their traces.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "../cpp/trace/check_program.h"

using namespace janus::trace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Names names;
  // The choices that bytes make, one after the other; the first of each when they are used up.
  const auto choice = [&](size_t count) -> size_t {
    if (size == 0) return 0;
    --size;
    return *data++ % count;
  };
  RandomProgram program(choice, names);
  const ProgramCheck check = check_program(program, names);
  if (check.failure.empty()) return 0;
  std::fprintf(stderr, "%s\n", check.failure.c_str());
  std::abort();
}
