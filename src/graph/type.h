// Types of graph values.
//
//   f32[B,784]   tensor; dimensions as in graph/dim.h; rank 0 is f32[]
//   i64 f64 bool str none        Python scalars (i64: a Python int that fits; bool is its own type)
//   object<TreeNode>             a pointer into Python's heap, with the name of its class
//   tuple<...>, list<...>        containers of values
//   frame                        what a forward run keeps for its backward run
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dim.h"

namespace janus::graph {

/// Element types of tensors. The order is not semantic.
enum class DType : uint8_t { f16, bf16, f32, f64, u8, i8, i16, i32, i64, b1, c64, c128 };

std::string_view name(DType dtype);                       ///< "f32"; b1 is torch.bool
std::optional<DType> dtype_named(std::string_view text);  ///< inverse of name()
int64_t byte_size(DType dtype);
bool is_floating(DType dtype);  ///< f16 bf16 f32 f64
bool is_half(DType dtype);      ///< f16 bf16
/// The dtype in which values of `dtype` are computed with: f32 for f16 and bf16.
DType widened(DType dtype);
bool is_complex(DType dtype);
bool is_integral(DType dtype);  ///< u8..i64, not b1
inline bool is_differentiable(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

struct Type {
  enum class Kind : uint8_t { tensor, i64, f64, boolean, str, none, object, tuple, list, frame };

  Kind kind = Kind::none;
  DType dtype = DType::f32;    ///< tensors only
  Shape shape;                 ///< tensors only
  std::string class_name;      ///< objects only
  std::vector<Type> elements;  ///< tuples: each; lists: one, the element type

  static Type tensor(DType dtype, Shape shape);
  static Type i64();
  static Type f64();
  static Type boolean();
  static Type str();
  static Type none();
  static Type object(std::string class_name);
  static Type frame();
  static Type list(Type element);

  bool is_tensor() const { return kind == Kind::tensor; }
  bool is_number() const { return kind == Kind::i64 || kind == Kind::f64 || kind == Kind::boolean; }
  bool is_none() const { return kind == Kind::none; }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }

  friend bool operator==(const Type&, const Type&) = default;
};

/// Whether a value of this type can have a gradient: tensors of floating or complex elements, and
/// what may hold such tensors (frames; lists and tuples of what can have a gradient).
bool carries_gradient(const Type& type);

std::ostream& operator<<(std::ostream& out, const Type& type);
std::string to_string(const Type& type);

}  // namespace janus::graph
