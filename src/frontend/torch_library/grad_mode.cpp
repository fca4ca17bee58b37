// The modes that say whether operators are recorded for autograd.

#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/torch_library/special_callables.h"

namespace janus::frontend {

namespace {

/// Null: absent.
const Value* given_mode(const CallArguments& arguments) {
  return arguments.positional.empty() ? arguments.keyword("mode") : &arguments.positional[0];
}

Value grad_mode(bool enabled) {
  auto context = std::make_shared<ContextManager>();
  auto before = std::make_shared<std::vector<bool>>();
  context->decorates = true;
  context->enter = [before, enabled](Interpreter& interpreter) {
    before->push_back(interpreter.modes.grad_enabled);
    interpreter.modes.grad_enabled = enabled;
    return interpreter.none();
  };
  context->exit = [before](Interpreter& interpreter) {
    interpreter.modes.grad_enabled = before->back();
    before->pop_back();
  };
  return context;
}

/// `@torch.no_grad` without parentheses decorates at once.
Value decorated_or_mode(const Frames& frames, const CallArguments& arguments, bool enabled) {
  if (!arguments.positional.empty())
    frames.refuse(ReasonCode::unsupported_argument, "a grad mode applied to a function");
  return grad_mode(enabled);
}

Value call_no_grad(Interpreter& interpreter, const CallArguments& arguments) {
  return decorated_or_mode(interpreter, arguments, false);
}

Value call_enable_grad(Interpreter& interpreter, const CallArguments& arguments) {
  return decorated_or_mode(interpreter, arguments, true);
}

/// torch.inference_mode(False) enables gradients, as leaving inference mode does.
Value call_inference_mode(Interpreter& interpreter, const CallArguments& arguments) {
  const Value* mode = given_mode(arguments);
  const bool is_on = mode == nullptr || truth(interpreter, *mode, -1);
  auto grads = shared_as<ContextManager>(grad_mode(!is_on));
  auto context = std::make_shared<ContextManager>();
  auto before = std::make_shared<std::vector<bool>>();
  context->decorates = true;
  context->enter = [grads, before, is_on](Interpreter& inner) {
    if (inner.recursion().is_building())
      inner.refuse(ReasonCode::mode_active, "inference mode in a recursion");
    before->push_back(inner.modes.inference_mode);
    inner.modes.inference_mode = is_on;
    return grads->enter(inner);
  };
  context->exit = [grads, before](Interpreter& inner) {
    inner.modes.inference_mode = before->back();
    before->pop_back();
    grads->exit(inner);
  };
  return context;
}

Value call_is_inference_mode_enabled(Interpreter& interpreter, const CallArguments&) {
  return interpreter.boolean(interpreter.modes.inference_mode);
}

/// torch.set_grad_enabled changes the mode at once; as a context it restores the one before.
Value call_set_grad_enabled(Interpreter& interpreter, const CallArguments& arguments) {
  const Value* mode = given_mode(arguments);
  if (mode == nullptr) interpreter.refuse(ReasonCode::would_raise, "TypeError: mode is missing");
  bool enabled = truth(interpreter, *mode, -1);
  bool before = interpreter.modes.grad_enabled;
  interpreter.modes.grad_enabled = enabled;
  auto context = std::make_shared<ContextManager>();
  context->enter = [enabled](Interpreter& inner) {
    inner.modes.grad_enabled = enabled;
    return inner.none();
  };
  context->exit = [before](Interpreter& inner) { inner.modes.grad_enabled = before; };
  return context;
}

Value call_is_grad_enabled(Interpreter& interpreter, const CallArguments&) {
  return interpreter.boolean(interpreter.modes.grad_enabled);
}

}  // namespace

std::span<const SpecialCallable> grad_mode_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.no_grad", call_no_grad},
      {"torch.enable_grad", call_enable_grad},
      {"torch.set_grad_enabled", call_set_grad_enabled},
      {"torch.inference_mode", call_inference_mode},
      {"torch.is_inference_mode_enabled", call_is_inference_mode_enabled},
      {"torch.is_grad_enabled", call_is_grad_enabled},
  };
  return table;
}

}  // namespace janus::frontend
