#include "frontend/control/outcomes.h"

#include "frontend/control/branches.h"
#include "frontend/control/fork.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"

namespace janus::frontend {

Value value_unless_raised(Frames& frames, PyObject* type, const std::function<Value()>& body,
                          Value* caught) {
  const auto& forks = frames.frame().forks;
  const size_t before = forks.size();
  const auto check_forks = [&] {
    if (forks.size() != before) throw CannotMerge{*forks.back()->test(), "only one side raises"};
  };
  Value value;
  try {
    const Awaiting awaiting(frames, Awaiting::What::exceptions, type);
    value = body();
  } catch (const Raised& raised) {
    check_forks();
    if (PyErr_GivenExceptionMatches(class_of_exception(raised.exception), type) == 0) throw;
    if (caught != nullptr) *caught = raised.exception;
    return nullptr;
  }
  check_forks();
  return value;
}

Value value_where_returned(Interpreter& interpreter, const Value& result) {
  const auto* outcome = as<Outcome>(result);
  if (outcome == nullptr) return result;
  const Truth raises = truth_of(interpreter, outcome->raises);
  if (raises.known && *raises.known) throw Raised{outcome->exception};
  if (raises.known) return outcome->value;
  if (!has_room_for_fork(interpreter))
    throw CannotMerge{outcome->test, "there are too many branches"};
  auto fork = std::make_shared<Fork>(interpreter, raises, outcome->test);
  fork->enter(0);
  fork->leave(Completion::raise_, outcome->exception);
  fork->enter(1);
  interpreter.frame().forks.push_back(std::move(fork));
  return outcome->value;
}

}  // namespace janus::frontend
