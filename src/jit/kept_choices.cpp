// See kept_choices.h.
#include "jit/kept_choices.h"

#include <cstdlib>
#include <sstream>

#include "base/check.h"
#include "base/options.h"
#include "jit/jit.h"

namespace janus::jit {

namespace {

/// By what the environment keeps torch's libraries from their widest instructions: times of such
/// processes say nothing about others.
std::string narrowed() {
  std::string all;
  for (const char* name :
       {"ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS"})
    if (const char* value = std::getenv(name)) all += cat('\n', name, '=', value);
  return all;
}

}  // namespace

KeptChoices::KeptChoices(std::string folder, std::string key, size_t most_cases)
    : files_(std::move(folder)), key_(std::move(key)), most_cases_(most_cases) {}

KeptChoices& KeptChoices::of(const std::string& libraries) {
  static auto* const mutex = new std::mutex;
  static auto* const all = new std::map<std::string, KeptChoices>;
  const std::string folder =
      options().is_disabled("kernel_cache") ? "" : ObjectFiles::default_folder("ways");
  const std::lock_guard lock(*mutex);
  return all
      ->try_emplace(cat(folder, '\n', libraries), folder,
                    cat(processor(), '\n', libraries, narrowed()))
      .first->second;
}

std::optional<int> KeptChoices::find(const std::string& which) {
  const std::lock_guard lock(mutex_);
  if (!is_read_) read();
  const auto found = ways_.find(which);
  return found == ways_.end() ? std::nullopt : std::optional(found->second);
}

void KeptChoices::keep(const std::string& which, int way) {
  const std::lock_guard lock(mutex_);
  read();  // others may have added something meanwhile
  if (ways_.size() >= most_cases_) ways_.clear();
  ways_[which] = way;
  std::string text;
  for (const auto& [each, its] : ways_) text += cat(each, ' ', its, '\n');
  files_.keep(key_, text);
}

/// What this process knows already stays as it is: it has gone by that.
void KeptChoices::read() {
  is_read_ = true;
  std::istringstream lines(files_.find(key_).value_or(""));
  std::string which;
  for (int way = 0; lines >> which >> way;) ways_.try_emplace(which, way);
}

}  // namespace janus::jit
