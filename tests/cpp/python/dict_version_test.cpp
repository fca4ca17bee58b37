// Versions of dicts: each change is seen, and no dict is taken for another one.
#include "python/dict_version.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "embedded/embedded_python.h"
#include "python/lock.h"

namespace janus {
namespace {

using embedded::evaluate;
using embedded::run;
using python::DictVersion;
using python::Object;

uint64_t number_of(const DictVersion& version) {
  uint64_t number = 0;
  std::memcpy(&number, version.place(), sizeof(number));
  return number;
}

/// Runs a statement with the object under the name `d`.
void apply(const std::string& statement, const Object& to) {
  python::call(run("def f(d):\n  " + statement, "f").get(), {to.get()});
}

class VersionOfDict : public testing::Test {
 protected:
  void SetUp() override {
    if (!DictVersion::exist()) GTEST_SKIP() << "this Python does not tell of changes";
    dict = evaluate("{'a': 1, 'b': 2}");
    version.emplace(dict.get());
    before = number_of(*version);
  }

  bool changes_by(const char* statement) {
    apply(statement, dict);
    const uint64_t number = number_of(*version);
    return std::exchange(before, number) != number;
  }

  Object dict;
  std::optional<DictVersion> version;
  uint64_t before = 0;
};

TEST_F(VersionOfDict, ChangesWithEachChangeOfTheDict) {
  EXPECT_TRUE(changes_by("d['c'] = 3"));
  EXPECT_TRUE(changes_by("d['a'] = 4"));
  EXPECT_TRUE(changes_by("del d['b']"));
  EXPECT_TRUE(changes_by("d.update(e=5)"));
  EXPECT_TRUE(changes_by("d.setdefault('f', 6)"));
  EXPECT_TRUE(changes_by("d.pop('f')"));
  EXPECT_TRUE(changes_by("d.popitem()"));
  EXPECT_TRUE(changes_by("d |= {'g': 7}"));
  EXPECT_TRUE(changes_by("d.clear()"));
  EXPECT_TRUE(changes_by("d.update({'h': 8})"));  // into an empty dict
}

TEST_F(VersionOfDict, StaysWhileTheDictIsOnlyRead) {
  EXPECT_FALSE(changes_by("d['a'], len(d), list(d.items()), 'x' in d, dict(d), d.get('y')"));
  EXPECT_FALSE(changes_by("{}['z'] = 1"));
  EXPECT_FALSE(changes_by("d.setdefault('a', 2)"));
}

TEST_F(VersionOfDict, IsOneForAllWhoAsk) {
  const DictVersion other(dict.get());
  EXPECT_EQ(other.place(), version->place());
}

TEST_F(VersionOfDict, SeesChangesByOtherThreads) {
  {
    const python::WithoutLock without;
    std::thread([this] {
      const python::WithLock with;
      apply("d['of a thread'] = 1", dict);
    }).join();
  }
  EXPECT_NE(number_of(*version), before);
}

TEST_F(VersionOfDict, OutlivesItsOwners) {
  version.reset();
  apply("d['nobody'] = 'asks'", dict);
  version.emplace(dict.get());
  before = number_of(*version);
  EXPECT_TRUE(changes_by("d['again'] = 1"));
}

/// Attributes may lie in the object, and its dict shows them.
TEST(VersionOfAttributes, ChangesWithThem) {
  if (!DictVersion::exist()) GTEST_SKIP() << "this Python does not tell of changes";
  const Object object =
      run("class C:\n  def __init__(self):\n    self.a = 1\n    self.b = 2\nc = C()", "c");
  PyObject** const place = _PyObject_GetDictPtr(object.get());
  ASSERT_NE(place, nullptr);
  const DictVersion version(*place);
  uint64_t before = number_of(version);
  for (const char* change : {"d.a = 3", "del d.b", "d.b = 4", "d.new = 5", "setattr(d, 'a', 6)",
                             "vars(d)['a'] = 7", "for i in range(100): d.a = i"}) {
    apply(change, object);
    EXPECT_NE(std::exchange(before, number_of(version)), number_of(version)) << change;
  }
}

/// Memory of a dead dict is given to the next one.
TEST(VersionOfDeadDict, IsNoneOfTheNextDictThere) {
  if (!DictVersion::exist()) GTEST_SKIP() << "this Python does not tell of changes";
  PyObject* dict = PyDict_New();
  DictVersion version(dict);
  const uint64_t before = number_of(version);
  PyObject* const address = dict;
  Py_DECREF(dict);
  dict = PyDict_New();
  if (dict != address) GTEST_SKIP() << "the dict lies elsewhere";
  version.renew(dict);
  const uint64_t fresh = number_of(version);
  EXPECT_NE(fresh, before);
  PyDict_SetItemString(dict, "a", Py_None);
  EXPECT_NE(number_of(version), fresh);
  Py_DECREF(dict);
}

}  // namespace
}  // namespace janus
