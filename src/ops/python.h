// The arguments of `python_call` and `python_draw` nodes. See ops/python.cpp.
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

/// Parses the attribute `arguments`; nullopt if it is malformed.
std::optional<std::vector<PythonArgument>> parse_python_arguments(std::string_view text);

/// Whether the node reads a clock. Clock reads are barriers: programs measure time with them, so
/// nothing moves across one.
bool reads_clock(const graph::Node& node);

}  // namespace janus::ops
