// See dict_version.h.
#include "python/dict_version.h"

#include <unordered_map>

namespace janus::python {

#if TORCHJANUS_SINCE_3_12

struct DictVersion::Watched {
  uint64_t number = 0;       ///< another one after each change, which no other dict has had
  PyObject* dict = nullptr;  ///< null once it is dead
  ~Watched();
};

/// All dicts whose version somebody remembers, by address. Python's lock guards them: CPython calls
/// us in the thread that changes a dict.
struct WatchedDicts {
  using Watched = DictVersion::Watched;

  /// Never freed: dicts change until the process ends.
  static WatchedDicts& instance() {
    static auto* const all = new WatchedDicts;
    return *all;
  }

  /// Begins to watch the dict, unless it is watched.
  std::shared_ptr<Watched> watch(PyObject* dict) {
    std::weak_ptr<Watched>& place = by_address[dict];
    if (std::shared_ptr<Watched> known = place.lock()) return known;
    auto made = std::make_shared<Watched>();
    made->number = ++last_number;
    made->dict = dict;
    place = made;
    check_status(PyDict_Watch(watcher, dict));
    return made;
  }

  std::unordered_map<PyObject*, std::weak_ptr<Watched>> by_address;
  uint64_t last_number = 0;
  int watcher = add();

 private:
  static int add();
};

namespace {

/// Whether changes of all dicts are told.
bool are_told() { return Py_Version >> 8 != 0x030D00; }

int on_change(PyDict_WatchEvent event, PyObject* dict, PyObject* /*key*/, PyObject* /*value*/) {
  WatchedDicts& all = WatchedDicts::instance();
  const auto found = all.by_address.find(dict);
  if (found == all.by_address.end()) {  // nobody remembers it any more
    if (event != PyDict_EVENT_DEALLOCATED) PyDict_Unwatch(all.watcher, dict);
    return 0;
  }
  const auto watched = found->second.lock();
  watched->number = ++all.last_number;
  if (event == PyDict_EVENT_DEALLOCATED) {
    watched->dict = nullptr;
    all.by_address.erase(found);
  }
  return 0;
}

}  // namespace

int WatchedDicts::add() {
  const ErrorScope scope;  // there may be no watcher left
  return are_told() ? PyDict_AddWatcher(on_change) : -1;
}

DictVersion::Watched::~Watched() {
  if (dict != nullptr) WatchedDicts::instance().by_address.erase(dict);
}

bool DictVersion::exist() { return WatchedDicts::instance().watcher >= 0; }

DictVersion::DictVersion(PyObject* dict)
    : watched_(WatchedDicts::instance().watch(dict)), place_(&watched_->number) {}

void DictVersion::renew(PyObject* dict) {
  if (watched_->dict != dict) *this = DictVersion(dict);
}

#else

bool DictVersion::exist() { return true; }

DictVersion::DictVersion(PyObject* dict)
    : place_(&reinterpret_cast<PyDictObject*>(dict)->ma_version_tag) {}

void DictVersion::renew(PyObject* /*dict*/) {}

#endif

}  // namespace janus::python
