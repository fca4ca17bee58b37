// The answers that an operator's block gives to the questions of the compiler (OpDef in op.h).
//
// `unstated` is the default where no answer is right for every operator. A test asks every operator
// (tests/cpp/ops/questions_test.cpp), so what a block leaves open is found there. Where an answer
// follows from traits, the block leaves it out: `layout_of`, `raises_of` and `saves_of` derive it.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/dim.h"

namespace janus::graph {

/// What an operator is in the structure of a graph. This room knows no operators by name.
enum class Role : uint8_t {
  none,
  constant,
  state,
  commit,
  rebind,
  guard,
  size,
  dimension,
  function,
  call,
  loop,
  opaque,  ///< draws random numbers only where its attribute _draws says so
};

/// Who computes an operator that is not in a kernel.
enum class ComputedBy : uint8_t {
  unstated,    ///< derived: ATen's overload, its decomposition, or a function of Python's numbers
  executor,    ///< the executor itself, or passes leave none of it
  containers,  ///< the executor's lists and frames
  heap,        ///< what reads Python's objects
  python,      ///< Python
  loops,       ///< loops of our own
};

/// How eager lays out a result whose operands do not all lie in order. Where they do, and where it
/// has at most one dimension, a result lies in order in any case.
enum class Layout : uint8_t {
  unstated,
  none,              ///< it gives no tensors
  view,              ///< in the memory of operand 0 (derived for views)
  contiguous,        ///< in order, whatever its operands do (derived for products)
  contiguous_copy,   ///< in order; kernels would keep the operands' order, so a copy is needed
  operands,          ///< as iteration over the operands chooses (derived for elementwise operators)
  first_operand,     ///< as operand 0, a part of which is replaced
  image,             ///< channels last where operand 0 is; else not known
  filtered_image,    ///< channels last where operand 0 or operand 1, its filters, are
  normalised_image,  ///< channels last where operand 0 is, else in order
  gradient_image,    ///< channels last where operand 1 is, the image that a gradient goes back to
  differs,           ///< in another way, or in one that nobody has looked into
};

/// What a view sees of operand 0, where the layout of what it sees follows.
enum class Sees : uint8_t {
  unstated,    ///< it is no view
  all,         ///< everything as it is
  in_order,    ///< everything; what does not lie in order is copied
  reshaped,    ///< everything in another shape; a copy where there is no such view
  viewed,      ///< the same, but eager raises where there is no such view
  permuted,    ///< everything, the dimensions in another order (ops::permutation_of)
  part,        ///< a part of one dimension (OpDef::part)
  squeezed,    ///< without dimensions of size 1: those of attribute `dim`, or all
  unsqueezed,  ///< with a dimension of size 1 at attribute `dim`
  expanded,    ///< broadcast to another shape
  differs,     ///< something whose layout is not followed
};

/// What part of one dimension a view sees: the elements start, start + step, ….
struct Part {
  int64_t dim = 0;
  std::optional<Dim> start;  ///< nothing: only the run knows
  Dim length = 1;
  Dim step = 1;
  bool drops = false;  ///< the dimension
};

/// For which contents of its operands a program raises at the operator; that their types fit is
/// known.
enum class Raises : uint8_t {
  unstated,
  never,             ///< nothing but memory may be missing when it is computed (derived for views)
  never_for_floats,  ///< the same of floats; nobody has looked at integers (derived for products)
  not_for_contents,  ///< for none; but a call may fail for what else its library checks
  own_indices,       ///< never, for indices that come from its own forward operator
  outside_part,      ///< a part that replaces or is replaced: never, but at a number of the run
  outside_place,     ///< the place, an attribute, has to lie in the tensor
  outside_range,     ///< positions, classes or probabilities outside a range
  integer_zero,      ///< integers divided by zero
  zero,              ///< numbers divided by zero
  outside_domain,    ///< numbers for which Python's function is not defined
  outside_domain_real,  ///< the same, where the result is a float
  missing_element,      ///< a program's list may be too short
};

/// What eager's autograd keeps of a run for the operator's gradient.
enum class Saves : uint8_t {
  unstated,
  nothing,          ///< so that backward() can run through it twice (derived for views)
  values,           ///< operands, or results of which computing them again gives the same bits
  values_once,      ///< operands, of which no copy is kept where the result is written over them
  result,           ///< the result as it came out; the same computed otherwise has other bits
  result_in_place,  ///< operands; where the result is written over operand 0, the result
};

/// Where an operator finds what it computes an element of its result of. Other answers than `whole`
/// let kernels compute it (ops/read.h, ops/index_space.h).
enum class Access : uint8_t {
  whole,        ///< anywhere, or at the element itself where it is elementwise
  mapped,       ///< at an affine map of the element's index (attributes of `reindex`)
  divided,      ///< at the index divided (attributes of `reindex_divided`)
  reversed,     ///< counted from the end
  gathered,     ///< where a tensor of indices says it for each element
  selected,     ///< where a vector of indices says it along one dimension
  embedded,     ///< in the row of operand 0 that an index says
  subscripted,  ///< where tensors of indices say it for some dimensions
  joined,       ///< in one of its operands, or nowhere: a border
  window,       ///< in a window of operand 0, or in the windows that a gradient goes back to
};

/// How an operator combines the elements that it reduces into one, if it does nothing else.
enum class Combines : uint8_t { nothing, sum, mean, product, maximum, minimum, any, all, picked };

/// Which dimensions of operand 0 an operator reduces, or what it is made of in kernels does.
enum class Reduces : uint8_t {
  nothing,
  named,  ///< those of the list `dim`; all if it is empty
  all,
  one,          ///< that of attribute `dim`
  to_position,  ///< those of `dim`, to the position of an element
  normalised,   ///< the last ones, as many as attribute `normalized_shape` has
  all_but_channels,
};

/// Where eager's operator rounds half precision, of which kernels compute in float32.
enum class Rounds : uint8_t {
  unstated,
  at_the_end,
  within,                 ///< after each step too
  within_but_along_last,  ///< the same, unless it goes along the last dimension
};

/// What computing an operator costs beside moving its elements.
enum class Cost : uint8_t {
  ordinary,
  cheap,       ///< as fast as the elements come from memory: may be computed again in each kernel
  slow_alone,  ///< ATen takes the elements one by one, or several operators, for one kernel
};

/// In which order an operator of trait `random` draws.
enum class Draws : uint8_t {
  unstated,
  elements,  ///< for the elements in the order of their strides
  memory,    ///< for the elements as they lie in memory, where torch does so for new memory
  channels,  ///< for channels: the order of elements does not matter
};

/// How the gradient of an operator on half precision is computed in eager.
enum class HalfGradient : uint8_t {
  unstated,  ///< derived: elementwise operators by one operator in float32, others step by step
  at_once,   ///< by one operator in float32
  stepwise,  ///< in half precision
};

/// What torch.autocast makes of the floating operands (torch's own lists, which a test compares).
enum class Autocast : uint8_t {
  none,        ///< it takes them as they are
  lower,       ///< they are cast to the type of the context
  full,        ///< to float32
  widest,      ///< to float32 if one of them has that type, else to the type of the context
  widened,     ///< a norm: as they are, but computed in float32 with weights of that type
  unfollowed,  ///< what eager makes it of is cast one by one, which the operator can't say
};

/// Operands and results that are images, which may lie channels last if all of them do: bit i
/// stands for operand or result i.
struct Images {
  uint8_t operands = 0, results = 0;
};

}  // namespace janus::graph
