// The JIT compiles text, links it to library functions, reports LLVM's diagnostics, and works from
// several threads.
#include "jit/jit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "base/check.h"

namespace janus::jit {
namespace {

template <class Function>
Function* compile_as(const std::string& text, const std::string& symbol = "f") {
  return reinterpret_cast<Function*>(compile(text, symbol));
}

std::string message_of(const std::string& text, const std::string& symbol = "f") {
  try {
    compile(text, symbol);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Jit, CompilesAFunction) {
  auto* add = compile_as<int(int, int)>(
      "define i32 @f(i32 %a, i32 %b) {\n  %c = add i32 %a, %b\n  ret i32 %c\n}\n");
  EXPECT_EQ(add(2, 3), 5);
}

TEST(Jit, TellsWhatCompilationsTook) {
  // A text that no process before has left on disk.
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string text =
      cat("define i64 @f(i64 %a) {\n  %c = mul i64 %a, ", now, "\n  ret i64 %c\n}\n");
  const size_t before = compilation_seconds().size();
  compile(text, "f");
  compile(text, "f");  // which is there
  const std::vector<double> seconds = compilation_seconds();
  ASSERT_EQ(seconds.size(), before + 1);
  EXPECT_GT(seconds.back(), 0);
}

TEST(Jit, TheSameSymbolMayBeDefinedTwice) {
  auto* one = compile_as<int()>("define i32 @f() {\n  ret i32 1\n}\n");
  auto* two = compile_as<int()>("define i32 @f() {\n  ret i32 2\n}\n");
  EXPECT_EQ(one() + two(), 3);
}

TEST(Jit, CallsTheMathsLibrary) {
  auto* f = compile_as<double(double)>(
      "declare double @cosh(double)\n"
      "define double @f(double %x) {\n  %y = call double @cosh(double %x)\n  ret double %y\n}\n");
  EXPECT_EQ(f(0.5), std::cosh(0.5));
}

TEST(Jit, ResolvesWhatTheCodeGeneratorCalls) {
  auto* f = compile_as<float(float, float)>(
      "define float @f(float %x, float %y) {\n  %r = frem float %x, %y\n  ret float %r\n}\n");
  EXPECT_EQ(f(7.5f, 2.0f), 1.5f);
}

TEST(Jit, ReportsWhereTheTextIsWrong) {
  EXPECT_THAT(message_of("define i32 @f() {\n  ret i32 1.0\n}\n"),
              testing::AllOf(testing::HasSubstr("kernel.ll:2:11"),
                             testing::HasSubstr("floating point constant invalid for type")));
}

TEST(Jit, ReportsUnknownFunctions) {
  EXPECT_THAT(message_of("declare void @janus_no_such_function()\n"
                         "define void @f() {\n  call void @janus_no_such_function()\n"
                         "  ret void\n}\n"),
              testing::HasSubstr("janus_no_such_function"));
  EXPECT_THAT(message_of("define void @g() {\n  ret void\n}\n"),
              testing::HasSubstr("does not define @f"));
}

TEST(Jit, WorksOnAfterAnError) {
  EXPECT_NE(message_of("nonsense"), "no error");
  EXPECT_EQ(compile_as<int()>("define i32 @f() {\n  ret i32 7\n}\n")(), 7);
}

TEST(Jit, SeveralThreadsCompileAtOnce) {
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&right, t] {
      for (int i = 0; i < 5; ++i) {
        const int number = 10 * t + i;
        auto* f = compile_as<int()>(cat("define i32 @f() {\n  ret i32 ", number, "\n}\n"));
        if (f() == number) ++right;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 20);
}

TEST(Jit, KnowsTheHost) {
  EXPECT_THAT(vector_bytes(), testing::AnyOf(16, 32, 64));
  EXPECT_EQ(external_function("janus_no_such_function"), nullptr);
  EXPECT_NE(external_function("expf"), nullptr);
  EXPECT_THAT(assembly("define i32 @f() {\n  ret i32 7\n}\n"), testing::HasSubstr("f:"));
}

}  // namespace
}  // namespace janus::jit
