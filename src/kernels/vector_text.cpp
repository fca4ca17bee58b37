// See vector_text.h: how text is written, and instructions that compute.
#include "kernels/vector_text.h"

#include <bit>
#include <sstream>

namespace janus::kernels {

std::string VectorText::expand(std::string_view format,
                               std::initializer_list<Argument> arguments) const {
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

std::string VectorText::piece(char letter, const Argument& argument) const {
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

void VectorText::line(std::string_view format, std::initializer_list<Argument> arguments) {
  body_ += expand(format, arguments) + "\n";
}

void VectorText::declare(std::string_view format, std::initializer_list<Argument> arguments) {
  declarations_.insert(expand(format, arguments) + "\n");
}

std::string VectorText::vector_type(DType dtype) const {
  return cat("<", lanes_, " x ", dtype == DType::b1 ? "i1" : element_type(dtype), ">");
}

/// An instruction may be written several times: in every pass over a row, for whole vectors and
/// for the rest. Its name is that of the last time.
std::string VectorText::value_name(int id) const {
  if (instruction(id).opcode == Opcode::constant) return constant_literal(instruction(id));
  return names_[static_cast<size_t>(id)];
}

void VectorText::name_value(int id) {
  const int before = times_[id]++;
  names_[static_cast<size_t>(id)] = before == 0 ? cat("%v", id) : cat("%v", id, ".", before);
}

void VectorText::start_block(const std::string& label) {
  line("$s:", {label});
  block_ = label;
}

void VectorText::emit_instruction(int id, bool along_lanes) {
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
      return line(
          "  $v = select $T $v, $T $v, $T $v",
          {id, DType::b1, one.operands[0], one.dtype, one.operands[1], one.dtype, one.operands[2]});
    case Opcode::call:
      return emit_call(id, one, along_lanes);
    default:
      return line("  $v = $s $T $v, $v",
                  {id, std::string(binary_name(one)), one.dtype, one.operands[0], one.operands[1]});
  }
}

std::string_view VectorText::binary_name(const Instruction& one) {
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

void VectorText::emit_negation(int id, const Instruction& one) {
  if (graph::is_floating(one.dtype))
    line("  $v = fneg $T $v", {id, one.dtype, one.operands[0]});
  else
    line("  $v = sub $T zeroinitializer, $v", {id, one.dtype, one.operands[0]});
}

void VectorText::emit_compare(int id, const Instruction& one) {
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

bool VectorText::is_position_along_lanes(int id) const {
  const Instruction& one = instruction(id);
  return one.opcode == Opcode::position &&
         walks_[nest_.tensor_of_position(one.index)] == Walk::contiguous;
}

/// A lane's number against how far the first lane is from the limit: in 32 bits, since farther
/// than all lanes is as good as just beyond them.
void VectorText::emit_compare_position(int id, const Instruction& one,
                                       const std::string& predicate) {
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
std::string VectorText::constant_literal(const Instruction& one) {
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

int64_t VectorText::narrowed(DType dtype, int64_t value) {
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

std::string VectorText::hexadecimal(uint64_t bits) {
  std::ostringstream out;
  out << "0x" << std::hex << std::uppercase;
  out.width(16);
  out.fill('0');
  out << bits;
  return out.str();
}

void VectorText::emit_number(int id, const Instruction& one) {
  const auto slot = temporary(), raw = temporary();
  line("  $s = getelementptr i64, ptr %numbers, i64 $d", {slot, int64_t{one.index}});
  line("  $s = load $E, ptr $s", {raw, one.dtype, slot});
  emit_splat(id, one.dtype, raw);
}

void VectorText::emit_extent(int id, const Instruction& one) {
  const auto slot = temporary(), size = temporary();
  line("  $s = getelementptr i64, ptr %extents, i64 $d", {slot, int64_t{one.index}});
  line("  $s = load i64, ptr $s", {size, slot});
  emit_splat(id, DType::i64, size);
}

void VectorText::emit_position(int id, const Instruction& one, bool along_lanes) {
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
void VectorText::emit_splat(int id, DType dtype, const std::string& scalar) {
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
std::string VectorText::splat(std::string_view element, const std::string& name) {
  const auto first = temporary(), all = temporary();
  const std::string type(element);
  line("  $s = insertelement <# x $s> poison, $s $s, i64 0", {first, type, type, name});
  line("  $s = shufflevector <# x $s> $s, <# x $s> poison, <# x i32> zeroinitializer",
       {all, type, first, type});
  return all;
}

std::string VectorText::lane_numbers(std::string_view element) const {
  std::string out = "<";
  for (int lane = 0; lane < lanes_; ++lane) out += cat(lane == 0 ? "" : ", ", element, " ", lane);
  return out + ">";
}

}  // namespace janus::kernels
