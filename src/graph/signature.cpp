// A recursive-descent parser of schemas. It accepts what torch's own schemas look like, with or
// without the operator's name in front; alias marks such as `(a!)` mean nothing here.
#include "graph/signature.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/cursor.h"

namespace janus::graph {
namespace {

using Kind = Parameter::Kind;

class SignatureParser {
 public:
  explicit SignatureParser(std::string_view schema) : cursor_(schema) {}

  Signature parse() {
    if (cursor_.peek() != '(') skip_name();
    expect("(");
    bool keyword_only = false;
    while (!cursor_.take(")")) {
      if (!signature_.parameters.empty() || keyword_only) expect(",");
      if (!keyword_only && cursor_.take("*")) {
        keyword_only = true;
        if (cursor_.take(")")) break;
        if (signature_.parameters.empty())
          expect(",");
        else
          continue;
      }
      Parameter parameter = parse_parameter();
      parameter.keyword_only = keyword_only;
      signature_.parameters.push_back(std::move(parameter));
    }
    parse_results();
    if (!cursor_.at_end()) fail("end of the schema");
    return std::move(signature_);
  }

 private:
  [[noreturn]] void fail(std::string_view expected) {
    throw InternalError(
        cat("schema: ", cursor_.place(), ": expected ", expected, " in \"", cursor_.text(), "\""));
  }

  void expect(std::string_view token) {
    if (!cursor_.take(token)) fail(cat('\'', token, '\''));
  }

  void skip_name() {
    while (!cursor_.word(true).empty() || cursor_.take("::")) {
    }
  }

  /// `(a!)`, `(a -> *)`, `(a|b)` after a type.
  void skip_alias_marks() {
    if (!cursor_.take("(")) return;
    while (!cursor_.at_end() && !cursor_.take(")")) cursor_.step();
  }

  static std::optional<Kind> kind_of(std::string_view type) {
    struct Row {
      std::string_view type;
      Kind kind;
    };
    constexpr Row rows[] = {
        {"Tensor", Kind::tensor},   {"Scalar", Kind::scalar},        {"float", Kind::floating},
        {"int", Kind::integer},     {"SymInt", Kind::integer},       {"bool", Kind::boolean},
        {"str", Kind::string},      {"ScalarType", Kind::dtype},     {"Layout", Kind::ignored},
        {"Device", Kind::ignored},  {"MemoryFormat", Kind::ignored}, {"Generator", Kind::ignored},
        {"Dimname", Kind::ignored}, {"Storage", Kind::ignored},      {"Stream", Kind::ignored},
        {"QScheme", Kind::ignored}, {"DeviceIndex", Kind::ignored},  {"SymBool", Kind::boolean},
    };
    for (const Row& row : rows)
      if (row.type == type) return row.kind;
    return std::nullopt;
  }

  static Kind list_of(Kind element) {
    switch (element) {
      case Kind::tensor:
        return Kind::tensor_list;
      case Kind::integer:
        return Kind::integer_list;
      case Kind::boolean:
        return Kind::boolean_list;
      case Kind::floating:
      case Kind::scalar:
        return Kind::floating_list;
      default:
        return Kind::ignored;
    }
  }

  int parse_list_size(std::string_view text) {
    constexpr int largest = 64;  // tensors have fewer dimensions
    int size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size() || size < 0 || size > largest)
      fail("the length of a list");
    return size;
  }

  void parse_type(Parameter& parameter) {
    const size_t start = cursor_.offset();
    const auto kind = kind_of(cursor_.word());
    if (!kind) {
      cursor_.move_to(start);
      fail("a type");
    }
    parameter.kind = *kind;
    skip_alias_marks();
    while (true) {
      if (cursor_.take("?")) {
        parameter.optional = true;
      } else if (cursor_.take("[")) {
        parameter.kind = list_of(parameter.kind);
        parameter.element_optional = std::exchange(parameter.optional, false);
        if (const auto size = cursor_.number(); !size.empty())
          parameter.list_size = parse_list_size(size);
        expect("]");
        skip_alias_marks();
      } else {
        return;
      }
    }
  }

  Parameter parse_parameter() {
    Parameter parameter;
    parse_type(parameter);
    parameter.name = cursor_.word();
    if (parameter.name.empty()) fail("a parameter's name");
    if (parameter.name == "pin_memory") parameter.kind = Kind::ignored;
    if (cursor_.take("=")) parameter.default_value = parse_default(parameter);
    return parameter;
  }

  AttributeValue parse_number() {
    const std::string text(cursor_.number());
    if (text.empty()) fail("a number");
    if (text.find_first_of(".eE") != std::string::npos) return std::strtod(text.c_str(), nullptr);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) fail("a number of 64 bits");
    return value;
  }

  std::string parse_string(char quote) {
    cursor_.step();
    std::string text;
    for (; cursor_.raw() != quote; cursor_.step()) {
      if (cursor_.raw_end()) fail("a closing quote");
      text += cursor_.raw();
    }
    cursor_.step();
    return text;
  }

  /// A word: a constant of torch's enumerations, or a dtype by its C++ or Python name.
  AttributeValue parse_word() {
    const size_t start = cursor_.offset();
    const std::string_view word = cursor_.word();
    if (word == "None") return None{};
    if (word == "True") return true;
    if (word == "False") return false;
    if (word == "Mean") return int64_t{1};
    if (word == "Sum") return int64_t{2};
    if (word == "inf") return std::strtod("inf", nullptr);
    if (word == "long") return DType::i64;
    if (word == "float") return DType::f32;
    if (const auto dtype = dtype_named(word)) return *dtype;
    if (word == "strided" || word == "contiguous_format" || word == "preserve_format" ||
        word == "cpu")
      return std::string(word);
    cursor_.move_to(start);
    fail("a default value");
  }

  AttributeValue parse_simple() {
    const char next = cursor_.peek();
    if (next == '"' || next == '\'') return parse_string(next);
    if (next == '-' || next == '+' || next == '.' || (next >= '0' && next <= '9'))
      return parse_number();
    return parse_word();
  }

  std::vector<AttributeValue> parse_list() {
    std::vector<AttributeValue> list;
    expect("[");
    while (!cursor_.take("]")) {
      if (!list.empty()) expect(",");
      list.push_back(parse_simple());
    }
    return list;
  }

  double as_double(const AttributeValue& value) {
    if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
    if (const auto* number = std::get_if<double>(&value)) return *number;
    fail("a number");
  }

  template <class T>
  T as(const AttributeValue& value, std::string_view expected) {
    if (const T* typed = std::get_if<T>(&value)) return *typed;
    fail(expected);
  }

  AttributeValue parse_list_default(const Parameter& parameter) {
    std::vector<AttributeValue> values;
    if (cursor_.peek() == '[') {
      values = parse_list();
    } else {
      AttributeValue one = parse_simple();
      if (std::holds_alternative<None>(one)) return one;
      values.assign(static_cast<size_t>(std::max(parameter.list_size, 1)), one);
    }
    if (parameter.kind == Kind::integer_list) {
      Shape result;
      for (const auto& value : values) result.emplace_back(as<int64_t>(value, "an int"));
      return result;
    }
    if (parameter.kind == Kind::floating_list) {
      std::vector<double> result;
      for (const auto& value : values) result.push_back(as_double(value));
      return result;
    }
    if (parameter.kind == Kind::boolean_list) {
      std::vector<bool> result;
      for (const auto& value : values) result.push_back(as<bool>(value, "a bool"));
      return result;
    }
    if (!values.empty()) fail("an empty list");
    return Shape{};
  }

  AttributeValue parse_default(const Parameter& parameter) {
    switch (parameter.kind) {
      case Kind::integer_list:
      case Kind::floating_list:
      case Kind::boolean_list:
      case Kind::tensor_list:
        return parse_list_default(parameter);
      case Kind::floating: {
        const AttributeValue value = parse_simple();
        if (std::holds_alternative<None>(value)) return value;
        return as_double(value);
      }
      default:
        return parse_simple();
    }
  }

  void parse_results() {
    expect("->");
    if (cursor_.take("(")) {
      signature_.result_count = 0;
      while (!cursor_.take(")")) {
        if (signature_.result_count > 0) expect(",");
        parse_result();
        if (signature_.result_count >= 0)
          ++signature_.result_count;
        else if (cursor_.peek() != ')')
          fail("a list to be the only result");
      }
    } else {
      parse_result();
    }
  }

  void parse_result() {
    Parameter result;
    parse_type(result);
    if (result.kind == Kind::tensor_list) signature_.result_count = -1;
    cursor_.word();
  }

  Cursor cursor_;
  Signature signature_;
};

std::vector<const Parameter*> select(const std::vector<Parameter>& parameters, bool operands) {
  std::vector<const Parameter*> result;
  for (const Parameter& parameter : parameters)
    if (parameter.is_operand() == operands) result.push_back(&parameter);
  return result;
}

}  // namespace

const Parameter* Signature::find(std::string_view name) const {
  for (const Parameter& parameter : parameters)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

std::vector<const Parameter*> Signature::operands() const { return select(parameters, true); }
std::vector<const Parameter*> Signature::attributes() const { return select(parameters, false); }

Signature parse_signature(std::string_view schema) {
  if (schema.empty()) {
    Signature result;
    result.result_count = -1;
    result.free_form = true;
    return result;
  }
  return SignatureParser(schema).parse();
}

}  // namespace janus::graph
