#include "lazy/event.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

#include "base/check.h"

namespace janus::lazy {

Geometry Geometry::of(const at::Tensor& tensor) {
  Geometry made{.dtype = tensor.scalar_type()};
  made.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  made.strides.assign(tensor.strides().begin(), tensor.strides().end());
  return made;
}

bool Geometry::is_of(const at::Tensor& tensor) const {
  return dtype == tensor.scalar_type() && std::ranges::equal(sizes, tensor.sizes()) &&
         std::ranges::equal(strides, tensor.strides());
}

at::Tensor tensor_in(const c10::Storage& storage, const Geometry& geometry, int64_t offset,
                     c10::DispatchKeySet more_keys) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), more_keys | c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(geometry.dtype));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(geometry.sizes, geometry.strides, offset);
  return made;
}

namespace {

at::Tensor wrapped(const c10::Scalar& number) {
  at::Tensor made = at::scalar_tensor(number, at::device(at::kCPU).dtype(number.type()));
  made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

void put(std::vector<c10::IValue>& arguments, OperandPlace place, c10::IValue value) {
  c10::IValue& argument = arguments[place.argument];
  const auto element = static_cast<size_t>(place.element);
  if (place.element < 0)
    argument = std::move(value);
  else if (argument.isTensorList())
    argument.toTensorList().set(element, value.toTensor());
  else
    argument.toOptionalTensorList().set(element, value.toTensor());
}

/// The arguments with lists of their own.
std::vector<c10::IValue> copied(const std::vector<c10::IValue>& arguments) {
  std::vector<c10::IValue> made = arguments;
  for (c10::IValue& each : made) {
    if (each.isTensorList())
      each = each.toTensorList().copy();
    else if (each.isOptionalTensorList())
      each = each.toOptionalTensorList().copy();
  }
  return made;
}

}  // namespace

void run_eagerly(const Event& event) {
  const CallKind& kind = *event.kind;
  std::vector<c10::IValue> stack = copied(kind.arguments);
  // What is written comes first: its contents may move, and another operand may lie there, too.
  for (const bool is_written : {true, false})
    for (size_t i = 0; i < event.operands.size(); ++i)
      if (const Event::Operand& operand = event.operands[i]; kind.writes(i) == is_written)
        put(stack, kind.places[i],
            tensor_in(operand.node->memory(is_written), kind.operands[i], operand.offset));
  for (size_t i = 0; i < event.numbers.size(); ++i) {
    const NumberPlace& number = kind.numbers[i];
    const c10::Scalar& value = event.numbers[i];
    put(stack, number.place, number.is_wrapped ? c10::IValue(wrapped(value)) : c10::IValue(value));
  }
  kind.rule->overload.callBoxed(&stack);
  size_t next = 0;
  for (size_t i = 0; i < kind.results.size(); ++i) {
    if (kind.rule->result_is[i] || !kind.results[i].is_defined) continue;
    const at::Tensor made = std::move(stack[i]).toTensor();
    TORCHJANUS_CHECK(kind.results[i].geometry.is_of(made),
                     "lazy: ", kind.rule->overload.schema().name(),
                     " gave a result of another geometry");
    event.results[next++]->install(made.storage());
  }
}

}  // namespace janus::lazy
