// What an instance of a program assumes of its operands: the layouts of tensors and the numbers
// that sizes depend on. They are the key by which a call finds its instance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "execute/library/library.h"
#include "execute/values/slot.h"

namespace janus::execute {

class ExpectedOperands {
 public:
  /// The next operand is as this one: a tensor of its layout, or no tensor.
  void expect(const Slot& operand, const Library& library);
  /// Operand number `operand`, which was expected before, is this number.
  void expect_number(size_t operand, int64_t number);

  /// Whether inputs and cells, which were expected in this order, are so.
  bool accept(std::span<const Slot> inputs, std::span<const Slot> cells,
              const Library& library) const;

 private:
  /// All numbers of all operands stand in one array: they are compared at each run, when what they
  /// lie in has long left the caches.
  struct Expected {
    enum class Kind : uint8_t { anything, tensor, number };
    Kind kind = Kind::anything;
    graph::DType dtype = graph::DType::f32;
    uint16_t rank = 0;
    uint32_t first = 0;  ///< where its sizes and then its strides stand, or the number
  };
  bool accepts(const Expected& expected, const Slot& slot, const Library& library) const;

  std::vector<Expected> expected_;
  std::vector<int64_t> numbers_;
};

}  // namespace janus::execute
