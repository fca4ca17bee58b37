#include "base/options.h"

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

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

void complain(const char* variable, std::string_view value, std::string_view wanted) {
  std::fputs(
      cat("torchjanus: ", variable, "=", value, " is ignored: ", wanted, " is expected\n").c_str(),
      stderr);
}

std::optional<int> number(const char* variable, std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error == std::errc() && end == text.end()) return value;
  complain(variable, text, "a number");
  return std::nullopt;
}

bool flag(const char* variable) {
  const std::string_view text = environment(variable);
  for (const std::string_view on : {"1", "true", "yes", "on"})
    if (text == on) return true;
  for (const std::string_view off : {"", "0", "false", "no", "off"})
    if (text == off) return false;
  complain(variable, text, "1 or 0");
  return false;
}

Options read_environment() {
  Options result;
  for_each_word(environment("TORCHJANUS_LOG"), [&](std::string_view word) {
    const size_t colon = word.find(':');
    const bool plain = colon == std::string_view::npos;
    if (const auto level = plain ? 1 : number("TORCHJANUS_LOG", word.substr(colon + 1)))
      result.log_levels[std::string(word.substr(0, colon))] = *level;
  });
  for_each_word(environment("TORCHJANUS_DISABLE"),
                [&](std::string_view word) { result.disabled.emplace(word); });
  result.dump_folder = environment("TORCHJANUS_DUMP");
  if (const auto stop = environment("TORCHJANUS_STOP_AFTER"); !stop.empty())
    result.stop_after = number("TORCHJANUS_STOP_AFTER", stop);
  result.strict = flag("TORCHJANUS_STRICT");
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
  Options& all = options();  // what the environment says comes first
  parallel = !names.contains("parallel");
  all.disabled = std::move(names);
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
