#include "golden.h"

#include <optional>

#include "base/check.h"
#include "graph/text.h"
#include "ops/list.h"
#include "passes/pipeline/registry.h"

namespace janus::golden {
namespace {

constexpr std::string_view case_separator = "====", output_separator = "----";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

/// The pieces of `text` between lines that are `separator`, each ending with a newline.
std::vector<std::string> split_at(std::string_view text, std::string_view separator) {
  std::vector<std::string> pieces(1);
  for (const std::string_view line : lines_of(text)) {
    if (line == separator)
      pieces.emplace_back();
    else
      pieces.back() += cat(line, '\n');
  }
  return pieces;
}

struct Directives {
  std::vector<std::string> passes;
  std::optional<std::string> error;
  bool same = false;
};

Directives read_directives(std::string_view text) {
  Directives result;
  for (const std::string_view line : lines_of(text)) {
    const auto after = [&](std::string_view key) -> std::optional<std::string_view> {
      if (!line.starts_with(key)) return std::nullopt;
      return line.substr(key.size());
    };
    if (const auto list = after("// RUN:")) result.passes = pass_names(*list);
    if (const auto error = after("// ERROR: ")) result.error = *error;
    if (line == "// SAME") result.same = true;
  }
  return result;
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

/// The first line of the error, or nullopt if there was none.
std::optional<std::string> error_of(std::string_view graph,
                                    const std::vector<std::string>& passes) {
  try {
    run_passes(graph, passes);
    return std::nullopt;
  } catch (const std::exception& error) {
    return first_line(error.what());
  }
}

std::string with_error(std::string_view text, const std::string& error) {
  std::string result;
  for (const std::string_view line : lines_of(text))
    result += line.starts_with("// ERROR: ") ? cat("// ERROR: ", error, '\n') : cat(line, '\n');
  return result;
}

Result run_error_case(const std::string& text, const Directives& directives) {
  const auto error = error_of(text, directives.passes);
  if (!error) return {.failure = "expected an error, there was none", .updated = text};
  if (*error == *directives.error) return {.failure = {}, .updated = text};
  return {.failure = cat("expected the error\n  ", *directives.error, "\ngot\n  ", *error),
          .updated = with_error(text, *error)};
}

Result run_same_case(const std::string& text, const std::vector<std::string>& parts,
                     const Directives& directives) {
  const std::string left = run_passes(parts.at(0), directives.passes);
  const std::string right = run_passes(parts.at(1), directives.passes);
  if (left == right) return {.failure = {}, .updated = text};
  return {.failure = cat("the first gives\n", left, "the second gives\n", right), .updated = text};
}

Result run_output_case(const std::vector<std::string>& parts, const Directives& directives) {
  const std::string output = run_passes(parts[0], directives.passes);
  const std::string expected = parts.size() > 1 ? parts[1] : "";
  return {.failure = output == expected ? "" : cat("expected\n", expected, "got\n", output),
          .updated = cat(parts[0], output_separator, '\n', output)};
}

}  // namespace

std::vector<std::string> pass_names(std::string_view list) {
  std::vector<std::string> names(1);
  for (const char c : list) {
    if (c == ',' || c == '|')
      names.emplace_back();
    else if (c != ' ')
      names.back() += c;
  }
  std::erase(names, "");
  return names;
}

std::string run_passes(std::string_view text, const std::vector<std::string>& passes) {
  graph::Graph graph = graph::parse(text, ops::table());
  graph::verify(graph);
  for (const std::string& name : passes) {
    const passes::NamedPass* pass = passes::find_pass(name);
    if (pass == nullptr) throw std::invalid_argument(cat("there is no pass named ", name));
    graph = pass->run(std::move(graph));
    graph::verify(graph);
  }
  const std::string result = graph::print(graph);
  TORCHJANUS_CHECK(graph::print(graph::parse(result, ops::table())) == result,
                   "the printed graph does not read back:\n", result);
  return result;
}

std::vector<std::string> split_cases(std::string_view file) {
  return split_at(file, case_separator);
}

Result run_case(const std::string& text) {
  const Directives directives = read_directives(text);
  try {
    if (directives.error) return run_error_case(text, directives);
    const std::vector<std::string> parts = split_at(text, output_separator);
    if (directives.same) return run_same_case(text, parts, directives);
    return run_output_case(parts, directives);
  } catch (const std::exception& error) {
    return {.failure = error.what(), .updated = text};
  }
}

FileResult run_file(std::string_view file) {
  FileResult result;
  for (const std::string& text : split_cases(file)) {
    Result one = run_case(text);
    if (!one.failure.empty()) result.failures.push_back(std::move(one.failure));
    result.updated += cat(result.updated.empty() ? "" : cat(case_separator, '\n'), one.updated);
  }
  return result;
}

}  // namespace janus::golden
