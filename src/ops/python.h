// How `python_call` and `python_draw` nodes write down what a call is given. See ops/python.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace janus::ops {

struct PythonArgument {
  enum class Kind { operand, range, list };
  Kind kind = Kind::operand;
  std::string keyword;  ///< empty: positional
  int64_t length = 0;   ///< of the range or list
};

/// The attribute `arguments`; nothing if it is malformed.
std::optional<std::vector<PythonArgument>> parse_python_arguments(std::string_view text);

/// Whether the node reads a clock. What the program does before it is done by then, and nothing
/// behind it has begun: programs measure by it.
bool reads_clock(const graph::Node& node);

}  // namespace janus::ops
