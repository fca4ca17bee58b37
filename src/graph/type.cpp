#include "graph/type.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "graph/quote.h"

namespace janus::graph {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int64_t byte_size;
};

constexpr std::array dtype_rows = {
    DTypeRow{DType::f16, "f16", 2}, DTypeRow{DType::bf16, "bf16", 2},
    DTypeRow{DType::f32, "f32", 4}, DTypeRow{DType::f64, "f64", 8},
    DTypeRow{DType::u8, "u8", 1},   DTypeRow{DType::i8, "i8", 1},
    DTypeRow{DType::i16, "i16", 2}, DTypeRow{DType::i32, "i32", 4},
    DTypeRow{DType::i64, "i64", 8}, DTypeRow{DType::b1, "b1", 1},
    DTypeRow{DType::c64, "c64", 8}, DTypeRow{DType::c128, "c128", 16},
};

const DTypeRow& row(DType dtype) {
  const auto found = std::find_if(dtype_rows.begin(), dtype_rows.end(),
                                  [&](const DTypeRow& one) { return one.dtype == dtype; });
  TORCHJANUS_CHECK(found != dtype_rows.end(), "dtype: no such element type");
  return *found;
}

Type plain(Type::Kind kind) {
  Type type;
  type.kind = kind;
  return type;
}

void print_elements(std::ostream& out, std::string_view name, const std::vector<Type>& elements) {
  out << name << '<';
  for (size_t i = 0; i < elements.size(); ++i) out << (i == 0 ? "" : ",") << elements[i];
  out << '>';
}

}  // namespace

std::string_view name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_named(std::string_view text) {
  for (const DTypeRow& one : dtype_rows)
    if (one.name == text) return one.dtype;
  return std::nullopt;
}

int64_t byte_size(DType dtype) { return row(dtype).byte_size; }

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

DType widened(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

bool is_floating(DType dtype) {
  return is_half(dtype) || dtype == DType::f32 || dtype == DType::f64;
}

bool is_complex(DType dtype) { return dtype == DType::c64 || dtype == DType::c128; }

bool is_integral(DType dtype) {
  return !is_floating(dtype) && !is_complex(dtype) && dtype != DType::b1;
}

Type Type::tensor(DType dtype, Shape shape) {
  Type type = plain(Kind::tensor);
  type.dtype = dtype;
  type.shape = std::move(shape);
  return type;
}

Type Type::i64() { return plain(Kind::i64); }
Type Type::f64() { return plain(Kind::f64); }
Type Type::boolean() { return plain(Kind::boolean); }
Type Type::str() { return plain(Kind::str); }
Type Type::none() { return plain(Kind::none); }
Type Type::frame() { return plain(Kind::frame); }

Type Type::list(Type element) {
  Type type = plain(Kind::list);
  type.elements.push_back(std::move(element));
  return type;
}

Type Type::object(std::string class_name) {
  Type type = plain(Kind::object);
  type.class_name = std::move(class_name);
  return type;
}

bool carries_gradient(const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor:
      return is_differentiable(type.dtype);
    case Type::Kind::frame:
      return true;
    case Type::Kind::tuple:
    case Type::Kind::list:
      return std::any_of(type.elements.begin(), type.elements.end(), carries_gradient);
    default:
      return false;
  }
}

std::ostream& operator<<(std::ostream& out, const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor:
      out << name(type.dtype) << '[';
      for (size_t i = 0; i < type.shape.size(); ++i) out << (i == 0 ? "" : ",") << type.shape[i];
      return out << ']';
    case Type::Kind::i64:
      return out << "i64";
    case Type::Kind::f64:
      return out << "f64";
    case Type::Kind::boolean:
      return out << "bool";
    case Type::Kind::str:
      return out << "str";
    case Type::Kind::none:
      return out << "none";
    case Type::Kind::frame:
      return out << "frame";
    case Type::Kind::object:
      return out << "object<" << word_or_quoted(type.class_name) << '>';
    case Type::Kind::tuple:
      print_elements(out, "tuple", type.elements);
      return out;
    case Type::Kind::list:
      print_elements(out, "list", type.elements);
      return out;
  }
  return out;
}

std::string to_string(const Type& type) { return cat(type); }

}  // namespace janus::graph
