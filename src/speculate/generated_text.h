// The generator's result as text: the graph, where its inputs come from, what becomes of its
// results, and its assumptions.
#pragma once

#include <string>
#include <vector>

#include "speculate/generated.h"

namespace janus::speculate {

/// The graph's text, its values named by their operators (see graph::PrintOptions).
std::string describe_graph(const Generated& generated);

/// One line for each connection to Python, in the order of the run. Inputs and cells whose name is
/// their path have none.
///
///   input %batch_0 is batch[0]
///   cell "state" is self.fc.weight
///   returns {'loss': %loss}
///   sets self.count = %n
///   calls print('loss', %loss)
///   gives %loss the grad_fn MeanBackward0
std::vector<std::string> describe_connections(const Generated& generated);

/// One line for each assumption about the call, in the order in which they were made.
std::vector<std::string> describe_assumptions(const Generated& generated);

}  // namespace janus::speculate
