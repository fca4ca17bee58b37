// Matrix products: which library multiplies is decided by measurement, per shape, at first use.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "execute/library/library.h"

namespace janus::torch {

/// Products of two matrices, also added to a third, and `linear`; null for other operators.
std::unique_ptr<execute::Operation> bind_product(const graph::Node& node);

/// out = left right + bias, a row; the bias may be undefined. `out` is contiguous.
void multiply(const at::Tensor& left, const at::Tensor& right, const at::Tensor& bias,
              at::Tensor& out);

/// out += left right.
void add_product(const at::Tensor& left, const at::Tensor& right, at::Tensor& out);

/// The next size that is one, one and a half, ... times a power of two: what is found to be fast
/// for it is taken to be so for the size.
int64_t rough_size(int64_t size);

/// How many threads a library may use here.
int threads_of_products();

}  // namespace janus::torch
