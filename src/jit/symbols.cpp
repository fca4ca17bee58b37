// Functions outside of the compiled code. We resolve them ourselves, so that kernels reach the same
// functions however the extension and torch were loaded: torch's libraries are not in the global
// scope.
#include <dlfcn.h>

#include <cmath>
#include <cstring>
#include <string>

#include "jit/jit.h"

#ifdef __x86_64__
// Of the compiler's own library, linked into ours: the shared one has them only since GCC 12.
extern "C" {
void __extendhfsf2();
void __extendhfdf2();
void __truncsfhf2();
void __truncdfhf2();
}
#endif

namespace janus::jit {
namespace {

struct Function {
  std::string_view name;
  void* address;
};

template <class Pointer>
void* address_of(Pointer* function) {
  return reinterpret_cast<void*>(function);
}

#define TORCHJANUS_UNARY(name)                                                                     \
  Function{#name, address_of<double(double)>(static_cast<double (*)(double)>(::name))}, Function { \
    #name "f", address_of<float(float)>(static_cast<float (*)(float)>(::name##f))                  \
  }
#define TORCHJANUS_BINARY(name)                                                                  \
  Function{#name,                                                                                \
           address_of<double(double, double)>(static_cast<double (*)(double, double)>(::name))}, \
      Function {                                                                                 \
    #name "f", address_of<float(float, float)>(static_cast<float (*)(float, float)>(::name##f))  \
  }

/// The functions that kernels call by name, and those that LLVM's code generator calls.
const Function kLibrary[] = {
    TORCHJANUS_UNARY(exp),
    TORCHJANUS_UNARY(exp2),
    TORCHJANUS_UNARY(expm1),
    TORCHJANUS_UNARY(log),
    TORCHJANUS_UNARY(log2),
    TORCHJANUS_UNARY(log10),
    TORCHJANUS_UNARY(log1p),
    TORCHJANUS_UNARY(sin),
    TORCHJANUS_UNARY(cos),
    TORCHJANUS_UNARY(tan),
    TORCHJANUS_UNARY(asin),
    TORCHJANUS_UNARY(acos),
    TORCHJANUS_UNARY(atan),
    TORCHJANUS_UNARY(sinh),
    TORCHJANUS_UNARY(cosh),
    TORCHJANUS_UNARY(tanh),
    TORCHJANUS_UNARY(asinh),
    TORCHJANUS_UNARY(acosh),
    TORCHJANUS_UNARY(atanh),
    TORCHJANUS_UNARY(erf),
    TORCHJANUS_UNARY(erfc),
    TORCHJANUS_UNARY(lgamma),
    TORCHJANUS_UNARY(tgamma),
    TORCHJANUS_UNARY(cbrt),
    TORCHJANUS_UNARY(floor),
    TORCHJANUS_UNARY(ceil),
    TORCHJANUS_UNARY(trunc),
    TORCHJANUS_UNARY(round),
    TORCHJANUS_UNARY(rint),
    TORCHJANUS_UNARY(nearbyint),
    TORCHJANUS_UNARY(sqrt),
    TORCHJANUS_BINARY(pow),
    TORCHJANUS_BINARY(atan2),
    TORCHJANUS_BINARY(fmod),
    TORCHJANUS_BINARY(hypot),
    TORCHJANUS_BINARY(nextafter),
    TORCHJANUS_BINARY(fmin),
    TORCHJANUS_BINARY(fmax),
    {"memcpy", address_of(::memcpy)},
    {"memset", address_of(::memset)},
    {"memmove", address_of(::memmove)},
#ifdef __x86_64__
    // Half precision, where the processor does not convert it.
    {"__extendhfsf2", address_of(__extendhfsf2)},
    {"__extendhfdf2", address_of(__extendhfdf2)},
    {"__truncsfhf2", address_of(__truncsfhf2)},
    {"__truncdfhf2", address_of(__truncdfhf2)},
#endif
};

#undef TORCHJANUS_UNARY
#undef TORCHJANUS_BINARY

}  // namespace

void* external_function(std::string_view name) {
  for (const Function& function : kLibrary)
    if (function.name == name) return function.address;
  const std::string text(name);
  if (void* address = dlsym(RTLD_DEFAULT, text.c_str())) return address;
  static constexpr const char* kTorch = "libtorch_cpu.so";
  void* torch = dlopen(kTorch, RTLD_LAZY | RTLD_NOLOAD);
  if (torch == nullptr) return nullptr;
  void* address = dlsym(torch, text.c_str());
  dlclose(torch);
  return address;
}

}  // namespace janus::jit
