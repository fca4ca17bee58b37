// Any bytes: a dimension expression prints to a text that reads back as the same expression, and
// its canonical form has the value that its symbols give within the bounds that it claims.
#include <cstdint>
#include <cstdlib>

#include "graph/text.h"

using namespace janus::graph;

namespace {

void check_value(const Dim& dim, int64_t number) {
  const auto value = dim.evaluate([&](const std::string&) { return number; });
  if (!value) return;
  if (const auto low = dim.lower_bound(); low && *value < *low) std::abort();
  if (const auto high = dim.upper_bound(); high && *value > *high) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Dim dim = parse_dim(std::string_view(reinterpret_cast<const char*>(data), size));
    if (!(parse_dim(to_string(dim)) == dim)) std::abort();
    for (const int64_t number : {2, 3, 7, 100}) check_value(dim, number);
  } catch (const ParseError&) {
  }
  return 0;
}
