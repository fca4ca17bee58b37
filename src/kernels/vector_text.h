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

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <variant>

#include "base/check.h"
#include "kernels/emit.h"
#include "kernels/vector_math.h"

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

  std::string expand(std::string_view format, std::initializer_list<Argument> arguments) const {
    std::string out;
    const Argument* next = arguments.begin();
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] == '#') {
        out += std::to_string(lanes_);
      } else if (format[i] != '$') {
        out += format[i];
      } else {
        TORCHJANUS_CHECK(next != arguments.end(), "emit: too few arguments for ", format);
        out += piece(format[++i], *next++);
      }
    }
    TORCHJANUS_CHECK(next == arguments.end(), "emit: too many arguments for ", format);
    return out;
  }

  std::string piece(char letter, const Argument& argument) const {
    switch (letter) {
      case 'v':
        return value_name(static_cast<int>(std::get<int64_t>(argument)));
      case 'T':
        return vector_type(std::get<DType>(argument));
      case 'M':
        return cat("<", lanes_, " x ", element_type(std::get<DType>(argument)), ">");
      case 'E':
        return std::string(element_type(std::get<DType>(argument)));
      case 'A':
        return std::to_string(graph::byte_size(std::get<DType>(argument)));
      case 'N':
        return cat("v", lanes_, mangled(element_type(std::get<DType>(argument))));
      case 'd':
        return std::to_string(std::get<int64_t>(argument));
      case 's':
        return std::get<std::string>(argument);
      default:
        throw InternalError(cat("emit: no format letter ", letter));
    }
  }

  void line(std::string_view format, std::initializer_list<Argument> arguments = {}) {
    body_ += expand(format, arguments) + "\n";
  }

  void declare(std::string_view format, std::initializer_list<Argument> arguments = {}) {
    declarations_.insert(expand(format, arguments) + "\n");
  }

  std::string vector_type(DType dtype) const {
    return cat("<", lanes_, " x ", dtype == DType::b1 ? "i1" : element_type(dtype), ">");
  }

  const Instruction& instruction(int id) const { return nest_.code[static_cast<size_t>(id)]; }

  /// An instruction may be written several times: in every pass over a row, for whole vectors and
  /// for the rest. Its name is that of the last time.
  std::string value_name(int id) const {
    if (instruction(id).opcode == Opcode::constant) return constant_literal(instruction(id));
    return names_[static_cast<size_t>(id)];
  }
  void name_value(int id) {
    const int before = times_[id]++;
    names_[static_cast<size_t>(id)] = before == 0 ? cat("%v", id) : cat("%v", id, ".", before);
  }

  void start_block(const std::string& label) {
    line("$s:", {label});
    block_ = label;
  }
  static int64_t index(size_t i) { return static_cast<int64_t>(i); }

  std::string temporary() { return cat("%x", temporaries_++); }

  // --- instructions ------------------------------------------------------------------------------

  void emit_instruction(int id, bool along_lanes) {
    const Instruction& one = instruction(id);
    if (one.opcode != Opcode::constant) name_value(id);
    switch (one.opcode) {
      case Opcode::load:
        return emit_load(id, one, along_lanes);
      case Opcode::number:
        return emit_number(id, one);
      case Opcode::extent:
        return emit_extent(id, one);
      case Opcode::pick:
        return emit_pick(id, one, along_lanes);
      case Opcode::position:
        return emit_position(id, one, along_lanes);
      case Opcode::constant:
      case Opcode::reduce:
        return;
      case Opcode::convert:
        return emit_convert(id, one);
      case Opcode::neg:
        return emit_negation(id, one);
      case Opcode::compare:
        return emit_compare(id, one);
      case Opcode::select:
        return line("  $v = select $T $v, $T $v, $T $v",
                    {id, DType::b1, one.operands[0], one.dtype, one.operands[1], one.dtype,
                     one.operands[2]});
      case Opcode::call:
        return emit_call(id, one, along_lanes);
      default:
        return line("  $v = $s $T $v, $v", {id, std::string(binary_name(one)), one.dtype,
                                            one.operands[0], one.operands[1]});
    }
  }

  static std::string_view binary_name(const Instruction& one) {
    const bool floating = graph::is_floating(one.dtype);
    switch (one.opcode) {
      case Opcode::add:
        return floating ? "fadd" : "add";
      case Opcode::sub:
        return floating ? "fsub" : "sub";
      case Opcode::mul:
        return floating ? "fmul" : "mul";
      case Opcode::div:
        return floating ? "fdiv" : is_unsigned(one.dtype) ? "udiv" : "sdiv";
      case Opcode::rem:
        return is_unsigned(one.dtype) ? "urem" : "srem";
      case Opcode::bit_and:
        return "and";
      case Opcode::bit_or:
        return "or";
      case Opcode::bit_xor:
        return "xor";
      default:
        throw InternalError("emit: not a binary instruction");
    }
  }

  void emit_negation(int id, const Instruction& one) {
    if (graph::is_floating(one.dtype))
      line("  $v = fneg $T $v", {id, one.dtype, one.operands[0]});
    else
      line("  $v = sub $T zeroinitializer, $v", {id, one.dtype, one.operands[0]});
  }

  void emit_compare(int id, const Instruction& one) {
    static constexpr const char* kFloating[] = {"oeq", "une", "olt", "ole", "ogt", "oge"};
    static constexpr const char* kSigned[] = {"eq", "ne", "slt", "sle", "sgt", "sge"};
    static constexpr const char* kUnsigned[] = {"eq", "ne", "ult", "ule", "ugt", "uge"};
    const DType dtype = instruction(one.operands[0]).dtype;
    const bool floating = graph::is_floating(dtype);
    if (is_position_along_lanes(one.operands[0]) &&
        instruction(one.operands[1]).opcode == Opcode::constant)
      return emit_compare_position(id, one, kSigned[static_cast<size_t>(one.comparison)]);
    const auto& names = floating ? kFloating : is_unsigned(dtype) ? kUnsigned : kSigned;
    line("  $v = $s $s $T $v, $v", {id, std::string(floating ? "fcmp" : "icmp"),
                                    std::string(names[static_cast<size_t>(one.comparison)]), dtype,
                                    one.operands[0], one.operands[1]});
  }

  bool is_position_along_lanes(int id) const {
    const Instruction& one = instruction(id);
    return one.opcode == Opcode::position &&
           walks_[nest_.tensor_of_position(one.index)] == Walk::contiguous;
  }

  /// A lane's number against how far the first lane is from the limit: in 32 bits, since farther
  /// than all lanes is as good as just beyond them.
  void emit_compare_position(int id, const Instruction& one, const std::string& predicate) {
    declare("declare i64 @llvm.smin.i64(i64, i64)");
    declare("declare i64 @llvm.smax.i64(i64, i64)");
    const auto first = temporary(), far = temporary(), low = temporary(), distance = temporary(),
               narrow = temporary();
    const auto limit = std::bit_cast<int64_t>(instruction(one.operands[1]).bits);
    line("  $s = extractelement <# x i64> $v, i64 0", {first, one.operands[0]});
    line("  $s = sub i64 $d, $s", {far, limit, first});
    line("  $s = call i64 @llvm.smax.i64(i64 $s, i64 -1)", {low, far});
    line("  $s = call i64 @llvm.smin.i64(i64 $s, i64 #)", {distance, low});
    line("  $s = trunc i64 $s to i32", {narrow, distance});
    const std::string limits = splat("i32", narrow);
    line("  $v = icmp $s <# x i32> $s, $s", {id, predicate, lane_numbers("i32"), limits});
  }

  /// Constants are written where they are used.
  static std::string constant_literal(const Instruction& one) {
    if (one.dtype == DType::b1) return one.bits != 0 ? "splat (i1 true)" : "splat (i1 false)";
    std::string literal;
    if (one.dtype == DType::f32)
      literal = hexadecimal(std::bit_cast<uint64_t>(
          static_cast<double>(static_cast<float>(std::bit_cast<double>(one.bits)))));
    else if (one.dtype == DType::f64)
      literal = hexadecimal(one.bits);
    else
      literal = std::to_string(narrowed(one.dtype, std::bit_cast<int64_t>(one.bits)));
    return cat("splat (", element_type(one.dtype), " ", literal, ")");
  }

  static int64_t narrowed(DType dtype, int64_t value) {
    switch (dtype) {
      case DType::i8:
        return static_cast<int8_t>(value);
      case DType::u8:
        return static_cast<uint8_t>(value);
      case DType::i16:
        return static_cast<int16_t>(value);
      case DType::i32:
        return static_cast<int32_t>(value);
      default:
        return value;
    }
  }

  static std::string hexadecimal(uint64_t bits) {
    std::ostringstream out;
    out << "0x" << std::hex << std::uppercase;
    out.width(16);
    out.fill('0');
    out << bits;
    return out.str();
  }

  void emit_number(int id, const Instruction& one) {
    const auto slot = temporary(), raw = temporary();
    line("  $s = getelementptr i64, ptr %numbers, i64 $d", {slot, int64_t{one.index}});
    line("  $s = load $E, ptr $s", {raw, one.dtype, slot});
    emit_splat(id, one.dtype, raw);
  }

  void emit_extent(int id, const Instruction& one) {
    const auto slot = temporary(), size = temporary();
    line("  $s = getelementptr i64, ptr %extents, i64 $d", {slot, int64_t{one.index}});
    line("  $s = load i64, ptr $s", {size, slot});
    emit_splat(id, DType::i64, size);
  }

  void emit_position(int id, const Instruction& one, bool along_lanes) {
    const size_t tensor = nest_.tensor_of_position(one.index);
    const Walk walk = along_lanes ? walks_[tensor] : Walk::broadcast;
    const auto first = temporary();
    line("  $s = ptrtoint ptr $s to i64", {first, places_[tensor]});
    if (walk == Walk::broadcast) return emit_splat(id, DType::i64, first);
    const bool strided = walk == Walk::strided;
    const auto offset = strided ? temporary() : position_, start = temporary();
    if (strided) line("  $s = mul i64 $s, %t$d.inner", {offset, position_, index(tensor)});
    line("  $s = add i64 $s, $s", {start, first, offset});
    const std::string starts = splat("i64", start);
    line("  $v = add <# x i64> $s, $s",
         {id, starts, strided ? cat("%t", tensor, ".lanes") : lane_numbers("i64")});
  }

  /// Gives all lanes the element `scalar` that was read from memory.
  void emit_splat(int id, DType dtype, const std::string& scalar) {
    const auto first = temporary();
    line("  $s = insertelement $M poison, $E $s, i64 0", {first, dtype, dtype, scalar});
    if (dtype != DType::b1) {
      line("  $v = shufflevector $M $s, $M poison, <# x i32> zeroinitializer",
           {id, dtype, first, dtype});
      return;
    }
    const auto bytes = temporary();
    line("  $s = shufflevector $M $s, $M poison, <# x i32> zeroinitializer",
         {bytes, dtype, first, dtype});
    line("  $v = icmp ne $M $s, zeroinitializer", {id, dtype, bytes});
  }

  /// A vector of integers, all equal to the scalar `name`.
  std::string splat(std::string_view element, const std::string& name) {
    const auto first = temporary(), all = temporary();
    const std::string type(element);
    line("  $s = insertelement <# x $s> poison, $s $s, i64 0", {first, type, type, name});
    line("  $s = shufflevector <# x $s> $s, <# x $s> poison, <# x i32> zeroinitializer",
         {all, type, first, type});
    return all;
  }

  std::string lane_numbers(std::string_view element) const {
    std::string out = "<";
    for (int lane = 0; lane < lanes_; ++lane) out += cat(lane == 0 ? "" : ", ", element, " ", lane);
    return out + ">";
  }

  // --- memory ------------------------------------------------------------------------------------

  std::string mask() const {
    return mode_ == Mode::masked ? "%mask" : expand("splat (i1 true)", {});
  }

  /// `along_lanes`: a vector of elements, else one for all lanes.
  void emit_load(int id, const Instruction& one, bool along_lanes) {
    const std::string place = places_[one.index];
    if (LoopNest::looks_up(one)) emit_check(one, along_lanes);
    if (LoopNest::is_moved(one)) {
      if (along_lanes && !is_same_in_lanes(one.operands[1])) return emit_scattered_load(id, one);
      move_to_look_up(one);
    }
    emit_load_in_place(id, one, along_lanes);
    places_[one.index] = place;
  }

  void emit_load_in_place(int id, const Instruction& one, bool along_lanes) {
    const DType dtype = one.dtype;
    const Walk walk = walks_[one.index];
    const int condition = one.operands[0];
    const bool is_one = walk == Walk::broadcast && (condition < 0 || is_same_in_lanes(condition));
    if (!along_lanes || is_one) {
      const auto raw = temporary();
      const std::string place =
          condition < 0 ? places_[one.index] : place_if(condition, places_[one.index], true);
      line("  $s = load $E, ptr $s, align $A", {raw, dtype, place, dtype});
      return emit_splat(id, dtype, raw);
    }
    const std::string loaded = dtype == DType::b1 ? temporary() : value_name(id);
    if (walk == Walk::strided)
      emit_gather_from(loaded, strided_places(one.index, dtype), dtype, mask_with(condition));
    else if (walk == Walk::broadcast)
      emit_gather_from(loaded, same_place(one.index, dtype), dtype, mask_with(condition));
    else
      emit_contiguous_load(loaded, one.index, dtype, condition);
    if (dtype == DType::b1) line("  $v = icmp ne $M $s, zeroinitializer", {id, dtype, loaded});
  }

  // --- at indices that are computed

  /// Notes it where an index is outside.
  void emit_check(const Instruction& one, bool along_lanes) {
    const auto is_outside = temporary();
    if (!along_lanes || is_same_in_lanes(one.operands[0])) {
      const auto is_inside = temporary();
      line("  $s = extractelement <# x i1> $v, i64 0", {is_inside, one.operands[0]});
      line("  $s = xor i1 $s, true", {is_outside, is_inside});
    } else {
      const auto outside = temporary(), lanes = temporary();
      declare("declare i1 @llvm.vector.reduce.or.v#i1(<# x i1>)");
      line("  $s = xor <# x i1> $v, splat (i1 true)", {outside, one.operands[0]});
      line("  $s = and <# x i1> $s, $s", {lanes, outside, mask()});
      line("  $s = call i1 @llvm.vector.reduce.or.v#i1(<# x i1> $s)", {is_outside, lanes});
    }
    const std::string name = cat("outside", temporaries_++);
    line("  br i1 $s, label %$s, label %$s.end", {is_outside, name, name});
    start_block(name);
    const auto slot = temporary();
    line("  $s = getelementptr i64, ptr %numbers, i64 $d", {slot, index(slot_of_failure())});
    line("  store atomic i64 1, ptr $s monotonic, align 8", {slot});
    line("  br label %$s.end", {name});
    start_block(cat(name, ".end"));
  }

  size_t slot_of_failure() const { return nest_.numbers.size() + nest_.tensor_numbers.size(); }

  /// The row at hand begins where the index, the same in all lanes, says.
  void move_to_look_up(const Instruction& one) {
    const auto farther = temporary(), place = temporary();
    line("  $s = extractelement <# x i64> $v, i64 0", {farther, one.operands[1]});
    line("  $s = getelementptr $E, ptr $s, i64 $s",
         {place, one.dtype, places_[one.index], farther});
    places_[one.index] = place;
  }

  /// Each lane has an index of its own.
  void emit_scattered_load(int id, const Instruction& one) {
    const DType dtype = one.dtype;
    const std::string start = walks_[one.index] == Walk::strided ? strided_places(one.index, dtype)
                                                                 : lane_places(one.index, dtype);
    const auto places = temporary();
    line("  $s = getelementptr $E, <# x ptr> $s, <# x i64> $v",
         {places, dtype, start, one.operands[1]});
    const std::string loaded = dtype == DType::b1 ? temporary() : value_name(id);
    emit_gather_from(loaded, places, dtype, mask_with(one.operands[0]));
    if (dtype == DType::b1) line("  $v = icmp ne $M $s, zeroinitializer", {id, dtype, loaded});
  }

  /// Addresses of the current vector's elements in a tensor with stride 0 or 1 along the lanes.
  std::string lane_places(size_t tensor, DType dtype) {
    if (walks_[tensor] == Walk::broadcast) return same_place(tensor, dtype);
    const auto start = temporary(), places = temporary();
    line("  $s = getelementptr $E, ptr $s, i64 $s", {start, dtype, places_[tensor], position_});
    line("  $s = getelementptr $E, ptr $s, <# x i64> $s",
         {places, dtype, start, lane_numbers("i64")});
    return places;
  }

  /// The lanes that are read; empty: all.
  std::string mask_with(int condition) {
    const bool whole = mode_ == Mode::whole;
    if (condition < 0) return whole ? "" : "%mask";
    if (whole) return value_name(condition);
    const auto both = temporary();
    line("  $s = and <# x i1> %mask, $v", {both, condition});
    return both;
  }

  /// The place, or, where the condition is false (in the first lane or in all), that of zeros. What
  /// is masked does not fault, but it takes long where there is no memory.
  std::string place_if(int condition, const std::string& place, bool first) {
    declare("@nothing = internal constant [# x i64] zeroinitializer, align 64");
    const auto any = temporary(), chosen = temporary();
    if (first) {
      line("  $s = extractelement <# x i1> $v, i64 0", {any, condition});
    } else {
      declare("declare i1 @llvm.vector.reduce.or.v#i1(<# x i1>)");
      line("  $s = call i1 @llvm.vector.reduce.or.v#i1(<# x i1> $v)", {any, condition});
    }
    line("  $s = select i1 $s, ptr $s, ptr @nothing", {chosen, any, place});
    return chosen;
  }

  /// Which instructions surely have the same value in all lanes; walks_ has to be known.
  void find_same_in_lanes() {
    for (const Instruction& one : nest_.code) {
      bool is_same = one.opcode != Opcode::pick && one.opcode != Opcode::reduce;
      if (one.opcode == Opcode::load) is_same = walks_[one.index] == Walk::broadcast;
      if (one.opcode == Opcode::position)
        is_same = walks_[nest_.tensor_of_position(one.index)] == Walk::broadcast;
      for (const int operand : one.operands)
        is_same = is_same && (operand < 0 || is_same_in_lanes(operand));
      same_in_lanes_.push_back(is_same);
    }
  }
  bool is_same_in_lanes(int id) const { return same_in_lanes_[static_cast<size_t>(id)]; }

  /// The same address in all lanes.
  std::string same_place(size_t tensor, DType dtype) {
    const auto places = temporary();
    line("  $s = getelementptr $E, ptr $s, <# x i64> zeroinitializer",
         {places, dtype, places_[tensor]});
    return places;
  }

  void emit_contiguous_load(const std::string& name, size_t tensor, DType dtype, int condition) {
    std::string place = temporary();
    line("  $s = getelementptr $E, ptr $s, i64 $s", {place, dtype, places_[tensor], position_});
    const bool is_same = condition >= 0 && is_same_in_lanes(condition);
    if (condition >= 0) place = place_if(condition, place, is_same);
    const std::string mask = mask_with(is_same ? -1 : condition);  // else the place says it all
    if (mask.empty()) {
      line("  $s = load $M, ptr $s, align $A", {name, dtype, place, dtype});
      return;
    }
    declare("declare $M @llvm.masked.load.$N.p0(ptr, i32, <# x i1>, $M)", {dtype, dtype, dtype});
    line("  $s = call $M @llvm.masked.load.$N.p0(ptr $s, i32 $A, <# x i1> $s, $M zeroinitializer)",
         {name, dtype, dtype, place, dtype, mask, dtype});
  }

  /// Addresses of the current vector's elements in a strided tensor.
  std::string strided_places(size_t tensor, DType dtype) {
    const auto offset = temporary(), start = temporary(), places = temporary();
    line("  $s = mul i64 $s, %t$d.inner", {offset, position_, index(tensor)});
    line("  $s = getelementptr $E, ptr $s, i64 $s", {start, dtype, places_[tensor], offset});
    line("  $s = getelementptr $E, ptr $s, <# x i64> %t$d.lanes",
         {places, dtype, start, index(tensor)});
    return places;
  }

  /// An element of the row at hand; `along_lanes`: one of each lane's column.
  void emit_pick(int id, const Instruction& one, bool along_lanes) {
    const std::string chosen = value_name(one.operands[0]);
    if (!along_lanes) {
      const auto lane = temporary(), offset = temporary(), place = temporary(), raw = temporary();
      line("  $s = extractelement <# x i64> $s, i64 0", {lane, chosen});
      line("  $s = mul i64 $s, $s", {offset, lane, lane_stride(one.index)});
      line("  $s = getelementptr $E, ptr $s, i64 $s",
           {place, one.dtype, places_[one.index], offset});
      line("  $s = load $E, ptr $s, align $A", {raw, one.dtype, place, one.dtype});
      return emit_splat(id, one.dtype, raw);
    }
    const auto column = temporary(), lanes = temporary(), offset = temporary(),
               places = temporary();
    line("  $s = mul i64 $s, $s", {column, position_, lane_stride(one.index)});
    line("  $s = getelementptr $E, ptr $s, i64 $s", {lanes, one.dtype, places_[one.index], column});
    const std::string stride = splat("i64", column_stride(one.index));
    line("  $s = mul <# x i64> $s, $s", {offset, chosen, stride});
    const std::string across = splat("i64", lane_stride(one.index));
    const auto own = temporary(), both = temporary();
    line("  $s = mul <# x i64> $s, $s", {own, across, lane_numbers("i64")});
    line("  $s = add <# x i64> $s, $s", {both, own, offset});
    line("  $s = getelementptr $E, ptr $s, <# x i64> $s", {places, one.dtype, lanes, both});
    const bool boolean = one.dtype == DType::b1;
    const std::string loaded = boolean ? temporary() : value_name(id);
    emit_gather_from(loaded, places, one.dtype, mask_with(-1));
    if (boolean) line("  $v = icmp ne $M $s, zeroinitializer", {id, one.dtype, loaded});
  }

  /// From element to element of a column.
  std::string column_stride(size_t tensor) const {
    return reduced_loops_ == 0 ? "0" : cat("%t", tensor, ".reduced0");
  }

  std::string lane_stride(size_t tensor) const {
    switch (walks_[tensor]) {
      case Walk::broadcast:
        return "0";
      case Walk::contiguous:
        return "1";
      default:
        return cat("%t", tensor, ".inner");
    }
  }

  void emit_gather_from(const std::string& name, const std::string& places, DType dtype,
                        std::string mask) {
    if (mask.empty()) mask = expand("splat (i1 true)", {});
    declare("declare $M @llvm.masked.gather.$N.v#p0(<# x ptr>, i32, <# x i1>, $M)",
            {dtype, dtype, dtype});
    line(
        "  $s = call $M @llvm.masked.gather.$N.v#p0(<# x ptr> $s, i32 $A, <# x i1> $s, "
        "$M zeroinitializer)",
        {name, dtype, dtype, places, dtype, mask, dtype});
  }

  /// Stores output `i`; `along_lanes`: a vector of elements, else the element of lane 0.
  void emit_store(size_t i, bool along_lanes) {
    const DType dtype = nest_.outputs[i];
    std::string stored = value_name(nest_.results[i]);
    if (dtype == DType::b1) {
      const auto bytes = temporary();
      line("  $s = zext $T $s to $M", {bytes, dtype, stored, dtype});
      stored = bytes;
    }
    const size_t tensor = nest_.inputs.size() + i;
    if (!along_lanes) {
      const auto first = temporary();
      line("  $s = extractelement $M $s, i64 0", {first, dtype, stored});
      line("  store $E $s, ptr $s, align $A", {dtype, first, places_[tensor], dtype});
    } else if (walks_[tensor] == Walk::strided) {
      emit_scatter(stored, tensor, dtype);
    } else {
      emit_contiguous_store(stored, tensor, dtype);
    }
  }

  void emit_contiguous_store(const std::string& value, size_t tensor, DType dtype) {
    const auto place = temporary();
    line("  $s = getelementptr $E, ptr $s, i64 $s", {place, dtype, places_[tensor], position_});
    if (mode_ == Mode::whole && (past_cache_ >> tensor & 1) != 0) {
      const int64_t bytes = std::min<int64_t>(lanes_ * graph::byte_size(dtype), kLineBytes);
      line("  store $M $s, ptr $s, align $d, !nontemporal !0", {dtype, value, place, bytes});
      return;
    }
    if (mode_ == Mode::whole) {
      line("  store $M $s, ptr $s, align $A", {dtype, value, place, dtype});
      return;
    }
    declare("declare void @llvm.masked.store.$N.p0($M, ptr, i32, <# x i1>)", {dtype, dtype});
    line("  call void @llvm.masked.store.$N.p0($M $s, ptr $s, i32 $A, <# x i1> $s)",
         {dtype, dtype, value, place, dtype, mask()});
  }

  void emit_scatter(const std::string& value, size_t tensor, DType dtype) {
    const std::string places = strided_places(tensor, dtype);
    declare("declare void @llvm.masked.scatter.$N.v#p0($M, <# x ptr>, i32, <# x i1>)",
            {dtype, dtype});
    line("  call void @llvm.masked.scatter.$N.v#p0($M $s, <# x ptr> $s, i32 $A, <# x i1> $s)",
         {dtype, dtype, value, places, dtype, mask()});
  }

  // --- conversions -------------------------------------------------------------------------------

  void emit_convert(int id, const Instruction& one) {
    const int from_id = one.operands[0];
    const DType from = instruction(from_id).dtype, to = one.dtype;
    if (to == DType::bf16) return emit_to_bf16(id, from_id);
    if (from == DType::bf16) return emit_from_bf16(id, from_id);
    if (to == DType::b1) return emit_to_bool(id, from_id, from);
    if (graph::is_floating(from) && !graph::is_floating(to))
      return emit_truncation(id, from_id, from, to);
    line("  $v = $s $T $v to $T", {id, std::string(cast_name(from, to)), from, from_id, to});
  }

  static std::string_view cast_name(DType from, DType to) {
    const int64_t from_size = from == DType::b1 ? 0 : graph::byte_size(from);
    const int64_t to_size = graph::byte_size(to);
    if (graph::is_floating(from)) return from_size < to_size ? "fpext" : "fptrunc";
    if (graph::is_floating(to)) return is_unsigned(from) ? "uitofp" : "sitofp";
    if (from_size == to_size) return "bitcast";
    if (from_size > to_size) return "trunc";
    return is_unsigned(from) ? "zext" : "sext";
  }

  void emit_to_bool(int id, int from_id, DType from) {
    const std::string compare = graph::is_floating(from) ? "fcmp une" : "icmp ne";
    line("  $v = $s $T $v, zeroinitializer", {id, compare, from, from_id});
  }

  /// To an integer that may be narrower than what the processor converts to: by way of a wider one,
  /// as C++ compilers do it in eager's kernels.
  void emit_truncation(int id, int from_id, DType from, DType to) {
    const DType wide = to == DType::u8 ? DType::i64 : graph::byte_size(to) < 4 ? DType::i32 : to;
    if (wide == to) return line("  $v = fptosi $T $v to $T", {id, from, from_id, to});
    const auto integer = temporary();
    line("  $s = fptosi $T $v to $T", {integer, from, from_id, wide});
    line("  $v = trunc $T $s to $T", {id, wide, integer, to});
  }

  void emit_from_bf16(int id, int from_id) {
    const auto wide = temporary(), shifted = temporary();
    line("  $s = zext $T $v to $T", {wide, DType::bf16, from_id, DType::i32});
    line("  $s = shl $T $s, splat (i32 16)", {shifted, DType::i32, wide});
    line("  $v = bitcast $T $s to $T", {id, DType::i32, shifted, DType::f32});
  }

  /// Round to nearest, ties to even, on the bits: the processor's instruction would flush
  /// denormals, and adding to the bits of a NaN could make an infinity of it.
  void emit_to_bf16(int id, int from_id) {
    const auto bits = temporary(), high = temporary(), odd = temporary(), half = temporary(),
               sum = temporary(), shifted = temporary(), rounded = temporary(), nan = temporary();
    const DType word = DType::i32;
    line("  $s = bitcast $T $v to $T", {bits, DType::f32, from_id, word});
    line("  $s = lshr $T $s, splat (i32 16)", {high, word, bits});
    line("  $s = and $T $s, splat (i32 1)", {odd, word, high});
    line("  $s = add $T $s, splat (i32 32767)", {half, word, odd});
    line("  $s = add $T $s, $s", {sum, word, bits, half});
    line("  $s = lshr $T $s, splat (i32 16)", {shifted, word, sum});
    line("  $s = trunc $T $s to $T", {rounded, word, shifted, DType::bf16});
    line("  $s = fcmp uno $T $v, zeroinitializer", {nan, DType::f32, from_id});
    line("  $v = select $T $s, $T splat (i16 32704), $T $s",
         {id, DType::b1, nan, DType::bf16, DType::bf16, rounded});
  }

  // --- functions ---------------------------------------------------------------------------------

  /// A library's functions take one vector; of what is the same in all lanes that is enough.
  void emit_call(int id, const Instruction& one, bool along_lanes) {
    const int own = static_cast<int>(target_.vector_bytes / graph::byte_size(one.dtype));
    if (!along_lanes && lanes_ > own && !is_widened(*one.function, one.dtype))
      return emit_narrow_call(id, one, own);
    std::string arguments;
    for (int i = 0; i < one.function->arity; ++i)
      arguments += expand("$s$T $v", {std::string(i == 0 ? "" : ", "), one.dtype,
                                      one.operands[static_cast<size_t>(i)]});
    line("  $v = call $T @$s($s)", {id, one.dtype, callee(*one.function, one.dtype), arguments});
  }

  void emit_narrow_call(int id, const Instruction& one, int lanes) {
    std::vector<std::string> narrow;
    for (int i = 0; i < one.function->arity; ++i) {
      narrow.push_back(temporary());
      line("  $s = shufflevector $T $v, $T poison, $s",
           {narrow.back(), one.dtype, one.operands[static_cast<size_t>(i)], one.dtype,
            consecutive_lanes(0, lanes)});
    }
    const auto result = temporary();
    const int wide = std::exchange(lanes_, lanes);
    std::string arguments;
    for (const std::string& argument : narrow)
      arguments +=
          expand("$s$T $s", {std::string(arguments.empty() ? "" : ", "), one.dtype, argument});
    line("  $s = call $T @$s($s)",
         {result, one.dtype, callee(*one.function, one.dtype), arguments});
    const std::string type = vector_type(one.dtype);
    lanes_ = wide;
    line("  $v = shufflevector $s $s, $s poison, <# x i32> zeroinitializer",
         {id, type, result, type});
  }

  static std::string consecutive_lanes(int first, int count) {
    std::string out = cat("<", count, " x i32> <");
    for (int i = 0; i < count; ++i) out += cat(i == 0 ? "" : ", ", "i32 ", first + i);
    return out + ">";
  }

  /// Whether there is code for vectors of any width.
  bool is_widened(const Function& function, DType dtype) const {
    return !function.intrinsic.empty() ||
           (dtype == DType::f32 && target_.vector_bytes > 16 && has_vector_math(function.name));
  }

  /// The name of a function on vectors, declared or defined.
  std::string callee(const Function& function, DType dtype) {
    if (!function.intrinsic.empty()) {
      const std::string name = expand("llvm.$s.$N", {std::string(function.intrinsic), dtype});
      declare("declare $T @$s($s)", {dtype, name, parameters(function, dtype)});
      return name;
    }
    // Without fused multiply-add (vectors of 16 bytes) a library does better.
    if (dtype == DType::f32 && target_.vector_bytes > 16 && has_vector_math(function.name)) {
      const bool has_avx512 = target_.vector_bytes == 64;
      helpers_.insert(vector_math(function.name, lanes_, has_avx512));
      for_each_line(vector_math_declarations(function.name, lanes_, has_avx512),
                    [&](std::string_view one) { declarations_.insert(cat(one, "\n")); });
      return cat("vector.", function.name);
    }
    if (function.name == "refined_sqrt") return callee_of_refined_root_of_doubles();
    const std::string name = vector_name(function, dtype == DType::f64, lanes_);
    if (target_.has_function && target_.has_function(name)) {
      declare("declare $T @$s($s) nounwind willreturn memory(none)",
              {dtype, name, parameters(function, dtype)});
      return name;
    }
    return lane_by_lane(function, dtype);
  }

  std::string callee_of_refined_root_of_doubles() {
    helpers_.insert(refined_root_of_doubles(lanes_));
    for_each_line(refined_root_of_doubles_declarations(lanes_),
                  [&](std::string_view one) { declarations_.insert(cat(one, "\n")); });
    return refined_root_of_doubles_name(lanes_);
  }

  std::string parameters(const Function& function, DType dtype) const {
    std::string out;
    for (int i = 0; i < function.arity; ++i)
      out += expand("$s$T", {std::string(i == 0 ? "" : ", "), dtype});
    return out;
  }

  /// Defines a function on vectors by the C library's.
  std::string lane_by_lane(const Function& function, DType dtype) {
    const std::string scalar = scalar_name(function, dtype == DType::f64);
    const std::string name = cat("lanes.", scalar);
    const bool two = function.arity == 2;
    declare("declare $E @$s($E$s)",
            {dtype, scalar, dtype, two ? cat(", ", element_type(dtype)) : std::string()});
    std::string code =
        expand("define internal $T @$s($T %a$s) noinline {\n",
               {dtype, name, dtype, two ? expand(", $T %b", {dtype}) : std::string()});
    std::string result = "poison";
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      code += expand("  %a$d = extractelement $T %a, i64 $d\n", {lane, dtype, lane});
      if (two) code += expand("  %b$d = extractelement $T %b, i64 $d\n", {lane, dtype, lane});
      code += expand("  %c$d = call $E @$s($E %a$d$s)\n",
                     {lane, dtype, scalar, dtype, lane,
                      two ? expand(", $E %b$d", {dtype, lane}) : std::string()});
      code += expand("  %d$d = insertelement $T $s, $E %c$d, i64 $d\n",
                     {lane, dtype, result, dtype, lane, lane});
      result = cat("%d", lane);
    }
    helpers_.insert(code + expand("  ret $T $s\n}\n", {dtype, result}));
    return name;
  }

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
