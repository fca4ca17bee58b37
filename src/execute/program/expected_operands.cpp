// See expected_operands.h.
#include "execute/program/expected_operands.h"

#include <algorithm>

namespace janus::execute {

void ExpectedOperands::expect(const Slot& operand, const Library& library) {
  Expected expected;
  if (operand.is_tensor()) {
    const Layout layout = library.layout(operand);
    expected = {Expected::Kind::tensor, layout.dtype, static_cast<uint16_t>(layout.sizes.size()),
                static_cast<uint32_t>(numbers_.size())};
    numbers_.insert(numbers_.end(), layout.sizes.begin(), layout.sizes.end());
    numbers_.insert(numbers_.end(), layout.strides.begin(), layout.strides.end());
  }
  expected_.push_back(expected);
}

void ExpectedOperands::expect_number(size_t operand, int64_t number) {
  expected_[operand].kind = Expected::Kind::number;
  expected_[operand].first = static_cast<uint32_t>(numbers_.size());
  numbers_.push_back(number);
}

bool ExpectedOperands::accept(std::span<const Slot> inputs, std::span<const Slot> cells,
                              const Library& library) const {
  const Expected* expected = expected_.data();
  const auto fits = [&](const Slot& slot) { return accepts(*expected++, slot, library); };
  return std::all_of(inputs.begin(), inputs.end(), fits) &&
         std::all_of(cells.begin(), cells.end(), fits);
}

bool ExpectedOperands::accepts(const Expected& expected, const Slot& slot,
                               const Library& library) const {
  const int64_t* numbers = numbers_.data() + expected.first;
  switch (expected.kind) {
    case Expected::Kind::tensor:
      return slot.is_tensor() && library.has_layout(slot, expected.dtype, {numbers, expected.rank},
                                                    {numbers + expected.rank, expected.rank});
    case Expected::Kind::number:
      return slot.i64() == *numbers;
    default:
      return !slot.is_tensor();
  }
}

}  // namespace janus::execute
