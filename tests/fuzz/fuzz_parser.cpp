// Any bytes: the parser gives a graph or a ParseError. A graph that it gives verifies, and prints
// to a text that reads back to the same text.
#include <cstdint>
#include <cstdlib>

#include "graph/text.h"
#include "ops/list.h"

using namespace janus;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string printed;
  try {
    const graph::Graph graph = graph::parse(text, ops::table());
    printed = graph::print(graph);
    try {
      graph::verify(graph);
    } catch (const InternalError&) {
      return 0;  // state written twice or in a block: the parser leaves that to the verifier
    }
  } catch (const graph::ParseError&) {
    return 0;
  }
  if (graph::print(graph::parse(printed, ops::table())) != printed) std::abort();
  return 0;
}
