// What of a call decides which results it has: the overload, constant arguments, the geometry of
// its operands. A call with the same key has results of the same geometry.
#pragma once

#include <ATen/core/stack.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lazy/operator_rule.h"

namespace janus::lazy {

/// A tensor operand of a call: argument `argument`, or element `element` of that list.
struct OperandPlace {
  uint32_t argument = 0;
  int32_t element = -1;
  friend auto operator<=>(const OperandPlace&, const OperandPlace&) = default;
};

/// A Python number of a call: an argument, or a tensor that stands for one.
struct NumberPlace {
  OperandPlace place;
  bool is_wrapped = false;
};

/// The parts of a call, kept apart from the stack. Reused from call to call.
struct CallParts {
  std::vector<uint64_t> words;             ///< the key
  std::vector<const at::Tensor*> tensors;  ///< operands, in the order of arguments
  std::vector<OperandPlace> places;        ///< of the tensors
  std::vector<c10::Scalar> numbers;        ///< Python numbers that may vary
  std::vector<NumberPlace> number_places;  ///< of the numbers
  bool integers_in = false;
  bool is_narrow = false;  ///< a dtype is met that can't represent many numbers
  bool is_known = true;    ///< no argument is of a kind that calls can't be noted with

  /// Takes the last arguments from the stack apart; their number is the schema's.
  void read(const OperatorRule& rule, const at::Stack& stack);

 private:
  void add(const c10::IValue& value, uint32_t argument, bool varies);
  void add_tensor(const at::Tensor& tensor, OperandPlace place);
  void add_value(const c10::Scalar& number);
  void add_number(const c10::Scalar& number, uint32_t argument);
  template <class List>
  void add_numbers(const List& list, uint64_t tag);
};

/// A tensor that stands for a Python number beside tensors (`x * 2`); nullopt of others.
std::optional<c10::Scalar> wrapped_number(const at::Tensor& tensor);

/// Whether noted operators can have the tensor as an operand: an ordinary one in memory of the CPU.
bool is_ordinary(const at::Tensor& tensor);

/// Null if it has none.
c10::StorageImpl* storage_of(const at::Tensor& tensor);

uint64_t hash_of(std::span<const uint64_t> words);

}  // namespace janus::lazy
