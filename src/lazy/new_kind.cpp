#include "lazy/new_kind.h"

#include <algorithm>
#include <span>
#include <utility>

namespace janus::lazy {

namespace {

/// The arguments without tensors and numbers that vary.
std::vector<c10::IValue> constants_of(std::span<const c10::IValue> arguments,
                                      const OperatorRule& rule) {
  std::vector<c10::IValue> made;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    if (value.isTensor()) {
      made.emplace_back(at::Tensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (size_t k = 0; k < value.toListRef().size(); ++k) list.push_back(at::Tensor());
      made.emplace_back(std::move(list));
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (size_t k = 0; k < value.toListRef().size(); ++k) list.push_back(std::nullopt);
      made.emplace_back(std::move(list));
    } else {
      made.push_back(rule.varies[i] && value.isScalar() ? c10::IValue() : value);
    }
  }
  return made;
}

/// What to know of the results; nothing if results of this kind can't be made later.
std::optional<std::vector<ResultShape>> result_shapes(
    const OperatorRule& rule, std::span<const c10::IValue> results,
    std::span<const c10::StorageImpl* const> of_operands) {
  std::vector<ResultShape> shapes;
  std::vector<const c10::StorageImpl*> seen(of_operands.begin(), of_operands.end());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].isTensor()) return std::nullopt;
    const at::Tensor& result = results[i].toTensor();
    ResultShape shape{.is_defined = result.defined()};
    if (!rule.result_is[i] && result.defined()) {
      const c10::StorageImpl* const storage = storage_of(result);
      if (!is_ordinary(result) || result.storage_offset() != 0 ||
          std::ranges::find(seen, storage) != seen.end())
        return std::nullopt;
      seen.push_back(storage);
      shape.geometry = Geometry::of(result);
      shape.bytes = storage->nbytes();
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

/// Whether an element that the operator converts may not fit: the first call says nothing of later
/// ones.
bool may_overflow(const OperatorRule& rule, const at::Stack& stack) {
  const auto arguments = std::span(stack).last(rule.writes.size());
  return rule.converted && arguments[*rule.converted].toTensor().scalar_type() !=
                               arguments.front().toTensor().scalar_type();
}

}  // namespace

NewKind::NewKind(const OperatorRule& rule, const CallParts& parts, const at::Stack& stack)
    : kind_(std::make_unique<CallKind>()),
      integers_in_(parts.integers_in),
      may_overflow_(may_overflow(rule, stack)) {
  kind_->rule = &rule;
  kind_->key = parts.words;
  kind_->places = parts.places;
  kind_->numbers = parts.number_places;
  for (const at::Tensor* tensor : parts.tensors) {
    kind_->operands.push_back(Geometry::of(*tensor));
    operands_.push_back(*tensor);
  }
  kind_->arguments = constants_of(std::span(stack).last(rule.writes.size()), rule);
}

std::unique_ptr<CallKind> NewKind::with_results(const at::Stack& stack) && {
  const OperatorRule& rule = *kind_->rule;
  std::vector<const c10::StorageImpl*> storages;
  bool is_as_before = true, integers_out = false;
  for (size_t i = 0; i < operands_.size(); ++i) {
    storages.push_back(storage_of(operands_[i]));
    is_as_before &= kind_->operands[i].is_of(operands_[i]);
  }
  const auto results = std::span(stack).last(rule.result_is.size());
  for (const c10::IValue& result : results)
    integers_out |= result.isTensor() && result.toTensor().defined() &&
                    at::isIntegralType(result.toTensor().scalar_type(), true);
  auto shapes = result_shapes(rule, results, storages);
  if (shapes) kind_->results = std::move(*shapes);
  kind_->can_wait =
      shapes && is_as_before && !may_overflow_ && never_raises(rule, integers_in_, integers_out);
  return std::move(kind_);
}

}  // namespace janus::lazy
