#include "torch/file_backed.h"

#include <c10/core/CPUAllocator.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace janus::torch {

namespace {

struct Mapping {
  void* data;
  size_t bytes;
};

void unmap(void* context) {
  const std::unique_ptr<Mapping> mapping(static_cast<Mapping*>(context));
  munmap(mapping->data, mapping->bytes);
}

/// A new file without a name, open; -1 if there is none.
int temporary_file() {
  const char* const folder = std::getenv("TMPDIR");
  std::string name = std::string(folder == nullptr ? "/tmp" : folder) + "/torchjanus-XXXXXX";
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0) unlink(name.c_str());
  return file;
}

bool write_all(int file, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(file, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

/// Null if the contents can't be in a file.
std::unique_ptr<Mapping> map_copy(const void* data, size_t bytes) {
  const int file = temporary_file();
  if (file < 0) return nullptr;
  void* made = MAP_FAILED;
  // Private, as a forked process must not see what this one writes, nor the other way round.
  if (write_all(file, static_cast<const char*>(data), bytes))
    made = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  return made == MAP_FAILED ? nullptr : std::make_unique<Mapping>(made, bytes);
}

}  // namespace

bool move_to_file(c10::StorageImpl& storage, Materializer before_writing) {
  if (storage.nbytes() == 0 || !may_die_while_watched(storage)) return false;
  std::unique_ptr<Mapping> made = map_copy(storage.data_ptr().get(), storage.nbytes());
  if (made == nullptr) return false;
  void* const data = made->data;
  replace_data(storage, c10::DataPtr(data, made.release(), unmap, c10::Device(c10::kCPU)));
  if (!has_materializer(storage)) set_materializer(storage, before_writing);
  return true;
}

bool is_in_file(const c10::StorageImpl& storage) { return data_of(storage).get_deleter() == unmap; }

void move_to_memory(c10::StorageImpl& storage) {
  if (!is_in_file(storage)) return;
  c10::DataPtr memory = c10::GetCPUAllocator()->allocate(storage.nbytes());
  std::memcpy(memory.get(), storage.data_ptr().get(), storage.nbytes());
  clear_materializer(storage);
  storage.set_data_ptr_noswap(std::move(memory));
}

}  // namespace janus::torch
