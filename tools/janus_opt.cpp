// janus-opt: reads a graph, runs passes, prints the result.
//
//   janus-opt --pass fold,remove_dead file.ir     (without a file: from standard input)
//   janus-opt --list                              names of the passes
//   janus-opt --golden [--update] files...        checks (rewrites) golden files, see
//   tools/golden.h
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/check.h"
#include "golden.h"
#include "passes/pipeline/registry.h"

namespace {

using namespace janus;

struct Arguments {
  std::vector<std::string> passes;
  std::vector<std::string> files;
  bool list = false, golden = false, update = false;
};

Arguments parse_arguments(int count, char** values) {
  Arguments result;
  for (int i = 1; i < count; ++i) {
    const std::string argument = values[i];
    if (argument == "--pass" && i + 1 < count)
      result.passes = golden::pass_names(values[++i]);
    else if (argument == "--list")
      result.list = true;
    else if (argument == "--golden")
      result.golden = true;
    else if (argument == "--update")
      result.update = true;
    else if (argument.starts_with("--"))
      throw std::invalid_argument(cat("unknown option ", argument));
    else
      result.files.push_back(argument);
  }
  return result;
}

std::string read(std::istream& in) {
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::invalid_argument(cat("cannot read ", path));
  return read(file);
}

int run_golden(const Arguments& arguments) {
  int failed = 0;
  for (const std::string& path : arguments.files) {
    const std::string text = read_file(path);
    const golden::FileResult result = golden::run_file(text);
    if (arguments.update && result.updated != text) {
      std::ofstream(path) << result.updated;
      std::cout << "updated " << path << '\n';
    }
    // What an update cannot repair (a parse error, two inputs that differ) is still a failure.
    const auto failures =
        arguments.update ? golden::run_file(result.updated).failures : result.failures;
    for (const std::string& failure : failures) std::cerr << path << ": " << failure << '\n';
    failed += failures.empty() ? 0 : 1;
  }
  return failed == 0 ? 0 : 1;
}

int run(const Arguments& arguments) {
  if (arguments.list) {
    for (const passes::NamedPass& pass : passes::all_passes()) std::cout << pass.name << '\n';
    return 0;
  }
  if (arguments.golden) return run_golden(arguments);
  const std::string text =
      arguments.files.empty() ? read(std::cin) : read_file(arguments.files.front());
  std::cout << golden::run_passes(text, arguments.passes);
  return 0;
}

}  // namespace

int main(int count, char** values) {
  try {
    return run(parse_arguments(count, values));
  } catch (const std::exception& error) {
    std::cerr << "janus-opt: " << error.what() << '\n';
    return 2;
  }
}
