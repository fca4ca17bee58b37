// Guards around a run, set once, and the translation of what is thrown inside.
#include "torch/run_scope.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "execute/library/kernel_watcher.h"
#include "python/lock.h"
#include "python/object.h"
#include "torch/certain_part.h"
#include "torch/collectives.h"
#include "torch/memory.h"

namespace janus::torch {

using execute::Failure;
using execute::Unlock;

namespace {

/// The user has asked to stop.
struct Interrupted {};

thread_local c10::impl::LocalDispatchKeySet outer_keys{c10::impl::PODLocalDispatchKeySet{}};
thread_local bool is_without_python = false;
thread_local unsigned checks = 0;
thread_local std::chrono::steady_clock::time_point last_check;

constexpr unsigned calls_between_checks = 32;
constexpr std::chrono::milliseconds time_between_checks(50);

/// Whether Python knows of another thread than this one, which has the lock.
bool has_other_threads() {
  PyThreadState* first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  return first == nullptr || PyThreadState_Next(first) != nullptr;
}

bool gives_up_lock(Unlock unlock) {
  if (unlock == Unlock::never || PyGILState_Check() == 0) return false;
  return unlock == Unlock::always || has_other_threads();
}

/// What every operator of a run finds: no autograd, no autocast, no gradient mode.
class BelowAutograd {
 public:
  BelowAutograd() : outer_(std::exchange(outer_keys, c10::impl::tls_local_dispatch_key_set())) {}
  ~BelowAutograd() { outer_keys = outer_; }
  BelowAutograd(const BelowAutograd&) = delete;
  BelowAutograd& operator=(const BelowAutograd&) = delete;

 private:
  c10::impl::LocalDispatchKeySet outer_;
  at::AutoDispatchBelowADInplaceOrView below_;
  c10::impl::ExcludeDispatchKeyGuard no_autocast_{c10::autocast_dispatch_keyset};
  c10::AutoGradMode no_grad_{false};
};

/// Kernels as events of torch's profiler, while it looks at this thread.
class ProfiledKernels final : public execute::KernelWatcher {
 public:
  ProfiledKernels()
      : outer_(std::exchange(execute::kernel_watcher, at::hasCallbacks() ? this : nullptr)) {}
  ~ProfiledKernels() override { execute::kernel_watcher = outer_; }
  ProfiledKernels(const ProfiledKernels&) = delete;
  ProfiledKernels& operator=(const ProfiledKernels&) = delete;

  void begin(const std::string& name) override {
    event_.emplace(at::RecordScope::FUNCTION);
    if (event_->isActive()) event_->before("torchjanus::" + name);
  }
  void end() override { event_.reset(); }

 private:
  execute::KernelWatcher* outer_;
  std::optional<at::RecordFunction> event_;
};

Failure failure(Failure::Kind kind, std::string message) {
  Failure result;
  result.kind = kind;
  result.message = std::move(message);
  return result;
}

}  // namespace

std::optional<Failure> run_protected(Unlock unlock, void (*body)(void*), void* context) {
  try {
    RECORD_FUNCTION("torchjanus::graph", {});  // what torch.profiler shows of a run
    const ProfiledKernels profiled;
    const python::WithoutLock unlocked(gives_up_lock(unlock));
    const BelowAutograd below;
    const UncertainScope uncertain;
    const PooledScope pooled;
    const CollectivesScope collectives;
    body(context);
    return std::nullopt;
  } catch (const Interrupted&) {
    return failure(Failure::Kind::interrupted, "interrupted");
  } catch (const InternalError&) {
    throw;
  } catch (python_error& error) {
    const python::WithLock locked;
    error.restore();
    PyErr_Clear();
    return failure(Failure::Kind::operation, "an operator written in Python raised");
  } catch (const c10::Error& error) {
    return failure(Failure::Kind::operation, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return failure(Failure::Kind::operation, error.what());
  }
}

void check_interrupt() {
  if (is_without_python || is_certain_part() || ++checks % calls_between_checks != 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_check < time_between_checks) return;
  last_check = now;
  const python::WithLock locked;
  if (PyErr_CheckSignals() != 0) throw Interrupted();
}

WithoutPython::WithoutPython() : before_(std::exchange(is_without_python, true)) {}
WithoutPython::~WithoutPython() { is_without_python = before_; }

RecordingScope::RecordingScope() : keys_(outer_keys), grad_mode_(c10::GradMode::is_enabled()) {
  c10::GradMode::set_enabled(true);
}

RecordingScope::~RecordingScope() { c10::GradMode::set_enabled(grad_mode_); }

}  // namespace janus::torch
