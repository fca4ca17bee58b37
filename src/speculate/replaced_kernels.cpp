#include "speculate/replaced_kernels.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <string_view>

namespace janus::speculate {
namespace {

/// Dispatch keys that calls with ordinary tensors on the CPU reach. torch itself registers kernels
/// in Python for other devices.
constexpr std::string_view kKeys[] = {
    "",
    "CPU",
    "ADInplaceOrView",
    "AutocastCPU",
    "Autograd",
    "AutogradCPU",
    "BackendSelect",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "CompositeImplicitAutograd",
};

/// "a kernel in Python for aten/sin", if that is what the name says; else empty.
std::string described(std::string_view name) {
  constexpr std::string_view kOfTorch = "aten/";
  const size_t slash = name.rfind('/');
  if (!name.starts_with(kOfTorch) || slash < kOfTorch.size()) return {};
  if (std::ranges::find(kKeys, name.substr(slash + 1)) == std::end(kKeys)) return {};
  return "a kernel in Python for " + std::string(name.substr(0, slash));
}

/// Those that there are, as reports call them.
std::multiset<std::string>& replaced() {
  static auto* const made = new std::multiset<std::string>;
  return *made;
}

std::atomic<bool> is_any_replaced = false;

}  // namespace

void kernel_registered(const std::string& name) {
  std::string kernel = described(name);
  if (kernel.empty()) return;
  replaced().insert(std::move(kernel));
  is_any_replaced = true;
}

void kernel_removed(const std::string& name) {
  const auto found = replaced().find(described(name));
  if (found == replaced().end()) return;
  replaced().erase(found);
  is_any_replaced = !replaced().empty();
}

const char* replaced_kernel() { return replaced().empty() ? nullptr : replaced().begin()->c_str(); }

bool has_replaced_kernel() { return is_any_replaced.load(std::memory_order_relaxed); }

}  // namespace janus::speculate
