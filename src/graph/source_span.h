// A place in the user's program.
#pragma once

#include <memory>
#include <string>

namespace janus::graph {

/// A range of the user's source: lines count from 1, columns (UTF-8 bytes, as Python's ast) from 0.
struct SourceSpan {
  std::shared_ptr<const std::string> file;  ///< null when unknown
  int line = 0;
  int column = 0;
  int end_line = 0;
  int end_column = 0;

  bool known() const { return file != nullptr; }
};

}  // namespace janus::graph
