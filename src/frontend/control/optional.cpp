#include "frontend/control/optional.h"

#include "frontend/control/branches.h"
#include "frontend/control/fork.h"
#include "frontend/control/merge.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/narrowing.h"
#include "frontend/values/restart.h"

namespace janus::frontend {

Value for_both(Interpreter& interpreter, const Value& value,
               const std::function<Value(const Value&)>& use) {
  if (as<Either>(value) == nullptr) return nullptr;
  const Value now = narrowed(interpreter, value);
  const auto either = shared_as<Either>(now);
  if (either == nullptr) return use(now);
  if (!has_room_for_fork(interpreter) || interpreter.followed(either->test) != nullptr)
    throw CannotMerge{either->test, either->why};
  return choose(
      interpreter, {.known = std::nullopt, .flag = either->flag, .example = {}}, either->test,
      [&] { return use(narrowed(interpreter, either->if_true)); },
      [&] { return use(narrowed(interpreter, either->if_false)); });
}

Value for_both(Interpreter& interpreter, const Value& left, const Value& right,
               const std::function<Value(const Value& left, const Value& right)>& use) {
  if (Value both = for_both(interpreter, left, [&](const Value& one) { return use(one, right); }))
    return both;
  return for_both(interpreter, right, [&](const Value& one) { return use(left, one); });
}

Value for_both(Interpreter& interpreter, const CallArguments& arguments,
               const std::function<Value(const CallArguments&)>& use) {
  const auto in_place_of = [&](const Value& value, const auto& place_in) -> Value {
    return for_both(interpreter, value, [&](const Value& one) {
      CallArguments of_one = arguments;
      place_in(of_one) = one;
      return use(of_one);
    });
  };
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    if (Value result = in_place_of(arguments.positional[i], [&](CallArguments& given) -> Value& {
          return given.positional[i];
        }))
      return result;
  for (size_t i = 0; i < arguments.keywords.size(); ++i)
    if (Value result =
            in_place_of(arguments.keywords[i].second,
                        [&](CallArguments& given) -> Value& { return given.keywords[i].second; }))
      return result;
  return nullptr;
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
  Fork fork(interpreter, {.known = std::nullopt, .flag = flag, .example = {}}, key);
  fork.enter(0);
  body();
  fork.leave(Completion::normal);
  fork.enter(1);
  fork.leave(Completion::normal);
  merge(fork);
}

}  // namespace janus::frontend
