// Kernels for processors that this one may not be: LLVM's text of every operator is assembled for
// them by `llc`, and calls nothing that could not be linked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "../jit/temporary_folder.h"
#include "base/policy.h"
#include "jit/jit.h"
#include "kernels/compilation.h"
#include "kernels/emit.h"
#include "kernels/lower.h"
#include "ops/eager_arithmetic.h"
#include "single_operator.h"

namespace janus::kernels {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Processor {
  std::string triple, name;
  Target target;
};

bool is_function_of_neon(std::string_view name) {
  return name.starts_with("Sleef_") && (name.find("f4_u") != std::string_view::npos ||
                                        name.find("d2_u") != std::string_view::npos);
}

Processor arm64() {
  return {
      "aarch64-linux-gnu", "generic", {.vector_bytes = 16, .has_function = is_function_of_neon}};
}

/// torch's libraries have no functions on vectors of 16 bytes there.
Processor x86_without_avx2() {
  return {"x86_64-linux-gnu",
          "x86-64-v2",
          {.vector_bytes = 16, .has_fused_multiply_add = false, .has_function = {}}};
}

template <class Visit>
void for_each_line_of(const std::string& text, Visit&& visit) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) visit(line);
}

/// The name that begins at `start`; empty if there is none.
std::string name_at(const std::string& line, size_t start) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  };
  size_t end = start;
  while (end < line.size() && is_part(line[end])) ++end;
  return line.substr(start, end - start);
}

/// The texts of many kernels as one: what they define gets names of its own.
class Texts {
 public:
  void add(const std::string& kernel) {
    ++count_;
    const std::set<std::string> defined = names_defined(kernel);
    for_each_line_of(kernel, [&](const std::string& line) {
      if (line.starts_with("declare"))
        declarations_.insert(line);
      else if (!line.starts_with(";"))
        definitions_ += renamed(line, defined) + "\n";
    });
  }

  std::string text() const {
    std::string all;
    for (const std::string& declaration : declarations_) all += declaration + "\n";
    return all + definitions_;
  }
  int count() const { return count_; }

 private:
  static std::set<std::string> names_defined(const std::string& kernel) {
    std::set<std::string> names;
    for_each_line_of(kernel, [&](const std::string& line) {
      if (line.starts_with("define") || line.starts_with("@"))
        names.insert(name_at(line, line.find('@') + 1));
    });
    return names;
  }

  std::string renamed(const std::string& line, const std::set<std::string>& defined) const {
    std::string out;
    size_t done = 0;
    for (size_t at = line.find('@'); at != std::string::npos; at = line.find('@', at + 1)) {
      const std::string name = name_at(line, at + 1);
      if (!defined.contains(name)) continue;
      const size_t end = at + 1 + name.size();
      out += cat(line.substr(done, end - done), ".of.", count_);
      done = end;
    }
    return out + line.substr(done);
  }

  std::set<std::string> declarations_;
  std::string definitions_;
  int count_ = 0;
};

/// Of every operator and dtype, walked element by element in order; of one dtype also at strides,
/// and by several vectors side by side, as along the rows of reductions.
Texts kernels_for(const Target& target) {
  Texts texts;
  for (const graph::OpDef* op : ops::all()) {
    if (op->scalar == nullptr) continue;
    for (const DType dtype : kDTypes) {
      Single single;
      fill_block(single, *op, dtype);
      if (single.inner == nullptr || !can_compile(*single.inner)) continue;
      const LoopNest nest = lower_block(*single.fused->blocks.front());
      const auto add = [&](Walk walk, int registers = 1) {
        const std::vector<Walk> walks(nest.tensor_count(), walk);
        texts.add(emit(nest, {.walks = walks, .registers = registers}, target));
      };
      add(Walk::contiguous);
      if (dtype != DType::f32) continue;
      add(Walk::strided);
      add(Walk::contiguous, policy::kReductionVectors);
    }
  }
  return texts;
}

constexpr const char* kCompiler = "llc-19";

bool has_compiler() {
  static const bool found = std::system(cat(kCompiler, " --version > /dev/null 2>&1").c_str()) == 0;
  return found;
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class OtherProcessors : public jit::TestWithFolder {
 protected:
  /// Empty where LLVM refuses the text, which is a failure.
  std::string assembly_for(const Processor& processor, const std::string& text) const {
    const auto from = root_ / "kernels.ll", to = root_ / "kernels.s", errors = root_ / "errors";
    std::ofstream(from) << text;
    const std::string command =
        cat(kCompiler, " -O1 -mtriple=", processor.triple, " -mcpu=", processor.name, " -o ",
            to.string(), " ", from.string(), " 2> ", errors.string());
    EXPECT_EQ(std::system(command.c_str()), 0) << content(errors).substr(0, 2000);
    return content(to);
  }

  void check_every_operator(const Processor& processor) const;
};

/// What is called by name and not defined in the assembly.
std::set<std::string> functions_called(const std::string& assembly) {
  std::set<std::string> called, defined;
  for_each_line_of(assembly, [&](const std::string& line) {
    for (const std::string_view call : {"\tbl\t", "\tb\t", "\tcallq\t", "\tjmp\t"})
      if (line.starts_with(call)) called.insert(name_at(line, call.size()));
    const std::string label = name_at(line, 0);
    if (!label.empty() && line[label.size()] == ':') defined.insert(label);
  });
  std::erase_if(called,
                [&](const std::string& name) { return name.empty() || defined.contains(name); });
  return called;
}

bool is_linked(const Target& target, const std::string& name) {
  return (target.has_function && target.has_function(name)) ||
         jit::external_function(name) != nullptr;
}

void OtherProcessors::check_every_operator(const Processor& processor) const {
  const Texts texts = kernels_for(processor.target);
  EXPECT_GT(texts.count(), 300);
  const std::string assembly = assembly_for(processor, texts.text());
  for (const std::string& name : functions_called(assembly))
    EXPECT_TRUE(is_linked(processor.target, name)) << name;
}

TEST_F(OtherProcessors, HaveKernelsForEveryOperatorOnArm64) {
  if (!has_compiler()) GTEST_SKIP() << "no " << kCompiler;
  check_every_operator(arm64());
}

#if defined(__x86_64__)  // by the functions of half precision that are linked there
TEST_F(OtherProcessors, HaveKernelsForEveryOperatorWithoutAvx2) {
  if (!has_compiler()) GTEST_SKIP() << "no " << kCompiler;
  check_every_operator(x86_without_avx2());
}

TEST_F(OtherProcessors, RefineRootsByEstimatesOfVectorsThatTheyHave) {
  if (!has_compiler()) GTEST_SKIP() << "no " << kCompiler;
  ops::EagerArithmetic& eager = ops::eager_arithmetic();
  eager.root_of_f32 = eager.root_of_f64 = ops::Root::refined;
  check_every_operator(x86_without_avx2());
  eager.root_of_f32 = eager.root_of_f64 = ops::Root::exact;
}
#endif

std::string text_of(std::string_view op, DType dtype, const Target& target) {
  Single single;
  fill_block(single, *ops::table().find(op), dtype);
  return emit(lower_block(*single.fused->blocks.front()),
              {.walks = std::vector<Walk>(2, Walk::contiguous)}, target);
}

TEST_F(OtherProcessors, HaveOurPolynomialsWhereProductsAndSumsAreRoundedOnce) {
  EXPECT_THAT(text_of("exp", DType::f32, arm64().target),
              HasSubstr("call <4 x float> @vector.exp("));
  EXPECT_THAT(text_of("exp", DType::f64, arm64().target),
              HasSubstr("call <2 x double> @Sleef_expd2_u10("));
  const std::string without = text_of("exp", DType::f32, x86_without_avx2().target);
  EXPECT_THAT(without, HasSubstr("call float @expf("));
  EXPECT_THAT(without, Not(HasSubstr("llvm.fma")));
}

}  // namespace
}  // namespace janus::kernels
