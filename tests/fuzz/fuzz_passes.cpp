// Any bytes that are a graph.
#include <cstdint>

#include "check_passes.h"
#include "graph/text.h"
#include "ops/list.h"

using namespace janus;
using namespace janus::graph;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Graph graph = parse({reinterpret_cast<const char*>(data), size}, ops::table());
    try {
      verify(graph);
    } catch (const InternalError&) {
      return 0;  // state written twice or in a block
    }
    check_passes(graph, /*with_loops=*/false);
  } catch (const ParseError&) {
  }
  return 0;
}
