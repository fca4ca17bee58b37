// The loop nest of a kernel: what is computed at each point of an iteration space, before it is
// known how the space is walked.
//
// The body is a list of instructions in single assignment form: loads of operands' elements,
// scalar arithmetic, and at the end stores. Walking order, vectors and strides come later (emit.h).
// Element-wise operators access each operand at the point itself. An operand may also be read at
// indices that follow the point's: a map says which, and `load` has the condition under which there
// is such an element; elsewhere it gives 0. Where an index is computed, the map leaves it at 0, and
// `load` has a second operand, how many elements farther it is; of a `look_up` the run has failed
// where its condition does not hold. An operand that is read at several places around the point, as
// the elements of a window are, has one map as well, and loads that go farther. A `reduce` combines
// the values of an instruction along the reduced dimensions of the space; what uses it is computed
// once they are all there: in another pass over the row, or once for the row.
//
// Text form, canonical: equal computations have equal text, whatever the graph's names were. It is
// the key of the kernel cache and heads the LLVM text as a comment:
//
//   t0: f32, t1: b1, n0: f64 -> t2: f32
//   %0 = load t0 : f32
//   %1 = number n0 : f64
//   %2 = convert %1 : f32
//   %3 = mul %0, %2 : f32
//   %4 = call exp %3 : f32
//   store t2, %4
//
// With reductions the space has a rank, and each tensor says along which of its dimensions it runs:
//
//   space 2, reduced 1
//   t0: f32 (0 1) -> t1: f32 (0 -)
//   %0 = load t0 : f32
//   %1 = reduce sum %0 : f32
//   store t1, %1
//
// With a map a tensor's own indices stand in braces; here it is the right half of the space:
//
//   space 2, sizes - 8
//   t0: f32 {0; 1 - 4} -> t1: f32 (0 1)
//   %0 = position -1 : i64
//   %1 = constant 4 : i64
//   %2 = compare ge %0, %1 : b1
//   %3 = load t0 %2 : f32
//   store t1, %3
//
// Numbers that follow those of the node are of an input's dimension: its size, or its step, how
// many elements there are from one index to the next; the rows of a table of ten at indices t1:
//
//   space 2, sizes - -
//   t0: f32 {at 0; 1}, t1: i64 (0), n0: i64 step t0 0 -> t2: f32 (0 1)
//   %0 = load t1 : i64
//   %1 = constant 10 : i64
//   %2 = constant 0 : i64
//   %3 = compare ge %0, %2 : b1
//   %4 = compare lt %0, %1 : b1
//   %5 = number n0 : i64
//   %6 = mul %0, %5 : i64
//   %7 = bit_and %3, %4 : b1
//   %8 = look_up t0 %7, %6 : f32
//   store t2, %8
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/op.h"
#include "kernels/functions.h"
#include "ops/index_space.h"

namespace janus::kernels {

using graph::DType;
using Compare = graph::ScalarCode::Compare;

enum class Opcode : uint8_t {
  load,      ///< element of tensor `index`, or of that operand 1 elements farther; 0 where operand
             ///< 0, if there is one, is false
  number,    ///< number `index`; those of tensors follow the node's
  constant,  ///< `bits`: of a double where dtype is floating, else of an int64_t
  convert,   ///< as torch's `to`
  add,
  sub,
  mul,
  div,
  rem,
  neg,
  bit_and,
  bit_or,
  bit_xor,
  compare,
  select,
  call,
  reduce,    ///< of operand 0 along the reduced dimensions
  extent,    ///< size of dimension `index` of the space, as i64
  pick,      ///< element of tensor `index` at the i64 operand 0 along the only reduced dimension
  position,  ///< along dimension `index` of the space, counted from the last, which is 1; i64
};

enum class Combine : uint8_t { sum, product, maximum, minimum, any, all };

struct Instruction {
  Opcode opcode = Opcode::constant;
  DType dtype = DType::f32;  ///< of the result
  Compare comparison = Compare::eq;
  Combine combine = Combine::sum;
  const Function* function = nullptr;
  std::array<int, 3> operands = {-1, -1, -1};  ///< earlier instructions; -1 where there is none
  uint32_t index = 0;
  uint64_t bits = 0;
  bool may_fail = false;  ///< of a load: the run fails where operand 0 is false

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// Of a dimension of an input: how many elements there are from one index to the next, or how many
/// indices.
struct TensorNumber {
  enum class Kind : uint8_t { step, size } kind;
  uint32_t tensor, dim;
  friend bool operator==(const TensorNumber&, const TensorNumber&) = default;
};

struct LoopNest {
  std::vector<DType> inputs;   ///< element types of the tensors t0, t1, ...
  std::vector<DType> numbers;  ///< i64, f64 or b1
  std::vector<DType> outputs;  ///< tensors that follow the inputs
  std::vector<Instruction> code;
  std::vector<int> results;  ///< for each output the instruction whose value is stored

  // Where there are reductions or maps; else the rank is left open, and tensors are broadcast to
  // the space.
  bool has_rank = false;
  int rank = 0;
  uint32_t reduced = 0;         ///< bit d: dimension d of the space
  std::vector<ops::Axes> axes;  ///< of each tensor
  /// Of each input the map by which it is read; without factors: at the point itself. None at all
  /// where no input has one.
  std::vector<ops::IndexMap> maps;
  std::vector<int64_t> sizes;  ///< of dimensions that no operand tells, -1 for others; or none
  /// Numbers that stand behind those of the node. Behind them, where there are any, the code finds
  /// the place in which it notes that an index was outside.
  std::vector<TensorNumber> tensor_numbers;
  /// Dimensions, counted from the last, along which a position is asked for. Each is a tensor that
  /// nobody holds: of bytes, the first at address 0, with stride 1 along that dimension and 0 along
  /// all others; so an element's address is its position, however the space is walked. These
  /// tensors follow the outputs.
  std::vector<uint32_t> positions;

  /// Whether elements of a row are combined or picked.
  bool combines() const;
  /// Whether it is a load from a place that is computed.
  static bool is_moved(const Instruction& one) {
    return one.opcode == Opcode::load && one.operands[1] >= 0;
  }
  /// Whether it is one at an index that must not be outside.
  static bool looks_up(const Instruction& one) { return one.may_fail; }
  /// Whether a run may find an index outside.
  bool may_fail() const;
  /// The loads at indices that may be outside which no result depends on.
  std::vector<size_t> unused_look_ups() const;
  /// Null where the tensor is read or written at the point itself.
  const ops::IndexMap* map(size_t tensor) const;
  /// Whether the tensor has more than one element in a row.
  bool runs_along_reduced(size_t tensor) const;
  size_t held_count() const { return inputs.size() + outputs.size(); }
  size_t tensor_count() const { return held_count() + positions.size(); }
  DType tensor_dtype(size_t index) const {
    if (index >= held_count()) return DType::u8;
    return index < inputs.size() ? inputs[index] : outputs[index - inputs.size()];
  }
  size_t tensor_of_position(uint32_t dim) const;
  /// Which number that is; added where there is none.
  uint32_t index_of_number(TensorNumber number);
  /// Time of one point in units of a simple vector instruction: decides about threads.
  int cost() const;

  /// Appends an instruction, or gives the equal one that is there already.
  int append(const Instruction& instruction);
};

/// Time of an instruction in the same units.
int cost(const Instruction& instruction);

std::string print(const LoopNest& nest);

}  // namespace janus::kernels
