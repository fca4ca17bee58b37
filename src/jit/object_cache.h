// The cache of compiled objects on disk: kernels, and the libraries of torchjanus.code. The next
// process need not compile them again.
//
// Each object is one file. Each kind has a folder under $TORCHJANUS_CACHE, else
// $XDG_CACHE_HOME/torchjanus, else ~/.cache/torchjanus; TORCHJANUS_CACHE=0 keeps nothing. The
// folder must belong to this user, with no rights for others; another one is not used. A file holds
// its whole key and a checksum. A file that is damaged or has another key is deleted and counts as
// missing. Files are written aside and renamed, so that several processes can share the folder. The
// oldest are deleted when there are too many. If the folder can't be written, one warning says so
// for all kinds, and what can be read is still used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/policy.h"

namespace janus::jit {

/// 128 bits of `text`, in hexadecimal.
std::string digest(std::string_view text);

class ObjectCache {
 public:
  /// `folder` is made at the first use; empty: nothing is cached. `most_bytes` bounds the folder.
  explicit ObjectCache(std::string folder, int64_t most_bytes = policy::kMostObjectBytes);

  std::optional<std::string> find(std::string_view key);
  void keep(std::string_view key, std::string_view object);

  /// The folder that the environment names for objects of this kind.
  static std::string default_folder(std::string_view kind);

 private:
  bool is_ready();
  void keep_no_more(std::string_view why);
  void remove_oldest();

  std::string folder_;
  int64_t most_bytes_;
  int kept_ = 0;
  bool is_made_ = false;
  bool keeps_ = true;
};

}  // namespace janus::jit
