// The autotuning cache: the fastest candidate of each case, or another measured whole number, kept
// on disk for the next process. It is one object of the object cache (object_cache.h), a line for
// each case, so that what is damaged or comes from another processor counts as missing. Several
// processes may add at once; a line that gets lost is measured again.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/policy.h"
#include "jit/object_cache.h"

namespace janus::jit {

class TuningCache {
 public:
  /// `folder` as for ObjectCache. `key`: all that the choices depend on beside their case.
  TuningCache(std::string folder, std::string key, size_t most_cases = policy::kMostTunedCases);

  /// Both are thread-safe. A case is a text without spaces and line breaks.
  std::optional<int> find(const std::string& which);
  void keep(const std::string& which, int choice);

  /// The cache of this processor for one version of the libraries that are compared.
  static TuningCache& of(const std::string& libraries);

 private:
  void read();

  std::mutex mutex_;
  ObjectCache files_;
  std::string key_;
  size_t most_cases_;
  bool is_read_ = false;
  std::map<std::string, int, std::less<>> choices_;
};

}  // namespace janus::jit
