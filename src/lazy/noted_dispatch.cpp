#include "lazy/noted_dispatch.h"

#include <c10/core/AutogradState.h>

#include "torch/interception_keys.h"

namespace janus::lazy {

namespace {

/// Of a thread in which nothing is active, without autograd.
c10::DispatchKeySet included() {
  return c10::default_included_set - c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView);
}

c10::DispatchKeySet excluded() {
  return c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView |
         torch::kInterceptionKeys;
}

}  // namespace

NotedDispatch::NotedDispatch() : keys_(included(), excluded()) {
  c10::AutogradState& state = c10::AutogradState::get_tls_state();
  grad_mode_ = state.get_grad_mode();
  forward_mode_ = state.get_fw_grad_mode();
  inference_mode_ = state.get_inference_mode();
  state.set_grad_mode(false);
  state.set_fw_grad_mode(false);
  state.set_inference_mode(false);
}

NotedDispatch::~NotedDispatch() {
  c10::AutogradState& state = c10::AutogradState::get_tls_state();
  state.set_grad_mode(grad_mode_);
  state.set_fw_grad_mode(forward_mode_);
  state.set_inference_mode(inference_mode_);
}

}  // namespace janus::lazy
