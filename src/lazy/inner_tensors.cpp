#include "lazy/inner_tensors.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>

namespace janus::lazy {

namespace {

std::vector<at::Tensor> scales_of(const at::QTensorImpl& quantised) {
  const auto quantizer = const_cast<at::QTensorImpl&>(quantised).quantizer();  // NOLINT: only read
  const auto* const of_channels =
      dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get());
  if (of_channels == nullptr) return {};
  return {of_channels->scales(), of_channels->zero_points()};
}

}  // namespace

std::vector<at::Tensor> inner_tensors(const at::Tensor& tensor) {
  const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  if (const auto* const sparse = dynamic_cast<const at::SparseTensorImpl*>(impl))
    return {sparse->indices(), sparse->values()};
  if (const auto* const rows = dynamic_cast<const at::SparseCsrTensorImpl*>(impl))
    return {rows->compressed_indices(), rows->plain_indices(), rows->values()};
  if (const auto* const quantised = dynamic_cast<const at::QTensorImpl*>(impl))
    return scales_of(*quantised);
  if (const auto* const nested = dynamic_cast<const at::native::NestedTensorImpl*>(impl))
    return {nested->get_nested_sizes(), nested->get_nested_strides(),
            nested->get_storage_offsets()};
  return {};
}

}  // namespace janus::lazy
