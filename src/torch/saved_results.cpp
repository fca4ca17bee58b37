// See saved_results.h. Autograd compares versions where its node takes out what it has kept: the
// node is called with another version of the result.
#include "torch/saved_results.h"

#include <ATen/ops/ones_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <string_view>

namespace janus::torch {

namespace autograd = ::torch::autograd;

namespace {

/// As if the tensor had been written while this lives.
class Written {
 public:
  explicit Written(const at::Tensor& tensor)
      : version_(autograd::impl::version_counter(tensor)), before_(version_.current_version()) {
    version_.bump();
  }
  ~Written() { version_.set_version(before_); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

 private:
  c10::VariableVersion version_;  // the same counter
  int64_t before_;
};

bool keeps_its_result(const at::Tensor& result) {
  const auto& node = result.grad_fn();
  if (node == nullptr) return false;
  const c10::AutoGradMode without_gradients(false);
  autograd::variable_list seeds(node->num_inputs());
  seeds.at(result.output_nr()) = at::ones_like(result);
  const Written written(result);
  try {
    (*node)(std::move(seeds));
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

}  // namespace

bool is_saved_result(const at::Tensor& result) {
  if (!result.defined() || !result.requires_grad()) return false;
  return keeps_its_result(result) ||
         (result.is_view() && keeps_its_result(at::Tensor(result._base())));
}

}  // namespace janus::torch
