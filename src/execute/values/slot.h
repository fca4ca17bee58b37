// A virtual register: the value of a graph's value at run time, as a tagged union.
//
// It holds a tensor, a Python number, a pointer into Python's heap, or a container of such values
// (container.h). Handles are reference-counted by functions that torch/ and python/ set, so that
// the executor needs neither.
#pragma once

#include <cstdint>
#include <utility>

namespace janus::execute {

/// Reference counting of the two kinds of handle, set once at start-up by torch/ and python/ (in
/// tests: by a fake). Handles are opaque here.
struct HandleOperations {
  void (*retain)(void* handle) = nullptr;
  void (*release)(void* handle) = nullptr;
};
HandleOperations& tensor_operations();
HandleOperations& object_operations();

class Container;  // execute/values/container.h

/// A tagged value of 16 bytes that owns what it refers to, unless it is an alias. Copies own.
class Slot {
 public:
  enum class Kind : uint8_t { empty, none, boolean, i64, f64, tensor, object, container };

  Slot() = default;
  static Slot none() { return Slot(Kind::none); }
  static Slot of(bool value);
  static Slot of(int64_t value);
  static Slot of(double value);
  /// Take over one reference to the handle.
  static Slot steal_tensor(void* handle);
  static Slot steal_object(void* handle);
  static Slot steal_container(const Container* container);  ///< null: an empty one
  static Slot borrow_tensor(void* handle);                  ///< adds a reference
  static Slot borrow_object(void* handle);
  /// The same tensor, not counted: for as long as somebody else surely keeps it. To count the first
  /// owner beside a tensor's Python object takes Python's lock, and a while.
  static Slot alias_tensor(void* handle);
  Slot alias() const { return is_tensor() ? alias_tensor(payload_.handle) : *this; }

  Slot(const Slot& other);
  Slot(Slot&& other) noexcept
      : kind_(std::exchange(other.kind_, Kind::empty)),
        is_alias_(std::exchange(other.is_alias_, false)),
        payload_(other.payload_) {}
  Slot& operator=(Slot other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(is_alias_, other.is_alias_);
    std::swap(payload_, other.payload_);
    return *this;
  }
  ~Slot() { clear(); }
  void clear() {
    if (kind_ >= Kind::tensor && !is_alias_) {
      release();
    } else {
      kind_ = Kind::empty;
      is_alias_ = false;
    }
  }

  Kind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == Kind::tensor; }
  bool is_alias() const { return is_alias_; }
  bool is_none() const { return kind_ == Kind::none; }
  bool is_empty() const { return kind_ == Kind::empty; }
  bool boolean() const { return payload_.boolean; }
  int64_t i64() const { return payload_.i64; }
  double f64() const { return payload_.f64; }
  void* tensor() const { return payload_.handle; }
  void* object() const { return payload_.handle; }
  const Container* container() const { return static_cast<const Container*>(payload_.handle); }
  /// Hand over the reference to it; the slot is empty afterwards.
  void* take_tensor();
  const Container* take_container() {
    kind_ = Kind::empty;
    return container();
  }

 private:
  explicit Slot(Kind kind) : kind_(kind) {}
  void release();
  Kind kind_ = Kind::empty;
  bool is_alias_ = false;
  union {
    bool boolean;
    int64_t i64;
    double f64;
    void* handle;
  } payload_ = {.i64 = 0};
};

}  // namespace janus::execute
