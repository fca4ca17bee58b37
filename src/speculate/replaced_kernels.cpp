#include "speculate/replaced_kernels.h"

#include <Python.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "python/object.h"

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

/// Whether there are other names than when they were looked through.
bool have_changed = true;

/// The set in which torch keeps the names of all kernels in Python, such as "aten/sin/CPU". Null if
/// this torch has none.
python::Object registered_names() {
  const auto library = python::Object::steal(PyImport_ImportModule("torch.library"));
  auto names =
      python::Object::steal(library ? PyObject_GetAttrString(library.get(), "_impls") : nullptr);
  PyErr_Clear();
  return names && PyAnySet_Check(names.get()) ? std::move(names) : python::Object();
}

/// "a kernel in Python for aten/sin", if that is what the name says; else empty.
std::string described(std::string_view name) {
  constexpr std::string_view kOfTorch = "aten/";
  const size_t slash = name.rfind('/');
  if (!name.starts_with(kOfTorch) || slash < kOfTorch.size()) return {};
  if (std::ranges::find(kKeys, name.substr(slash + 1)) == std::end(kKeys)) return {};
  return "a kernel in Python for " + std::string(name.substr(0, slash));
}

std::string first_replaced(PyObject* names) {
  const auto iterator = python::Object::steal(PyObject_GetIter(names));
  while (const auto name = python::Object::steal(PyIter_Next(iterator.get()))) {
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(name.get(), &length);
    if (text == nullptr) {
      PyErr_Clear();
      continue;
    }
    std::string found = described({text, static_cast<size_t>(length)});
    if (!found.empty()) return found;
  }
  PyErr_Clear();
  return {};
}

}  // namespace

void kernel_names_changed() { have_changed = true; }

const char* replaced_kernel() {
  static std::string* const replaced = new std::string;
  if (std::exchange(have_changed, false)) {
    const python::Object names = registered_names();
    *replaced = names ? first_replaced(names.get()) : std::string();
  }
  return replaced->empty() ? nullptr : replaced->c_str();
}

}  // namespace janus::speculate
