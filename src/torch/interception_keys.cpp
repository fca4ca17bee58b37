#include "torch/interception_keys.h"

namespace janus::torch {

namespace {

void (*settle_pending)() = nullptr;

struct Keys : c10::TensorImpl {
  static constexpr auto kMember = &Keys::key_set_;
};

}  // namespace

void remove_lazy_key(c10::TensorImpl& tensor) {
  auto& keys = tensor.*Keys::kMember;
  keys = keys - c10::DispatchKeySet(kLazyTensor);
}

void set_settle_pending(void (*settle)()) { settle_pending = settle; }

bool is_intercepted() {
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  return (keys.included_ - keys.excluded_).has(kBelowAutograd);
}

void OrdinaryExecution::begin() {
  if (!is_intercepted()) return;
  settle_pending();
  c10::impl::tls_set_dispatch_key_excluded(kBelowAutograd, true);
  has_begun_ = true;
}

void OrdinaryExecution::end() {
  if (has_begun_) c10::impl::tls_set_dispatch_key_excluded(kBelowAutograd, false);
}

}  // namespace janus::torch
