// threading.Lock and RLock. The run takes each lock that it uses as it begins, or Python runs the
// call; so the lock is this thread's alone, and what remains is how often the run has taken it.
#include <optional>

#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/locks.h"
#include "frontend/core/resolver.h"
#include "frontend/core/torch_objects.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/attributes.h"
#include "frontend/values/constants.h"
#include "speculate/taken_locks.h"

namespace janus::frontend {

using python::Object;

namespace {

using Arguments = CallArguments;

bool is_reentrant(const Known& lock) {
  static PyObject* const type = imported("_thread.RLock");
  return Py_IS_TYPE(lock.object.get(), reinterpret_cast<PyTypeObject*>(type));
}

/// What gives a lock back behind the run's writes; an entry takes the lock that it finds in one.
speculate::Effect release_of(const Frames& frames, const Known& lock, const Source* path) {
  speculate::Effect effect{{}, frames.user_span()};
  effect.call.kind = speculate::Template::Kind::call;
  effect.call.object = speculate::release_method(lock.object.get());
  speculate::Template& released = effect.call.children.emplace_back();
  released.kind = speculate::Template::Kind::source;
  released.source = path;
  return effect;
}

/// The lock that a method is called with, which the run has from its beginning to its end; null: it
/// is of another class. That stays so on whichever side of a branch it is met.
const Known* lock_of(Interpreter& interpreter, const Arguments& arguments) {
  const Known* lock = arguments.positional.empty() ? nullptr : as<Known>(arguments.positional[0]);
  if (lock == nullptr || !is_lock(lock->object.get())) return nullptr;
  const Source* const path = path_of(interpreter, *lock);
  Resolver resolve(interpreter);
  for (const speculate::Effect& earlier : interpreter.output().effects) {
    const Source* const taken = earlier.call.children[0].source;
    if (resolve(taken) != lock->object.get()) continue;
    interpreter.assume_same_object(path, taken);
    return lock;
  }
  interpreter.output().effects.push_back(release_of(interpreter, *lock, path));
  return lock;
}

/// Under which the heap keeps how often a lock is taken: no lock has such an attribute.
PyObject* depth_key() {
  static PyObject* const key = python::interned("how often it is taken");
  return key;
}

/// How often the run has taken it and not given it back.
int64_t depth_of(Interpreter& interpreter, const Known& lock) {
  const Held held = interpreter.heap.find(interpreter, lock.object.get(), depth_key(), nullptr);
  if (held.is_unknown()) return 0;
  PyObject* const depth = held.is_value() ? known_object(held.value()) : nullptr;
  if (depth == nullptr) interpreter.refuse(ReasonCode::dynamic_value, "whether a lock is taken");
  return PyLong_AsLongLong(depth);
}

void set_depth(Interpreter& interpreter, const Known& lock, int64_t depth) {
  if (depth == 0) return interpreter.heap.forget(lock.object.get());
  Heap::Target target;
  target.table = lock.object.get();
  target.owner = path_of(interpreter, lock);
  target.object = lock.object;
  interpreter.write_place(target, Object::borrow(depth_key()), nullptr, interpreter.integer(depth));
}

/// Whether acquire(blocking=True, timeout=-1) waits; nullopt: only for a time.
std::optional<bool> waits(const Frames& frames, const Arguments& arguments) {
  const Value* blocking =
      arguments.positional.size() > 1 ? &arguments.positional[1] : arguments.keyword("blocking");
  const bool has_timeout = arguments.positional.size() > 2 || arguments.keyword("timeout");
  if (has_timeout || arguments.keywords.size() > 1 || arguments.positional.size() > 2)
    return std::nullopt;
  if (blocking == nullptr) return true;
  PyObject* const known = known_object(*blocking);
  if (known == nullptr) frames.refuse(ReasonCode::dynamic_value, "whether acquire() waits");
  return PyObject_IsTrue(known) == 1;
}

Value call_acquire(Interpreter& interpreter, const Arguments& arguments) {
  const Known* const lock = lock_of(interpreter, arguments);
  if (lock == nullptr) return nullptr;
  const int64_t depth = depth_of(interpreter, *lock);
  if (depth == 0 || is_reentrant(*lock)) {
    set_depth(interpreter, *lock, depth + 1);
    return interpreter.boolean(true);
  }
  if (waits(interpreter, arguments).value_or(true))
    interpreter.refuse(ReasonCode::would_raise, "a lock that waits for itself");
  return interpreter.boolean(false);
}

Value call_release(Interpreter& interpreter, const Arguments& arguments) {
  const Known* const lock = lock_of(interpreter, arguments);
  if (lock == nullptr) return nullptr;
  const int64_t depth = depth_of(interpreter, *lock);
  if (depth == 0)
    interpreter.refuse(ReasonCode::heap_write, "a lock that was taken before the call");
  set_depth(interpreter, *lock, depth - 1);
  return interpreter.none();
}

/// Lock.locked()
Value call_locked(Interpreter& interpreter, const Arguments& arguments) {
  const Known* const lock = lock_of(interpreter, arguments);
  return lock == nullptr ? nullptr : interpreter.boolean(depth_of(interpreter, *lock) > 0);
}

/// RLock._is_owned(), which threading.Condition asks. That this thread has it from before the call
/// is not known.
Value call_is_owned(Interpreter& interpreter, const Arguments& arguments) {
  const Known* const lock = lock_of(interpreter, arguments);
  if (lock == nullptr || depth_of(interpreter, *lock) == 0) return nullptr;
  return interpreter.boolean(true);
}

}  // namespace

std::span<const SpecialCallable> lock_callables() {
  static constexpr SpecialCallable table[] = {
      {"_thread.LockType.acquire", call_acquire}, {"_thread.LockType.__enter__", call_acquire},
      {"_thread.LockType.release", call_release}, {"_thread.LockType.__exit__", call_release},
      {"_thread.LockType.locked", call_locked},   {"_thread.RLock.acquire", call_acquire},
      {"_thread.RLock.__enter__", call_acquire},  {"_thread.RLock.release", call_release},
      {"_thread.RLock.__exit__", call_release},   {"_thread.RLock._is_owned", call_is_owned},
  };
  return table;
}

}  // namespace janus::frontend
