// Programs with branches, loops and functions, nested as the bytes choose, and the gradients of
// their results: the text of a graph is hard to come upon by chance where it has blocks.
#include <cstddef>
#include <cstdint>

#include "../cpp/passes/random_program.h"
#include "check_passes.h"

using namespace janus;
using namespace janus::graph;

namespace {

/// The choices that bytes make, one after the other; the first of each when they are used up.
passes::RandomProgram::Choice choices(const uint8_t* data, size_t size) {
  return [data, left = size](size_t count) mutable -> size_t {
    if (left == 0) return 0;
    --left;
    return *data++ % count;
  };
}

void add_gradients(Graph& graph) {
  Builder builder(graph);
  std::vector<Value*> operands = {graph.body().results[0], builder.none()};
  for (Value* input : graph.inputs())
    if (input->type.is_tensor()) operands.push_back(input);
  const auto targets = static_cast<int64_t>(operands.size()) - 2;
  const Node* node =
      builder.append(op::gradient, operands, {{"outputs", int64_t{1}}, {"targets", targets}});
  graph.body().results.insert(graph.body().results.end(), node->outputs.begin(),
                              node->outputs.end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  Graph graph = passes::RandomProgram(choices(data + 1, size - 1), data[0] % 2 == 1).build();
  if (data[0] % 4 < 2) add_gradients(graph);
  check_passes(graph, /*with_loops=*/true);
  return 0;
}
