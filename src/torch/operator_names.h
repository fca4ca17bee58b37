// Which ATen operator a Python callable of torch is.
#pragma once

#include <optional>
#include <string>

#include "python/object.h"

namespace janus::torch {

/// "aten::cumsum" for torch.cumsum, Tensor.cumsum, torch._C._nn.gelu, ...
std::optional<std::string> aten_name(PyObject* callable);

}  // namespace janus::torch
