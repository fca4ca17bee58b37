// Golden files of the passes: tests/ir/**/*.ir. A file holds one case, or several with a line
// `====` between them. A case starts with comments that say what is expected:
//
//   // RUN: fold | remove_dead     passes to run, in order; without this line: none
//   graph ... { ... }              the input
//   ----
//   graph ... { ... }              the whole expected output
//
//   // ERROR: 3:8: message         instead of an output: the first line of the error
//   // SAME                        what follows `----` is a second input; both must give the same
//   text
//
// Lines of an ERROR are counted from the first line of the case.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace janus::golden {

struct Result {
  std::string failure;  ///< empty: as expected
  std::string updated;  ///< the case with what really came in place of what was expected
};

std::vector<std::string> split_cases(std::string_view file);
Result run_case(const std::string& text);

struct FileResult {
  std::vector<std::string> failures;
  std::string updated;
};
FileResult run_file(std::string_view file);

/// The words between separators: "fold | remove_dead" or "fold,remove_dead".
std::vector<std::string> pass_names(std::string_view list);
/// Parses, runs the passes, verifies, checks that the result's text reads back; the result's text.
std::string run_passes(std::string_view graph, const std::vector<std::string>& passes);

}  // namespace janus::golden
