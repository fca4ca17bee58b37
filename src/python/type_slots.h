// Slots of the classes that are made by PyType_FromSpec.
#pragma once

namespace janus::python {

/// A function, or a table of members, as PyType_Slot keeps it.
template <class Pointer>
void* slot(Pointer pointer) {
  return reinterpret_cast<void*>(pointer);
}

}  // namespace janus::python
