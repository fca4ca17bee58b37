// See vector_text.h: conversions, and calls of functions.
#include "kernels/vector_text.h"

#include <utility>

#include "kernels/vector_math.h"

namespace janus::kernels {

void VectorText::emit_convert(int id, const Instruction& one) {
  const int from_id = one.operands[0];
  const DType from = instruction(from_id).dtype, to = one.dtype;
  if (to == DType::bf16) return emit_to_bf16(id, from_id);
  if (from == DType::bf16) return emit_from_bf16(id, from_id);
  if (to == DType::b1) return emit_to_bool(id, from_id, from);
  if (graph::is_floating(from) && !graph::is_floating(to))
    return emit_truncation(id, from_id, from, to);
  line("  $v = $s $T $v to $T", {id, std::string(cast_name(from, to)), from, from_id, to});
}

std::string_view VectorText::cast_name(DType from, DType to) {
  const int64_t from_size = from == DType::b1 ? 0 : graph::byte_size(from);
  const int64_t to_size = graph::byte_size(to);
  if (graph::is_floating(from)) return from_size < to_size ? "fpext" : "fptrunc";
  if (graph::is_floating(to)) return is_unsigned(from) ? "uitofp" : "sitofp";
  if (from_size == to_size) return "bitcast";
  if (from_size > to_size) return "trunc";
  return is_unsigned(from) ? "zext" : "sext";
}

void VectorText::emit_to_bool(int id, int from_id, DType from) {
  const std::string compare = graph::is_floating(from) ? "fcmp une" : "icmp ne";
  line("  $v = $s $T $v, zeroinitializer", {id, compare, from, from_id});
}

/// To an integer that may be narrower than what the processor converts to: by way of a wider one,
/// as C++ compilers do it in eager's kernels.
void VectorText::emit_truncation(int id, int from_id, DType from, DType to) {
  const DType wide = to == DType::u8 ? DType::i64 : graph::byte_size(to) < 4 ? DType::i32 : to;
  if (wide == to) return line("  $v = fptosi $T $v to $T", {id, from, from_id, to});
  const auto integer = temporary();
  line("  $s = fptosi $T $v to $T", {integer, from, from_id, wide});
  line("  $v = trunc $T $s to $T", {id, wide, integer, to});
}

void VectorText::emit_from_bf16(int id, int from_id) {
  const auto wide = temporary(), shifted = temporary();
  line("  $s = zext $T $v to $T", {wide, DType::bf16, from_id, DType::i32});
  line("  $s = shl $T $s, splat (i32 16)", {shifted, DType::i32, wide});
  line("  $v = bitcast $T $s to $T", {id, DType::i32, shifted, DType::f32});
}

/// Round to nearest, ties to even, on the bits: the processor's instruction would flush
/// denormals, and adding to the bits of a NaN could make an infinity of it.
void VectorText::emit_to_bf16(int id, int from_id) {
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

/// A library's functions take one vector; of what is the same in all lanes that is enough.
void VectorText::emit_call(int id, const Instruction& one, bool along_lanes) {
  const int own = static_cast<int>(target_.vector_bytes / graph::byte_size(one.dtype));
  if (!along_lanes && lanes_ > own && !is_widened(*one.function, one.dtype))
    return emit_narrow_call(id, one, own);
  std::string arguments;
  for (int i = 0; i < one.function->arity; ++i)
    arguments += expand("$s$T $v", {std::string(i == 0 ? "" : ", "), one.dtype,
                                    one.operands[static_cast<size_t>(i)]});
  line("  $v = call $T @$s($s)", {id, one.dtype, callee(*one.function, one.dtype), arguments});
}

void VectorText::emit_narrow_call(int id, const Instruction& one, int lanes) {
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
  line("  $s = call $T @$s($s)", {result, one.dtype, callee(*one.function, one.dtype), arguments});
  const std::string type = vector_type(one.dtype);
  lanes_ = wide;
  line("  $v = shufflevector $s $s, $s poison, <# x i32> zeroinitializer",
       {id, type, result, type});
}

std::string VectorText::consecutive_lanes(int first, int count) {
  std::string out = cat("<", count, " x i32> <");
  for (int i = 0; i < count; ++i) out += cat(i == 0 ? "" : ", ", "i32 ", first + i);
  return out + ">";
}

/// Whether there is code for vectors of any width.
bool VectorText::is_widened(const Function& function, DType dtype) const {
  return !function.intrinsic.empty() ||
         (dtype == DType::f32 && has_vector_math(function.name, target_));
}

/// The name of a function on vectors, declared or defined.
std::string VectorText::callee(const Function& function, DType dtype) {
  if (!function.intrinsic.empty()) {
    const std::string name = expand("llvm.$s.$N", {std::string(function.intrinsic), dtype});
    declare("declare $T @$s($s)", {dtype, name, parameters(function, dtype)});
    return name;
  }
  if (dtype == DType::f32 && has_vector_math(function.name, target_)) {
    helpers_.insert(vector_math(function.name, lanes_, target_));
    for_each_line(vector_math_declarations(function.name, lanes_, target_),
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

std::string VectorText::callee_of_refined_root_of_doubles() {
  helpers_.insert(refined_root_of_doubles(lanes_, target_));
  for_each_line(refined_root_of_doubles_declarations(lanes_, target_),
                [&](std::string_view one) { declarations_.insert(cat(one, "\n")); });
  return refined_root_of_doubles_name(lanes_);
}

std::string VectorText::parameters(const Function& function, DType dtype) const {
  std::string out;
  for (int i = 0; i < function.arity; ++i)
    out += expand("$s$T", {std::string(i == 0 ? "" : ", "), dtype});
  return out;
}

/// Defines a function on vectors by the C library's.
std::string VectorText::lane_by_lane(const Function& function, DType dtype) {
  const std::string scalar = scalar_name(function, dtype == DType::f64);
  const std::string name = cat("lanes.", scalar);
  const bool two = function.arity == 2;
  declare("declare $E @$s($E$s)",
          {dtype, scalar, dtype, two ? cat(", ", element_type(dtype)) : std::string()});
  std::string code = expand("define internal $T @$s($T %a$s) noinline {\n",
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

}  // namespace janus::kernels
