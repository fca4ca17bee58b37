#include "frontend/tensors/grad_fn_name.h"

#include "frontend/core/torch_services.h"

namespace janus::frontend {

namespace {

/// "log_softmax" → "LogSoftmaxBackward0"
std::string backward_name(std::string_view op) {
  std::string name;
  bool upper = true;
  for (char c : op) {
    if (c == '_' || c == '.') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return name + "Backward0";
}

}  // namespace

std::string grad_fn_name(const TensorState& tensor) {
  if (!tensor.grad_fn_name.empty()) return tensor.grad_fn_name;
  std::string name;
  if (tensor.produced_by != nullptr) name = torch_services().grad_fn_name(*tensor.produced_by);
  return name.empty() ? backward_name(tensor.producer.name) : name;
}

}  // namespace janus::frontend
