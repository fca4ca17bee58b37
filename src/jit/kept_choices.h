// Which of several ways was the fastest, by case, or another whole number that was measured, for
// the next process: lines of one object among those that are kept on disk (object_files.h), so that
// what is damaged or was found out elsewhere counts as not there. Several processes may add at
// once; a line that gets lost is found out again.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "jit/object_files.h"

namespace janus::jit {

class KeptChoices {
 public:
  /// `folder` as that of ObjectFiles; `key`: all that the choices depend on beside their case.
  KeptChoices(std::string folder, std::string key, size_t most_cases = 10000);

  /// Thread-safe, both. A case is a text without spaces and line breaks.
  std::optional<int> find(const std::string& which);
  void keep(const std::string& which, int way);

  /// Those of this processor with one version of the libraries that are compared.
  static KeptChoices& of(const std::string& libraries);

 private:
  void read();

  std::mutex mutex_;
  ObjectFiles files_;
  std::string key_;
  size_t most_cases_;
  bool is_read_ = false;
  std::map<std::string, int, std::less<>> ways_;
};

}  // namespace janus::jit
