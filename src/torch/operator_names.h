// Which operator a Python callable of torch is.
#pragma once

#include <optional>
#include <string>

#include "python/object.h"

namespace janus::torch {

/// "aten::cumsum" for torch.cumsum, Tensor.cumsum, torch._C._nn.gelu, ...; "mine::f" for
/// torch.ops.mine.f, and "mine::f.default" for its overload torch.ops.mine.f.default.
std::optional<std::string> operator_name(PyObject* callable);

}  // namespace janus::torch
