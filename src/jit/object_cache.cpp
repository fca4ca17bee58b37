// See object_cache.h.
#include "jit/object_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/policy.h"

namespace janus::jit {

namespace files = std::filesystem;

namespace {

constexpr char kMagic[8] = {'j', 'a', 'n', 'u', 's', 'k', '0', '1'};
constexpr int64_t kSecondsOfADay = 86400;

struct Header {
  char magic[8];
  uint64_t key_bytes, object_bytes, checksum;
};

/// FNV-1a.
uint64_t hash(std::string_view text) {
  uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return value;
}

/// A hash that is independent of the first.
uint64_t other_hash(std::string_view text) {
  uint64_t value = text.size();
  for (const char c : text) {
    value = std::rotl(value, 23) + 0x9e3779b97f4a7c15 * (static_cast<uint8_t>(c) + uint64_t{1});
    value ^= value >> 31;
    value *= 0xbf58476d1ce4e5b9;
  }
  return value;
}

class File {
 public:
  /// Takes over the descriptor that `open` returned.
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (is_open()) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  bool write(const void* data, size_t bytes) {
    const char* next = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::write(descriptor_, next, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      next += written;
      bytes -= static_cast<size_t>(written);
    }
    return true;
  }

  std::string read_all(size_t bytes) {
    std::string text(bytes, '\0');
    size_t have = 0;
    while (have < bytes) {
      const ssize_t count = ::read(descriptor_, text.data() + have, bytes - have);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      have += static_cast<size_t>(count);
    }
    text.resize(have);
    return text;
  }

 private:
  int descriptor_;
};

/// Writes a new file that no other user can read. `name` ends in XXXXXX, which is replaced so that
/// no other process has the name. False, with errno, where that fails.
bool write_aside(std::string& name, std::string_view key, std::string_view object) {
  const std::string rest = cat(key, object);
  Header header{
      .magic = {}, .key_bytes = key.size(), .object_bytes = object.size(), .checksum = hash(rest)};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  File file(::mkostemp(name.data(), O_CLOEXEC));
  return file.is_open() && file.write(&header, sizeof(header)) &&
         file.write(rest.data(), rest.size());
}

/// The object in a file's text; nullopt if the file is damaged or has another key.
std::optional<std::string> object_in(const std::string& text, std::string_view key) {
  Header header;
  if (text.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, text.data(), sizeof(header));
  const std::string_view rest = std::string_view(text).substr(sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.key_bytes != key.size() ||
      rest.size() < key.size() || header.object_bytes != rest.size() - key.size() ||
      rest.substr(0, key.size()) != key || header.checksum != hash(rest))
    return std::nullopt;
  return std::string(rest.substr(key.size()));
}

/// Why the folder is not safe to read; null if it is.
const char* why_unusable(const std::string& folder) {
  struct stat status;
  if (::lstat(folder.c_str(), &status) != 0) return std::strerror(errno);
  if (!S_ISDIR(status.st_mode)) return "it is no folder";
  if (status.st_uid != ::geteuid()) return "it is another user's";
  if ((status.st_mode & 077) != 0) return "others can write or read it";
  return ::access(folder.c_str(), X_OK) != 0 ? std::strerror(errno) : nullptr;
}

/// Whether the error concerns this file only: something else stands in its place.
bool is_about_one_file(int error) {
  return error == EISDIR || error == ENOTEMPTY || error == EEXIST;
}

}  // namespace

std::string digest(std::string_view text) {
  char digits[33];
  std::snprintf(digits, sizeof(digits), "%016llx%016llx",
                static_cast<unsigned long long>(hash(text)),
                static_cast<unsigned long long>(other_hash(text)));
  return digits;
}

ObjectCache::ObjectCache(std::string folder, int64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

std::string ObjectCache::default_folder(std::string_view kind) {
  if (const char* chosen = std::getenv("TORCHJANUS_CACHE")) {
    const std::string_view text(chosen);
    return text.empty() || text == "0" ? std::string() : cat(text, "/", kind);
  }
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return cat(cache, "/torchjanus/", kind);
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return cat(home, "/.cache/torchjanus/", kind);
}

std::optional<std::string> ObjectCache::find(std::string_view key) {
  if (!is_ready()) return std::nullopt;
  const std::string path = cat(folder_, "/", digest(key));
  File file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  struct stat status;
  if (!file.is_open() || ::fstat(file.descriptor(), &status) != 0) return std::nullopt;
  std::optional<std::string> object;
  if (S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
      static_cast<size_t>(status.st_size) <= policy::kLargestObjectFile)
    object = object_in(file.read_all(static_cast<size_t>(status.st_size)), key);
  if (!object)
    ::unlink(path.c_str());
  else if (std::time(nullptr) - status.st_mtime > kSecondsOfADay)
    ::utimensat(AT_FDCWD, path.c_str(), nullptr,
                AT_SYMLINK_NOFOLLOW);  // marks it as used lately
  return object;
}

void ObjectCache::keep(std::string_view key, std::string_view object) {
  if (!is_ready() || !keeps_ ||
      sizeof(Header) + key.size() + object.size() > policy::kLargestObjectFile)
    return;
  const std::string path = cat(folder_, "/", digest(key));
  std::string aside = cat(path, ".XXXXXX");
  if (!write_aside(aside, key, object) || ::rename(aside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(aside.c_str());
    if (!is_about_one_file(error)) keep_no_more(std::strerror(error));
    return;
  }
  if (kept_++ % policy::kFilesBetweenSizeChecks == 0) remove_oldest();
}

/// Makes the folder at the first use. A folder that can't be written may still be read.
bool ObjectCache::is_ready() {
  if (is_made_ || folder_.empty()) return !folder_.empty();
  is_made_ = true;
  std::error_code error;
  files::create_directories(files::path(folder_).parent_path(), error);
  const bool is_there = ::mkdir(folder_.c_str(), 0700) == 0 || errno == EEXIST;
  if (const char* why = is_there ? why_unusable(folder_) : std::strerror(errno)) {
    keep_no_more(why);
    folder_.clear();
  } else if (::access(folder_.c_str(), W_OK) != 0) {
    keep_no_more(std::strerror(errno));
  }
  return !folder_.empty();
}

/// Warns, unless the folder of another kind has warned already.
void ObjectCache::keep_no_more(std::string_view why) {
  static auto* const mutex = new std::mutex;
  static auto* const said = new std::set<std::string>;
  keeps_ = false;
  const std::lock_guard lock(*mutex);
  if (said->insert(cat(files::path(folder_).parent_path().string(), ": ", why)).second)
    std::fputs(cat("torchjanus: nothing is kept in ", folder_, ": ", why, "\n").c_str(), stderr);
}

/// Brings the folder well below its bound. This also deletes what interrupted processes left.
void ObjectCache::remove_oldest() {
  struct Kept {
    files::path path;
    files::file_time_type time;
    int64_t bytes;
  };
  std::vector<Kept> all;
  int64_t total = 0;
  std::error_code error;
  for (files::directory_iterator next(folder_, error), end; !error && next != end;
       next.increment(error)) {
    std::error_code gone;  // ignored: another process may delete too
    const auto bytes = static_cast<int64_t>(next->file_size(gone));
    const auto time = next->last_write_time(gone);
    if (gone) continue;
    all.push_back({next->path(), time, bytes});
    total += bytes;
  }
  if (total <= most_bytes_) return;
  std::ranges::sort(all, {}, &Kept::time);
  for (const Kept& one : all) {
    if (total <= most_bytes_ * 3 / 4) return;
    files::remove(one.path, error);
    total -= one.bytes;
  }
}

}  // namespace janus::jit
