// Whether torch.Tensor is as torch made it. Python's syntax (`a + b`, `x[i]`, `if x`) and torch's
// properties reach the class without a name in the program that a guard could check. So the class
// is checked as a whole, by its version, which CPython changes with each change of the class.
#pragma once

namespace janus::speculate {

/// Remembers the special methods and properties of torch.Tensor and Parameter.
void remember_tensor_class();

/// The first difference, for reports ("a replaced torch.Tensor.__add__"); null if there is none.
const char* changed_tensor_class();

}  // namespace janus::speculate
