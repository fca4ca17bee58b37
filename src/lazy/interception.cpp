#include "lazy/interception.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lazy/operator_rule.h"
#include "lazy/session.h"
#include "lazy/visitors.h"
#include "speculate/replaced_kernels.h"
#include "torch/file_backed.h"
#include "torch/interception_keys.h"
#include "torch/version.h"

namespace janus::lazy {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::OperatorHandle;

namespace {

constexpr DispatchKey kBelow = torch::kBelowAutograd;
constexpr DispatchKey kWrapper = torch::kLazyTensor;
constexpr DispatchKey kAbove = torch::kAboveAll;

thread_local Session* session_of_thread = nullptr;

/// Until torch 2.12 a watched storage is more than a pointer that torch keeps (materializer.h), and
/// two threads that begin and end to watch at once would meet in it.
constexpr bool kThreadsTakeTurns = !torch::since(13);
std::thread::id thread_that_notes;  ///< guarded by Python's lock; of none: no thread

bool is_this_threads_turn() {
  return !kThreadsTakeTurns || thread_that_notes == std::thread::id() ||
         thread_that_notes == std::this_thread::get_id();
}

DispatchKeySet after(DispatchKey key) { return DispatchKeySet(DispatchKeySet::FULL_AFTER, key); }

/// Whether an operator runs in this thread that is not torch's own.
thread_local bool is_in_own_kernel = false;

/// While it lives, operators of this thread run when they are called.
class OwnKernel {
 public:
  OwnKernel() = default;
  ~OwnKernel() { is_in_own_kernel = was_in_one_; }
  OwnKernel(const OwnKernel&) = delete;
  OwnKernel& operator=(const OwnKernel&) = delete;

 private:
  bool was_in_one_ = std::exchange(is_in_own_kernel, true);
};

/// A kernel of the program's may use tensors that are no operands, by operators of torch's. These
/// look for what is pending, but none is noted: the kernel may read their results' memory.
void run_below(const OperatorRule& rule, DispatchKeySet keys, at::Stack& stack) {
  const DispatchKeySet below = keys & after(kBelow);
  if (rule.is_of_torch) {
    const torch::NotIntercepted scope;
    rule.overload.redispatchBoxed(below, &stack);
  } else {
    const OwnKernel scope;
    rule.overload.redispatchBoxed(below, &stack);
  }
}

void intercept(Session* session, bool looks) {
  session_of_thread = session;
  c10::impl::tls_set_dispatch_key_included(kBelow, looks);
  c10::impl::tls_set_dispatch_key_included(kAbove, looks);
}

/// Whether Python handles the operator before anybody can intercept those that it calls there.
bool is_left_to_python(DispatchKeySet keys) {
  return !torch::kPythonComesFirst && keys.has(DispatchKey::Python);
}

void on_call(const OperatorHandle& overload, DispatchKeySet keys, at::Stack* stack) {
  if (is_left_to_python(keys)) {
    Session::run_all_sessions(Look::function);
    overload.redispatchBoxed(keys & after(kBelow), stack);
    return;
  }
  Session* const session = session_of_thread;
  const OperatorRule& rule = rule_of(overload);
  if (session == nullptr) {
    if (has_visits())
      Session::serve(overload, *stack);
    else
      intercept(nullptr, false);
    run_below(rule, keys, *stack);
    return;
  }
  if (speculate::has_replaced_kernel()) {
    Session::serve(overload, *stack);
    run_below(rule, keys, *stack);
    return;
  }
  if (rule.treatment == Treatment::decompose) {
    overload.redispatchBoxed(keys & after(kBelow), stack);
    return;
  }
  const auto run = [&] { run_below(rule, keys, *stack); };
  if (is_in_own_kernel && rule.treatment != Treatment::view)
    session->run_at_once(rule, *stack, run);
  else
    session->take(rule, *stack, run);
}

void on_call_of_other_thread(const OperatorHandle& overload, DispatchKeySet keys,
                             at::Stack* stack) {
  Session::share(overload, *stack);
  Session::serve(overload, *stack);
  if (is_left_to_python(keys)) Session::run_all_sessions(Look::function);
  overload.redispatchBoxed(keys & after(kWrapper), stack);
}

/// What reads a tensor's memory without another operator: `tolist` and `numpy` behind resolve_conj
/// and resolve_neg, and functions of torch made of operators.
constexpr const char* kReaders[] = {"max_pool1d",      "resolve_conj",
                                    "resolve_neg",     "tensor_split.tensor_indices_or_sections",
                                    "ctc_loss.Tensor", "lstm.data",
                                    "gru.data",        "rnn_tanh.data",
                                    "rnn_relu.data",   "_pad_packed_sequence",
                                    "histogramdd",     "_histogramdd_bin_edges"};

template <void (*function)(const OperatorHandle&, DispatchKeySet, at::Stack*)>
::torch::CppFunction boxed() {
  return ::torch::CppFunction::makeFromBoxedFunction<function>();
}

::torch::Library library_for(DispatchKey key, const char* name_space) {
  return ::torch::Library(::torch::Library::IMPL, name_space, key, __FILE__, __LINE__);
}

template <DispatchKey key>
void on_look_at_memory(const OperatorHandle& overload, DispatchKeySet keys, at::Stack* stack) {
  Session::serve(overload, *stack);
  const torch::NotIntercepted scope;  // what it makes on the way it reads as well
  overload.redispatchBoxed(keys & after(key), stack);
}

/// Within `__torch_dispatch__`, all keys above Python's are excluded, and so is kAbove.
template <DispatchKey key>
void watch_readers(std::vector<::torch::Library>& libraries) {
  libraries.push_back(library_for(key, "aten"));
  for (const char* name : kReaders) libraries.back().impl(name, boxed<on_look_at_memory<key>>());
}

/// Registers the fallbacks, which touches every operator of torch: at the first use.
void register_fallbacks() {
  static auto* const libraries = new std::vector<::torch::Library>;
  set_materializer([](c10::StorageImpl* storage) {
    torch::move_to_memory(*storage);
    Session::serve_pointer(*storage);
  });
  torch::set_settle_pending([] {
    if (has_begun())
      Session::of_this_thread().run_all(Look::function);
    else
      Session::run_all_sessions(Look::function);
  });
  libraries->push_back(library_for(kBelow, "_"));
  libraries->back().fallback(boxed<on_call>());
  libraries->push_back(library_for(kWrapper, "_"));
  libraries->back().fallback(boxed<on_call_of_other_thread>());
  libraries->push_back(library_for(kAbove, "_"));
  libraries->back().fallback(::torch::CppFunction::makeFallthrough());
  watch_readers<kAbove>(*libraries);
  watch_readers<kBelow>(*libraries);
}

/// This thread's operators are not noted. But they look for what other threads have pending.
void visit() {
  if (!has_begun() && has_visits()) intercept(nullptr, true);
}

}  // namespace

bool may_begin() {
  return !options().is_disabled(kInterceptionSwitch.name) &&
         speculate::replaced_kernel() == nullptr && is_this_threads_turn();
}

void begin(AheadChoice* choice) {
  static std::once_flag once;
  std::call_once(once, register_fallbacks);
  thread_that_notes = std::this_thread::get_id();
  Session& session = Session::of_this_thread();
  session.choose_by(choice);
  if (!has_begun()) begin_visits(visit);
  intercept(&session, true);
  // Tensors keep the key of the wrapper when the session has ended.
  c10::impl::tls_set_dispatch_key_excluded(kWrapper, true);
}

bool has_begun() { return session_of_thread != nullptr; }

void end() {
  const bool has_noted = has_begun();
  if (has_noted) end_visits();
  intercept(nullptr, has_visits());
  const auto leave = [&](void*) {
    if (has_noted) thread_that_notes = {};
  };
  const std::unique_ptr<void, decltype(leave)> at_end(&thread_that_notes, leave);
  Session& session = Session::of_this_thread();
  session.choose_by(nullptr);
  session.run_all(Look::end);
}

}  // namespace janus::lazy
