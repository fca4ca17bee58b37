// From a function to its tree: by its code, in whatever text it stands.
#include "syntax/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedded/embedded_python.h"
#include "syntax/excerpt.h"
#include "syntax/prompt.h"

namespace janus {
namespace {

using embedded::evaluate;
using embedded::run;
using python::Object;
using namespace syntax;

int64_t number_in(const Source& source) {
  const auto& sum = as<BinOp>(source.tree->lambda->body);
  return python::to_integer(as<Constant>(sum.right).value.get());
}

TEST(Source, TwoLambdasOnOneLineAreToldApart) {
  const Object both = run("both = [lambda x: x + 1, lambda x: x + 2]\n", "both");
  EXPECT_EQ(number_in(source_of(PyList_GET_ITEM(both.get(), 0))), 1);
  EXPECT_EQ(number_in(source_of(PyList_GET_ITEM(both.get(), 1))), 2);
}

TEST(Source, MethodsKnowTheirClass) {
  const Object f = run("class C:\n  @staticmethod\n  def f(x): return __y\nf = C.f\n", "f");
  const Source& source = source_of(f.get());
  ASSERT_NE(source.tree, nullptr) << source.why_not;
  EXPECT_EQ(source.tree->name, "C.f");
  EXPECT_EQ(source.tree->class_name, "C");
  EXPECT_EQ(source.tree->mangle("__y"), "_C__y");
}

TEST(Source, IsCachedByCode) {
  const Object f = run("def f(): pass\n", "f");
  EXPECT_EQ(&source_of(f.get()), &source_of(f.get()));
}

TEST(Source, WhatHasNoTextSaysSo) {
  const Source& source = source_of(evaluate("lambda: 1").get());
  EXPECT_EQ(source.tree, nullptr);
  EXPECT_FALSE(source.why_not.empty());
  EXPECT_EQ(PyErr_Occurred(), nullptr);
}

TEST(Source, AnotherTextThanTheCodesIsNotBelieved) {
  const Object f = run("def f(): return 1\n", "f");
  const Object code = python::attribute(f.get(), "__code__");
  const Object cache = python::import_attribute("linecache", "cache");
  const Object file = python::attribute(code.get(), "co_filename");
  const Object entry = evaluate("(18, None, ['def f(): return 2\\n'], 'f')");
  python::check_status(PyObject_SetItem(cache.get(), file.get(), entry.get()));
  EXPECT_EQ(source_of(f.get()).tree, nullptr);
}

TEST(Source, ACopyHasTheSourceOfItsOriginal) {
  const Object f = run("def f(x): return x\n", "f");
  const Object copy = embedded::run("def g(x): return x + 0\n", "g");
  const Object original = python::attribute(f.get(), "__code__");
  const Object code = python::attribute(copy.get(), "__code__");
  note_copy(code.get(), original.get());
  EXPECT_EQ(original_code(code.get()), original.get());
  EXPECT_EQ(original_code(original.get()), original.get());
  EXPECT_EQ(source_of_code(code.get(), nullptr).tree, source_of(f.get()).tree);
}

TEST(Excerpt, TheInnermostClassByTheQualifiedName) {
  EXPECT_EQ(enclosing_class("C.f"), "C");
  EXPECT_EQ(enclosing_class("f.<locals>.C.D.g"), "D");
  EXPECT_EQ(enclosing_class("C.f.<locals>.g"), "C");
  EXPECT_EQ(enclosing_class("f"), "");
}

TEST(Excerpt, NamesThatImportsBind) {
  const Object lines = evaluate(
      "['import a.b, c as d  # e\\n', 'from f import (g,\\n', '    h as i)\\n', 'j = 1\\n']");
  EXPECT_THAT(imported_names(lines.get()), testing::ElementsAre("a", "d", "g", "i"));
}

TEST(Prompt, FilesThatKeepNoSource) {
  EXPECT_TRUE(is_prompt("<stdin>"));
  EXPECT_FALSE(is_prompt("train.py"));
}

}  // namespace
}  // namespace janus
