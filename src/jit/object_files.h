// What was compiled, on disk, so that the next process need not compile it again: kernels, and the
// libraries of torchjanus.code.
//
// One file an object, in a folder of its own for each kind under $TORCHJANUS_CACHE, else
// $XDG_CACHE_HOME/torchjanus, else ~/.cache/torchjanus; TORCHJANUS_CACHE=0 keeps nothing. Such a
// folder is this user's and nobody else can read or write it; another one is not used. A file holds
// the whole key that it was made for and a checksum: what is damaged, or was made for something
// else, is deleted and counts as not there. Files are written aside and renamed, so that several
// processes can use the folder at once; the oldest go when there are too many. Where the folder
// can't be made or written, one warning says so, for all kinds together, and compiling goes on with
// what can be read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/policy.h"

namespace janus::jit {

/// 128 bits of `text`, in hexadecimal.
std::string digest(std::string_view text);

class ObjectFiles {
 public:
  /// `folder`: made at the first use; empty: nothing is kept. More than `most_bytes` are not kept.
  explicit ObjectFiles(std::string folder, int64_t most_bytes = policy::kMostObjectBytes);

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
