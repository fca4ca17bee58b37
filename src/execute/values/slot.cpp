// Slots: reference counting of the handles that they own.
#include "execute/values/slot.h"

#include "execute/values/container.h"

namespace janus::execute {

namespace {

HandleOperations tensors;
HandleOperations objects;

}  // namespace

HandleOperations& tensor_operations() { return tensors; }
HandleOperations& object_operations() { return objects; }

Slot Slot::of(bool value) {
  Slot slot(Kind::boolean);
  slot.payload_.boolean = value;
  return slot;
}

Slot Slot::of(int64_t value) {
  Slot slot(Kind::i64);
  slot.payload_.i64 = value;
  return slot;
}

Slot Slot::of(double value) {
  Slot slot(Kind::f64);
  slot.payload_.f64 = value;
  return slot;
}

Slot Slot::steal_tensor(void* handle) {
  Slot slot(Kind::tensor);
  slot.payload_.handle = handle;
  return slot;
}

Slot Slot::steal_object(void* handle) {
  Slot slot(Kind::object);
  slot.payload_.handle = handle;
  return slot;
}

Slot Slot::steal_container(const Container* container) {
  Slot slot(Kind::container);
  slot.payload_.handle = const_cast<Container*>(container);
  return slot;
}

Slot Slot::borrow_tensor(void* handle) {
  tensors.retain(handle);
  return steal_tensor(handle);
}

Slot Slot::alias_tensor(void* handle) {
  Slot slot = steal_tensor(handle);
  slot.is_alias_ = true;
  return slot;
}

Slot Slot::borrow_object(void* handle) {
  objects.retain(handle);
  return steal_object(handle);
}

Slot::Slot(const Slot& other) : kind_(other.kind_), payload_(other.payload_) {
  if (kind_ == Kind::tensor) tensors.retain(payload_.handle);
  if (kind_ == Kind::object) objects.retain(payload_.handle);
  if (kind_ == Kind::container) Container::retain(container());
}

void* Slot::take_tensor() {
  if (is_alias_) tensors.retain(payload_.handle);
  kind_ = Kind::empty;
  is_alias_ = false;
  return payload_.handle;
}

void Slot::release() {
  const Kind kind = std::exchange(kind_, Kind::empty);
  if (kind == Kind::object) {
    objects.release(payload_.handle);
  } else if (kind == Kind::container) {
    Container::release(container());
  } else {
    tensors.release(payload_.handle);
  }
}

}  // namespace janus::execute
