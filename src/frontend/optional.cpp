#include "frontend/optional.h"

namespace janus::frontend {

Value settled(Interpreter& interpreter, const Value& value) {
  const auto* optional = as<Optional>(value);
  if (optional == nullptr) return value;
  if (const std::optional<bool> is_there = interpreter.outcome_of(optional->flag))
    return *is_there ? optional->value : interpreter.none();
  interpreter.unsettled = optional->test;
  return value;
}

void expect_settled(const Value& value) {
  if (const auto* optional = as<Optional>(value))
    throw CannotMerge{optional->test, "something is None on one side"};
}

void expect_settled(const CallArguments& arguments) {
  for (const Value& value : arguments.positional) expect_settled(value);
  for (const auto& [name, value] : arguments.keywords) expect_settled(value);
}

void only_if(Interpreter& interpreter, graph::Value* flag, const TestKey& key,
             const std::function<void()>& body) {
  if (const std::optional<bool> outcome = interpreter.outcome_of(flag)) {
    if (*outcome) body();
    return;
  }
  if (interpreter.followed(key) != nullptr) {
    if (interpreter.follow(flag, {}, -1)) body();
    return;
  }
  if (!has_room_for_fork(interpreter)) throw CannotMerge{key, "there are too many branches"};
  bool grad_enabled = interpreter.grad_enabled;
  Fork fork(interpreter, {.known = std::nullopt, .flag = flag, .example = {}}, key);
  fork.enter(0);
  body();
  fork.leave(Completion::normal);
  interpreter.grad_enabled = grad_enabled;
  fork.enter(1);
  fork.leave(Completion::normal);
  fork.merge();
}

}  // namespace janus::frontend
