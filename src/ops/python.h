// How `python_call` and `python_draw` nodes write down what a call is given. See ops/python.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace janus::ops {

struct PythonArgument {
  enum class Kind { operand, range, list };
  Kind kind = Kind::operand;
  std::string keyword;  ///< empty: positional
  int64_t length = 0;   ///< of the range or list
};

/// The attribute `arguments`; nothing if it is malformed.
std::optional<std::vector<PythonArgument>> parse_python_arguments(std::string_view text);

}  // namespace janus::ops
