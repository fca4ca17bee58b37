// Text of single instructions on vectors: types, arithmetic, conversions, calls, loads and stores.
// Which instruction stands where, emit.cpp decides; here is how it is written.
//
// The text is written by `line(format, arguments...)`: a format is LLVM text in which each `$`
// letter takes the next argument:
//
//   $v  value of an instruction         (int)    → %v7
//   $T  vector type it computes with    (DType)  → <16 x float>; <16 x i1> for b1, bits for bf16
//   $M  vector type in memory           (DType)  → <16 x i8> for b1
//   $E  element type in memory          (DType)  → float
//   $A  its alignment                   (DType)  → 4
//   $N  name of the vector type         (DType)  → v16f32: suffix of intrinsics
//   $s  text, $d  integer
//
// and `#` stands for the number of lanes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "kernels/loop_nest.h"
#include "kernels/target.h"
#include "kernels/walk.h"

namespace janus::kernels {

inline std::string_view element_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "half";
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::bf16:
    case DType::i16:
      return "i16";
    case DType::u8:
    case DType::i8:
    case DType::b1:
      return "i8";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    default:
      throw InternalError(cat("emit: no elements of ", graph::name(dtype)));
  }
}

/// As intrinsics' names have it: "f32", "i8".
inline std::string mangled(std::string_view type) {
  if (type == "half") return "f16";
  if (type == "float") return "f32";
  if (type == "double") return "f64";
  return std::string(type);
}

inline bool is_unsigned(DType dtype) { return dtype == DType::u8 || dtype == DType::b1; }
using graph::is_half;

template <class Visit>
void for_each_line(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    visit(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

using Argument = std::variant<int64_t, DType, std::string>;

class VectorText {
 protected:
  VectorText(const LoopNest& nest, const Target& target)
      : nest_(nest),
        target_(target),
        names_(nest.code.size()),
        places_(nest.tensor_count()),
        walks_(nest.tensor_count(), Walk::strided) {}

  // --- where the text stands

  enum class Mode : uint8_t { whole, masked };

  // --- writing -----------------------------------------------------------------------------------

  std::string expand(std::string_view format, std::initializer_list<Argument> arguments) const;
  std::string piece(char letter, const Argument& argument) const;
  void line(std::string_view format, std::initializer_list<Argument> arguments = {});
  void declare(std::string_view format, std::initializer_list<Argument> arguments = {});
  std::string vector_type(DType dtype) const;
  const Instruction& instruction(int id) const { return nest_.code[static_cast<size_t>(id)]; }
  std::string value_name(int id) const;
  void name_value(int id);
  void start_block(const std::string& label);
  static int64_t index(size_t i) { return static_cast<int64_t>(i); }
  std::string temporary() { return cat("%x", temporaries_++); }

  // --- instructions ------------------------------------------------------------------------------

  void emit_instruction(int id, bool along_lanes);
  static std::string_view binary_name(const Instruction& one);
  void emit_negation(int id, const Instruction& one);
  void emit_compare(int id, const Instruction& one);
  bool is_position_along_lanes(int id) const;
  void emit_compare_position(int id, const Instruction& one, const std::string& predicate);
  static std::string constant_literal(const Instruction& one);
  static int64_t narrowed(DType dtype, int64_t value);
  static std::string hexadecimal(uint64_t bits);
  void emit_number(int id, const Instruction& one);
  void emit_extent(int id, const Instruction& one);
  void emit_position(int id, const Instruction& one, bool along_lanes);
  void emit_splat(int id, DType dtype, const std::string& scalar);
  std::string splat(std::string_view element, const std::string& name);
  std::string lane_numbers(std::string_view element) const;

  // --- memory ------------------------------------------------------------------------------------

  std::string mask() const;
  void emit_load(int id, const Instruction& one, bool along_lanes);
  void emit_load_in_place(int id, const Instruction& one, bool along_lanes);

  // --- at indices that are computed

  void emit_check(const Instruction& one, bool along_lanes);
  size_t slot_of_failure() const { return nest_.numbers.size() + nest_.tensor_numbers.size(); }
  void move_to_look_up(const Instruction& one);
  void emit_scattered_load(int id, const Instruction& one);
  std::string lane_places(size_t tensor, DType dtype);
  std::string mask_with(int condition);
  std::string place_if(int condition, const std::string& place, bool first);
  void find_same_in_lanes();
  bool is_same_in_lanes(int id) const { return same_in_lanes_[static_cast<size_t>(id)]; }
  std::string same_place(size_t tensor, DType dtype);
  void emit_contiguous_load(const std::string& name, size_t tensor, DType dtype, int condition);
  std::string strided_places(size_t tensor, DType dtype);
  void emit_pick(int id, const Instruction& one, bool along_lanes);
  std::string column_stride(size_t tensor) const;
  std::string lane_stride(size_t tensor) const;
  void emit_gather_from(const std::string& name, const std::string& places, DType dtype,
                        std::string mask);
  void emit_store(size_t i, bool along_lanes);
  void emit_contiguous_store(const std::string& value, size_t tensor, DType dtype);
  void emit_scatter(const std::string& value, size_t tensor, DType dtype);

  // --- conversions -------------------------------------------------------------------------------

  void emit_convert(int id, const Instruction& one);
  static std::string_view cast_name(DType from, DType to);
  void emit_to_bool(int id, int from_id, DType from);
  void emit_truncation(int id, int from_id, DType from, DType to);
  void emit_from_bf16(int id, int from_id);
  void emit_to_bf16(int id, int from_id);

  // --- functions ---------------------------------------------------------------------------------

  void emit_call(int id, const Instruction& one, bool along_lanes);
  void emit_narrow_call(int id, const Instruction& one, int lanes);
  static std::string consecutive_lanes(int first, int count);
  bool is_widened(const Function& function, DType dtype) const;
  std::string callee(const Function& function, DType dtype);
  std::string callee_of_refined_root_of_doubles();
  std::string parameters(const Function& function, DType dtype) const;
  std::string lane_by_lane(const Function& function, DType dtype);

  const LoopNest& nest_;
  const Target& target_;
  int lanes_ = 0;
  int reduced_loops_ = 0;
  Mode mode_ = Mode::whole;
  std::string block_;                ///< label of the block at hand
  std::string position_;             ///< first element of the current vector in the row
  std::vector<std::string> names_;   ///< of each instruction's value
  std::vector<std::string> places_;  ///< of each tensor: where the row at hand begins
  std::vector<Walk> walks_;
  uint32_t past_cache_ = 0;          ///< bit t: tensor t is stored so
  std::vector<bool> same_in_lanes_;  ///< of each instruction
  std::string body_;
  std::set<std::string> declarations_;
  std::set<std::string> helpers_;

 private:
  std::map<int, int> times_;
  int temporaries_ = 0;
};

}  // namespace janus::kernels
