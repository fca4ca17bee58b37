#include "base/options.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/check.h"

namespace janus {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// Calls `visit` with each comma-separated, non-empty word of `text`.
void for_each_word(std::string_view text, const std::function<void(std::string_view)>& visit) {
  while (!text.empty()) {
    const size_t end = text.find(',');
    if (const std::string_view word = text.substr(0, end); !word.empty()) visit(word);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

Options read_environment() {
  Options result;
  for_each_word(environment("TORCHJANUS_LOG"), [&](std::string_view word) {
    const size_t colon = word.find(':');
    const std::string level(colon == std::string_view::npos ? "1" : word.substr(colon + 1));
    result.log_levels[std::string(word.substr(0, colon))] = std::atoi(level.c_str());
  });
  for_each_word(environment("TORCHJANUS_DISABLE"),
                [&](std::string_view word) { result.disabled.emplace(word); });
  result.dump_folder = environment("TORCHJANUS_DUMP");
  if (const std::string stop(environment("TORCHJANUS_STOP_AFTER")); !stop.empty())
    result.stop_after = std::atoi(stop.c_str());
  result.strict = environment("TORCHJANUS_STRICT") == "1";
  return result;
}

std::atomic<bool> parallel = true;

}  // namespace

Options& options() {
  static Options instance = [] {
    Options read = read_environment();
    parallel = !read.is_disabled("parallel");
    return read;
  }();
  return instance;
}

bool is_parallel() { return parallel.load(std::memory_order_relaxed); }

void set_disabled(std::set<std::string, std::less<>> names) {
  parallel = !names.contains("parallel");
  options().disabled = std::move(names);
}

bool log_enabled(std::string_view channel, int level) {
  const auto& levels = options().log_levels;
  const auto found = levels.find(channel);
  return found != levels.end() && found->second >= level;
}

void log(std::string_view channel, const std::string& message, int level) {
  if (log_enabled(channel, level))
    std::fputs(cat("[", channel, "] ", message, "\n").c_str(), stderr);
}

void dump(std::string_view name, std::string_view text) {
  static std::atomic<int> counter = 0;
  const std::string& folder = options().dump_folder;
  if (folder.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const int number = counter++;
  std::ofstream file(cat(folder, "/", number < 10 ? "0" : "", number, "-", name));
  file << text;
}

}  // namespace janus
