#include "graph/signature.h"

#include <gtest/gtest.h>

namespace janus::graph {
namespace {

using Kind = Parameter::Kind;

AttributeValue default_of(const std::string& parameter) {
  return *parse_signature("(" + parameter + ") -> Tensor").parameters.at(0).default_value;
}

TEST(Signature, tells_operands_from_attributes) {
  const Signature signature = parse_signature(
      "(Tensor self, Tensor? weight=None, Tensor[] rest, *, Scalar alpha=1, int dim, str mode='a', "
      "ScalarType? dtype=None, Layout? layout=None, bool? pin_memory=None) -> (Tensor, Tensor)");
  EXPECT_EQ(signature.operands().size(), 4u);
  EXPECT_EQ(signature.attributes().size(), 5u);
  EXPECT_EQ(signature.result_count, 2);
  EXPECT_TRUE(signature.find("weight")->optional);
  EXPECT_FALSE(signature.find("rest")->keyword_only);
  EXPECT_TRUE(signature.find("alpha")->keyword_only);
  EXPECT_EQ(signature.find("rest")->kind, Kind::tensor_list);
  EXPECT_EQ(signature.find("layout")->kind, Kind::ignored);
  EXPECT_EQ(signature.find("pin_memory")->kind, Kind::ignored);
  EXPECT_EQ(signature.find("nothing"), nullptr);
}

TEST(Signature, reads_defaults) {
  EXPECT_EQ(default_of("int[2] stride=1"), AttributeValue(Shape{1, 1}));
  EXPECT_EQ(default_of("SymInt[2] padding=[0, 3]"), AttributeValue(Shape{0, 3}));
  EXPECT_EQ(default_of("int[1]? dim=None"), AttributeValue(None{}));
  EXPECT_EQ(default_of("int[] dims=[]"), AttributeValue(Shape{}));
  EXPECT_EQ(default_of("float eps=1e-05"), AttributeValue(1e-05));
  EXPECT_EQ(default_of("float p=1"), AttributeValue(1.0));
  EXPECT_EQ(default_of("Scalar beta=1"), AttributeValue(int64_t{1}));
  EXPECT_EQ(default_of("bool flag=True"), AttributeValue(true));
  EXPECT_EQ(default_of("bool[3] mask=[True, False, True]"),
            AttributeValue(std::vector<bool>{true, false, true}));
  EXPECT_EQ(default_of("str reduction='mean'"), AttributeValue(std::string("mean")));
  EXPECT_EQ(default_of("str reduction=\"mean\""), AttributeValue(std::string("mean")));
  EXPECT_EQ(default_of("int reduction=Mean"), AttributeValue(int64_t{1}));
  EXPECT_EQ(default_of("float[]? scales=None"), AttributeValue(None{}));
  EXPECT_EQ(default_of("ScalarType dtype=long"), AttributeValue(DType::i64));
}

TEST(Signature, reads_torchs_own_schemas) {
  const Signature conv = parse_signature(
      "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] "
      "padding=0, SymInt[2] dilation=1, SymInt groups=1) -> Tensor");
  EXPECT_EQ(conv.parameters.size(), 7u);
  EXPECT_EQ(conv.find("stride")->list_size, 2);
  const Signature in_place = parse_signature(
      "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  EXPECT_EQ(in_place.parameters.size(), 3u);
  EXPECT_EQ(parse_signature("split(Tensor(a -> *) self, int n) -> Tensor(a)[]").result_count, -1);
  EXPECT_EQ(parse_signature("max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)")
                .result_count,
            2);
  const Signature index = parse_signature("index(Tensor self, Tensor?[] indices) -> Tensor");
  EXPECT_TRUE(index.find("indices")->element_optional);
  EXPECT_FALSE(index.find("indices")->optional);
  EXPECT_EQ(parse_signature("(*, str cell) -> ()").result_count, 0);
}

TEST(Signature, the_empty_schema_is_free_form) {
  EXPECT_TRUE(parse_signature("").free_form);
  EXPECT_EQ(parse_signature("").result_count, -1);
}

TEST(Signature, malformed_schemas_are_refused_with_their_place) {
  for (const char* schema : {"(", "(Tensor) -> Tensor", "(Tenor x) -> Tensor", "(Tensor x)",
                             "(int x=foo) -> Tensor", "(int[2] x=[a]) -> Tensor",
                             "(Tensor x) -> Tensor junk(", "(int[99999999999] x=0) -> Tensor",
                             "(str x='open) -> Tensor", "(int x=99999999999999999999) -> Tensor"})
    EXPECT_THROW(parse_signature(schema), InternalError) << schema;
  try {
    parse_signature("(Tensor x, Tenor y) -> Tensor");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(),
                 "schema: 1:12: expected a type in \"(Tensor x, Tenor y) -> Tensor\"");
  }
}

}  // namespace
}  // namespace janus::graph
