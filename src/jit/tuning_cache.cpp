// See tuning_cache.h.
#include "jit/tuning_cache.h"

#include <cstdlib>
#include <sstream>

#include "base/check.h"
#include "base/options.h"
#include "jit/jit.h"

namespace janus::jit {

namespace {

/// The variables that keep torch's libraries from their widest instructions. Times of such
/// processes say nothing about others, so they are part of the key.
std::string narrowed() {
  std::string all;
  for (const char* name :
       {"ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS"})
    if (const char* value = std::getenv(name)) all += cat('\n', name, '=', value);
  return all;
}

}  // namespace

TuningCache::TuningCache(std::string folder, std::string key, size_t most_cases)
    : files_(std::move(folder)), key_(std::move(key)), most_cases_(most_cases) {}

TuningCache& TuningCache::of(const std::string& libraries) {
  static auto* const mutex = new std::mutex;
  static auto* const all = new std::map<std::string, TuningCache>;
  const std::string folder =
      options().is_disabled("kernel_cache") ? "" : ObjectCache::default_folder("ways");
  const std::lock_guard lock(*mutex);
  return all
      ->try_emplace(cat(folder, '\n', libraries), folder,
                    cat(processor(), '\n', libraries, narrowed()))
      .first->second;
}

std::optional<int> TuningCache::find(const std::string& which) {
  const std::lock_guard lock(mutex_);
  if (!is_read_) read();
  const auto found = choices_.find(which);
  return found == choices_.end() ? std::nullopt : std::optional(found->second);
}

void TuningCache::keep(const std::string& which, int choice) {
  const std::lock_guard lock(mutex_);
  read();  // other processes may have added lines
  if (choices_.size() >= most_cases_) choices_.clear();
  choices_[which] = choice;
  std::string text;
  for (const auto& [each, its] : choices_) text += cat(each, ' ', its, '\n');
  files_.keep(key_, text);
}

/// Choices that this process has made already stay as they are.
void TuningCache::read() {
  is_read_ = true;
  std::istringstream lines(files_.find(key_).value_or(""));
  std::string which;
  for (int choice = 0; lines >> which >> choice;) choices_.try_emplace(which, choice);
}

}  // namespace janus::jit
