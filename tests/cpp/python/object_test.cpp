// Owned references, errors of the C API, and what is read of objects.
#include "python/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedded/embedded_python.h"
#include "python/dict_keys.h"
#include "python/integer.h"

namespace janus {
namespace {

using embedded::evaluate;
using embedded::run;
using python::Object;

Py_ssize_t count_of(const Object& object) { return Py_REFCNT(object.get()); }

TEST(OwnedReference, CountsCopiesAndGivesThemBack) {
  const Object list = evaluate("[1]");
  ASSERT_EQ(count_of(list), 1);
  {
    const Object copy = list;
    const Object borrowed = Object::borrow(list.get());
    EXPECT_EQ(count_of(list), 3);
    EXPECT_TRUE(copy.is(borrowed.get()));
  }
  EXPECT_EQ(count_of(list), 1);
}

TEST(OwnedReference, MovesWithoutCounting) {
  Object list = evaluate("[1]");
  PyObject* const raw = list.get();
  Object moved = std::move(list);
  EXPECT_EQ(Py_REFCNT(raw), 1);
  EXPECT_TRUE(moved.is(raw));
  EXPECT_FALSE(list);  // NOLINT(bugprone-use-after-move): it is null then
  moved = evaluate("[2]");
  EXPECT_EQ(count_of(moved), 1);
}

TEST(OwnedReference, StealsAndReleasesOne) {
  PyObject* const raw = PyList_New(0);
  Object list = Object::steal(raw);
  EXPECT_EQ(Py_REFCNT(raw), 1);
  EXPECT_EQ(list.release(), raw);
  EXPECT_FALSE(list);
  EXPECT_EQ(Py_REFCNT(raw), 1);
  Py_DECREF(raw);
}

TEST(OwnedReference, MayBeNull) {
  const Object null = Object::borrow(nullptr), copy = null;
  EXPECT_FALSE(copy);
  EXPECT_EQ(copy.get(), nullptr);
}

TEST(Errors, ACallThatRaisesLeavesTheException) {
  EXPECT_THROW(evaluate("1 / 0"), python::ErrorSet);
  ASSERT_NE(PyErr_Occurred(), nullptr);
  EXPECT_EQ(python::take_error_message(), "ZeroDivisionError: division by zero");
  EXPECT_EQ(PyErr_Occurred(), nullptr);
  EXPECT_EQ(python::take_error_message(), "");
}

TEST(Errors, AScopeDropsItsOwnAndPutsTheOldOneBack) {
  PyErr_SetString(PyExc_KeyError, "old");
  {
    const python::ErrorScope scope;
    EXPECT_EQ(PyErr_Occurred(), nullptr);
    PyErr_SetString(PyExc_ValueError, "new");
  }
  EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_KeyError));
  PyErr_Clear();
  {
    const python::ErrorScope scope;
    PyErr_SetString(PyExc_ValueError, "new");
  }
  EXPECT_EQ(PyErr_Occurred(), nullptr);
}

TEST(Reading, WhatIsMissingIsNullAndNoError) {
  const Object object = run("class C: pass\nc = C()\nc.a = 1\n", "c");
  EXPECT_EQ(python::to_integer(python::attribute(object.get(), "a").get()), 1);
  EXPECT_FALSE(python::try_attribute(object.get(), "b"));
  EXPECT_FALSE(python::dict_item(evaluate("{'a': 1}").get(), "b"));
  EXPECT_EQ(PyErr_Occurred(), nullptr);
  EXPECT_THROW(python::attribute(object.get(), "b"), python::ErrorSet);
  PyErr_Clear();
}

TEST(Reading, AnAttributeThatRaisesIsAnError) {
  const Object object = run("class C:\n  @property\n  def a(self): return 1 / 0\nc = C()\n", "c");
  EXPECT_THROW(python::try_attribute(object.get(), "a"), python::ErrorSet);
  EXPECT_EQ(python::take_error_message(), "ZeroDivisionError: division by zero");
}

TEST(Reading, ElementsOfAnyIterable) {
  const auto elements = python::elements(evaluate("(i * 2 for i in range(3))").get());
  ASSERT_EQ(elements.size(), 3u);
  EXPECT_EQ(python::to_integer(elements[2].get()), 4);
  EXPECT_THROW(python::elements(evaluate("(1 // i for i in (1, 0))").get()), python::ErrorSet);
  PyErr_Clear();
}

TEST(Reading, TextsOfObjectsNeverRaise) {
  const Object object = run("class C:\n  def __repr__(self): return 1 / 0\nc = C()\n", "c");
  EXPECT_THAT(python::repr(object.get()), testing::HasSubstr("C"));
  EXPECT_EQ(PyErr_Occurred(), nullptr);
  EXPECT_EQ(python::type_name(object.get()), "C");
  EXPECT_EQ(python::to_string(evaluate("'\\udc80'").get()), "\xed\xb2\x80");
}

TEST(Reading, EqualityIsPythons) {
  EXPECT_TRUE(python::equal(evaluate("1").get(), evaluate("1.0").get()));
  EXPECT_FALSE(python::equal(evaluate("float('nan')").get(), evaluate("1").get()));
}

TEST(Reading, IntegersThatFit64Bits) {
  EXPECT_EQ(python::int64_of(evaluate("-2**63").get()), INT64_MIN);
  EXPECT_EQ(python::int64_of(evaluate("2**63").get()), std::nullopt);
  EXPECT_EQ(PyErr_Occurred(), nullptr);
}

TEST(Reading, KeysInTheOrderOfTheDict) {
  const std::string moved =
      "import collections\nd = collections.OrderedDict(a=1, b=2, c=3)\n"
      "d.move_to_end('a')\n";
  std::string keys;
  for (const Object& key : python::keys_in_order(run(moved, "d").get()))
    keys += python::to_string(key.get());
  EXPECT_EQ(keys, "bca");
}

TEST(WeakReferences, DieWithTheirObject) {
  Object object = run("class C: pass\nc = C()\n", "c");
  ASSERT_TRUE(python::is_weakly_referable(object.get()));
  const Object weak = python::weak_reference(object.get());
  EXPECT_TRUE(python::referent(weak.get()).is(object.get()));
  object = {};
  EXPECT_FALSE(python::referent(weak.get()));
  EXPECT_FALSE(python::is_weakly_referable(evaluate("(1, 2)").get()));
  EXPECT_FALSE(python::weak_reference(evaluate("3").get()));
}

}  // namespace
}  // namespace janus
