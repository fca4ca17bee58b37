// What all changeable objects of the interpreter (Changeable) hold at one moment: the sides of a
// branch and the iterations of a loop start from the same state.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

using Elements = ElementList;
using Items = std::vector<std::pair<python::Object, Value>>;
using SetElements = std::vector<Value>;
using VariableValues = std::map<std::string, Value, std::less<>>;

/// Of a Tensor, Sequence, Dictionary, SetValue, Variables, or how far an Iterator has come.
using ChangeableState =
    std::variant<TensorState, Elements, Items, SetElements, VariableValues, uint64_t>;

ChangeableState state_of(const Changeable& object);

bool same_elements(const SetElements& a, const SetElements& b);
/// Whether the two hold the very same.
bool same_state(const ChangeableState& a, const ChangeableState& b);
/// Whether what happened between the two only read: that may take a view again, and look for a
/// gradient.
bool same_but_for_reads(const ChangeableState& before, const ChangeableState& after);

/// Whether `.grad` is what it was: that somebody looks at it is no change.
bool same_grad(const TensorState& before, const TensorState& now);
/// Whether the two differ at most in what is written to the tensor, what autograd makes of that,
/// and what was found out about it: not in whose memory it is and how it came from that.
bool is_same_tensor(const TensorState& a, const TensorState& b);

class Snapshot {
 public:
  struct Saved {
    std::shared_ptr<const void> owner;     ///< keeps the object alive; iterators may die
    std::weak_ptr<const void> weak_owner;  ///< of an iterator
    Changeable* object = nullptr;
    ChangeableState state;
    bool alive() const { return owner != nullptr || !weak_owner.expired(); }
    /// Nothing was written to it since, or it is an iterator that is gone.
    bool was_only_read() const { return !alive() || same_but_for_reads(state, state_of(*object)); }
  };

  /// Of all objects that live now.
  static Snapshot take();
  /// Of the same objects as they are now.
  Snapshot again() const;
  /// One more object, which was reached only later but existed all the time, as it is now.
  void add(Changeable& object);

  /// Puts back what every object held. Iterators stay where they are.
  void restore() const;
  /// Whether an iterator has moved on since.
  bool has_moved_iterator() const;

  const std::vector<Saved>& objects() const { return objects_; }
  /// What the object held; null if it is not part of the snapshot.
  const ChangeableState* find(const Changeable* object) const;

 private:
  void add(Changeable& object, std::shared_ptr<const void> owner);

  std::vector<Saved> objects_;
  std::unordered_map<const Changeable*, size_t> places_;
};

/// At its end, all objects made since its beginning that still live are emptied: those that hold
/// each other (a closure among the variables that it reads) would live for ever, and be part of the
/// snapshots of later interpretations.
class ObjectScope {
 public:
  ObjectScope() = default;
  ObjectScope(const ObjectScope&) = delete;
  ObjectScope& operator=(const ObjectScope&) = delete;
  ~ObjectScope();

 private:
  uint64_t first_ = Changeable::count();
};

}  // namespace janus::frontend
