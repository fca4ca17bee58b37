// Tensor.numpy() and numpy.asarray(tensor), where they give what the run only hands on.
#include "frontend/tensors/arrays.h"

#include "frontend/core/interpreter.h"
#include "frontend/core/torch_objects.h"
#include "frontend/tensors/tensor.h"
#include "frontend/torch_library/special_callables.h"
#include "python/is_loaded.h"

namespace janus::frontend {

namespace {

/// Null where eager raises, or the array would be a copy.
Value call_numpy(Interpreter& interpreter, const CallArguments& arguments) {
  const auto tensor = arguments.positional.size() == 1 && arguments.keywords.empty()
                          ? shared_as<Tensor>(arguments.positional[0])
                          : nullptr;
  if (tensor == nullptr) return nullptr;
  if (tensor->requires_grad)
    interpreter.refuse(ReasonCode::would_raise, "RuntimeError: numpy() of what requires grad");
  const graph::DType dtype = tensor->value->type.dtype;
  const bool is_numpys = dtype != graph::DType::bf16 && !graph::is_complex(dtype);
  return is_numpys ? array_of(tensor) : nullptr;
}

}  // namespace

std::span<const SpecialCallable> array_callables() {
  if (!python::is_loaded("numpy")) return {};
  static constexpr SpecialCallable table[] = {{"torch.Tensor.numpy", call_numpy},
                                              {"numpy.asarray", call_numpy}};
  return table;
}

}  // namespace janus::frontend
