// The version of a dict: a number in memory that changes whenever the dict does. No two dicts have
// one number, also one after the other. Whoever remembers the number and its place sees by one
// comparison that nothing has changed.
//
// CPython 3.11 has such a number in each dict. Since 3.12 dicts are watched: a function of ours is
// called before each change, and makes a new number. Attributes may lie in the object itself since
// then, with a dict that shows them. Changes of such attributes are told since 3.13.1: 3.13.0 has
// no versions.
#pragma once

#include <cstdint>
#include <memory>

#include "python/object.h"
#include "python/version.h"

namespace janus::python {

class DictVersion {
 public:
  /// Whether there are any: with another CPython, or when all its watchers are taken, there are
  /// not.
  static bool exist();

  explicit DictVersion(PyObject* dict);

  /// Where the number is. It may be read as long as this lives and, in 3.11, the dict.
  const void* place() const { return place_; }

  /// `dict`, which is alive, is where the dict was: the same one, or another one after its death.
  /// Then the place is another, too.
  void renew(PyObject* dict);

 private:
#if TORCHJANUS_SINCE_3_12
  struct Watched;
  friend struct WatchedDicts;
  std::shared_ptr<Watched> watched_;
#endif
  const void* place_;
};

}  // namespace janus::python
