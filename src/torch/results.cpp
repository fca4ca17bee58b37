// See results.h.
#include "torch/results.h"

#include "base/check.h"
#include "torch/tensor.h"

namespace janus::torch {

using c10::IValue;
using execute::Slot;
using graph::Type;

void Results::put(IValue value) {
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) put_tensor(tensor);
  } else if (value.isTensor()) {
    put_tensor(std::move(value).toTensor());
  } else {
    put_number(value);
  }
}

void Results::check_complete() const {
  TORCHJANUS_CHECK(next_ >= types_.size(), "an operator gave fewer results than expected");
}

void Results::check_own_memory() const {
  for (const uint32_t out : operands_.outputs) {
    const Slot& result = operands_.slots[out];
    if (!result.is_tensor()) continue;
    for (const uint32_t in : operands_.inputs) {
      const Slot& operand = operands_.slots[in];
      TORCH_CHECK(!operand.is_tensor() ||
                      !impl_of(operand)->storage().is_alias_of(impl_of(result)->storage()),
                  "a result lies in the memory of an operand in this run only");
    }
  }
}

void Results::put_tensor(at::Tensor tensor) {
  if (next_ >= types_.size()) return;
  const size_t index = next_++;
  if (types_[index].is_none()) {
    operands_.out(index) = Slot::none();
    return;
  }
  TORCHJANUS_CHECK(tensor.defined(), "an operator gave an undefined tensor");
  operands_.out(index) = slot_of(std::move(tensor));
}

void Results::put_number(const IValue& value) {
  if (next_ >= types_.size()) return;
  Slot& slot = operands_.out(next_);
  switch (types_[next_++].kind) {
    case Type::Kind::boolean:
      slot = Slot::of(value.toScalar().toBool());
      break;
    case Type::Kind::i64:
      slot = Slot::of(value.toScalar().toLong());
      break;
    case Type::Kind::f64:
      slot = Slot::of(value.toScalar().toDouble());
      break;
    default:
      slot = Slot::none();
  }
}

}  // namespace janus::torch
