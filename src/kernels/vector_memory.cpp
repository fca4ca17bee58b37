// See vector_text.h: instructions that read and write tensors.
#include "kernels/vector_text.h"

#include <algorithm>

namespace janus::kernels {

std::string VectorText::mask() const {
  return mode_ == Mode::masked ? "%mask" : expand("splat (i1 true)", {});
}

/// `along_lanes`: a vector of elements, else one for all lanes.
void VectorText::emit_load(int id, const Instruction& one, bool along_lanes) {
  const std::string place = places_[one.index];
  if (LoopNest::looks_up(one)) emit_check(one, along_lanes);
  if (LoopNest::is_moved(one)) {
    if (along_lanes && !is_same_in_lanes(one.operands[1])) return emit_scattered_load(id, one);
    move_to_look_up(one);
  }
  emit_load_in_place(id, one, along_lanes);
  places_[one.index] = place;
}

void VectorText::emit_load_in_place(int id, const Instruction& one, bool along_lanes) {
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

/// Notes it where an index is outside.
void VectorText::emit_check(const Instruction& one, bool along_lanes) {
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

/// The row at hand begins where the index, the same in all lanes, says.
void VectorText::move_to_look_up(const Instruction& one) {
  const auto farther = temporary(), place = temporary();
  line("  $s = extractelement <# x i64> $v, i64 0", {farther, one.operands[1]});
  line("  $s = getelementptr $E, ptr $s, i64 $s", {place, one.dtype, places_[one.index], farther});
  places_[one.index] = place;
}

/// Each lane has an index of its own.
void VectorText::emit_scattered_load(int id, const Instruction& one) {
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
std::string VectorText::lane_places(size_t tensor, DType dtype) {
  if (walks_[tensor] == Walk::broadcast) return same_place(tensor, dtype);
  const auto start = temporary(), places = temporary();
  line("  $s = getelementptr $E, ptr $s, i64 $s", {start, dtype, places_[tensor], position_});
  line("  $s = getelementptr $E, ptr $s, <# x i64> $s",
       {places, dtype, start, lane_numbers("i64")});
  return places;
}

/// The lanes that are read; empty: all.
std::string VectorText::mask_with(int condition) {
  const bool whole = mode_ == Mode::whole;
  if (condition < 0) return whole ? "" : "%mask";
  if (whole) return value_name(condition);
  const auto both = temporary();
  line("  $s = and <# x i1> %mask, $v", {both, condition});
  return both;
}

/// The place, or, where the condition is false (in the first lane or in all), that of zeros. What
/// is masked does not fault, but it takes long where there is no memory.
std::string VectorText::place_if(int condition, const std::string& place, bool first) {
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
void VectorText::find_same_in_lanes() {
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

/// The same address in all lanes.
std::string VectorText::same_place(size_t tensor, DType dtype) {
  const auto places = temporary();
  line("  $s = getelementptr $E, ptr $s, <# x i64> zeroinitializer",
       {places, dtype, places_[tensor]});
  return places;
}

void VectorText::emit_contiguous_load(const std::string& name, size_t tensor, DType dtype,
                                      int condition) {
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
std::string VectorText::strided_places(size_t tensor, DType dtype) {
  const auto offset = temporary(), start = temporary(), places = temporary();
  line("  $s = mul i64 $s, %t$d.inner", {offset, position_, index(tensor)});
  line("  $s = getelementptr $E, ptr $s, i64 $s", {start, dtype, places_[tensor], offset});
  line("  $s = getelementptr $E, ptr $s, <# x i64> %t$d.lanes",
       {places, dtype, start, index(tensor)});
  return places;
}

/// An element of the row at hand; `along_lanes`: one of each lane's column.
void VectorText::emit_pick(int id, const Instruction& one, bool along_lanes) {
  const std::string chosen = value_name(one.operands[0]);
  if (!along_lanes) {
    const auto lane = temporary(), offset = temporary(), place = temporary(), raw = temporary();
    line("  $s = extractelement <# x i64> $s, i64 0", {lane, chosen});
    line("  $s = mul i64 $s, $s", {offset, lane, lane_stride(one.index)});
    line("  $s = getelementptr $E, ptr $s, i64 $s", {place, one.dtype, places_[one.index], offset});
    line("  $s = load $E, ptr $s, align $A", {raw, one.dtype, place, one.dtype});
    return emit_splat(id, one.dtype, raw);
  }
  const auto column = temporary(), lanes = temporary(), offset = temporary(), places = temporary();
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
std::string VectorText::column_stride(size_t tensor) const {
  return reduced_loops_ == 0 ? "0" : cat("%t", tensor, ".reduced0");
}

std::string VectorText::lane_stride(size_t tensor) const {
  switch (walks_[tensor]) {
    case Walk::broadcast:
      return "0";
    case Walk::contiguous:
      return "1";
    default:
      return cat("%t", tensor, ".inner");
  }
}

void VectorText::emit_gather_from(const std::string& name, const std::string& places, DType dtype,
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
void VectorText::emit_store(size_t i, bool along_lanes) {
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

void VectorText::emit_contiguous_store(const std::string& value, size_t tensor, DType dtype) {
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

void VectorText::emit_scatter(const std::string& value, size_t tensor, DType dtype) {
  const std::string places = strided_places(tensor, dtype);
  declare("declare void @llvm.masked.scatter.$N.v#p0($M, <# x ptr>, i32, <# x i1>)",
          {dtype, dtype});
  line("  call void @llvm.masked.scatter.$N.v#p0($M $s, <# x ptr> $s, i32 $A, <# x i1> $s)",
       {dtype, dtype, value, places, dtype, mask()});
}

}  // namespace janus::kernels
