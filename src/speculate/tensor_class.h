// Whether torch.Tensor is as torch made it. Python's syntax (`a + b`, `x[i]`, `if x`) and torch's
// properties reach a tensor's class without a name in the program that a guard could watch, so the
// class is watched as a whole: by its version, which CPython changes at each change.
#pragma once

namespace janus::speculate {

/// Remembers the special methods and properties of torch.Tensor and Parameter as they are now.
void remember_tensor_class();

/// What is not as it was remembered, for people ("a replaced torch.Tensor.__add__"); null: nothing.
const char* changed_tensor_class();

}  // namespace janus::speculate
