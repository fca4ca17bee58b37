// What torch.amp.GradScaler does to gradients and to its scale, as operators of the graph: its own
// two write lists of tensors and numbers of tensors in place.

#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/torch_library/special_callables.h"

namespace janus::frontend {

namespace {

Value call_torch(Interpreter& interpreter, const char* path, std::vector<Value> operands) {
  CallArguments arguments;
  arguments.positional = std::move(operands);
  return call(interpreter, interpreter.constant_borrowed(imported(path)), arguments);
}

/// Eager computes such gradients in float32 and rounds once.
bool is_narrow(const Tensor& tensor) {
  return graph::byte_size(tensor.value->type.dtype) < graph::byte_size(graph::DType::f32);
}

/// torch._amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, inv_scale): `found_inf`
/// becomes 1 where a gradient is not finite.
Value call_unscale(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.size() != 3 || !arguments.keywords.empty()) return nullptr;
  const Value &found_inf = arguments.positional[1], &factor = arguments.positional[2];
  if (as<Tensor>(found_inf) == nullptr || as<Tensor>(factor) == nullptr) return nullptr;
  const std::vector<Value> gradients = elements_of(interpreter, arguments.positional[0]);
  Value are_finite;
  for (const Value& gradient : gradients) {
    const auto* tensor = as<Tensor>(gradient);
    if (tensor == nullptr || is_narrow(*tensor)) return nullptr;
    const Value is_finite = call_torch(interpreter, "torch.all",
                                       {call_torch(interpreter, "torch.isfinite", {gradient})});
    are_finite = are_finite == nullptr
                     ? is_finite
                     : call_torch(interpreter, "torch.logical_and", {are_finite, is_finite});
  }
  for (const Value& gradient : gradients)
    call_torch(interpreter, "torch.Tensor.mul_", {gradient, factor});
  if (are_finite == nullptr) return interpreter.none();
  const Value one = call_torch(interpreter, "torch.ones_like", {found_inf});
  call_torch(interpreter, "torch.Tensor.copy_",
             {found_inf, call_torch(interpreter, "torch.where", {are_finite, found_inf, one})});
  return interpreter.none();
}

/// The scale times a factor, in float64 and rounded, as eager does.
Value scaled(Interpreter& interpreter, const Value& scale, const Value& factor) {
  const Value wide = call_torch(interpreter, "torch.Tensor.double", {scale});
  return call_torch(interpreter, "torch.Tensor.float",
                    {call_torch(interpreter, "torch.mul", {wide, factor})});
}

/// torch._amp_update_scale_(scale, growth_tracker, found_inf, growth_factor, backoff_factor,
/// growth_interval)
Value call_update_scale(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.size() != 6 || !arguments.keywords.empty()) return nullptr;
  const auto& given = arguments.positional;
  const Value &scale = given[0], &tracker = given[1], &found_inf = given[2];
  for (const Value& each : {scale, tracker, found_inf})
    if (as<Tensor>(each) == nullptr) return nullptr;
  if (as<Tensor>(scale)->value->type.dtype != graph::DType::f32) return nullptr;
  const auto where = [&](const Value& flag, const Value& if_true, const Value& if_false) {
    return call_torch(interpreter, "torch.where", {flag, if_true, if_false});
  };
  const Value found = call_torch(interpreter, "torch.ne", {found_inf, interpreter.integer(0)});
  const Value successes = call_torch(interpreter, "torch.add", {tracker, interpreter.integer(1)});
  const Value grows = call_torch(interpreter, "torch.eq", {successes, given[5]});
  const Value grown = scaled(interpreter, scale, given[3]);
  const Value may_grow = call_torch(interpreter, "torch.logical_and",
                                    {grows, call_torch(interpreter, "torch.isfinite", {grown})});
  const Value next =
      where(found, scaled(interpreter, scale, given[4]), where(may_grow, grown, scale));
  const Value restarts = call_torch(interpreter, "torch.logical_or", {found, grows});
  const Value zero = call_torch(interpreter, "torch.zeros_like", {tracker});
  const Value next_tracker = where(restarts, zero, successes);
  call_torch(interpreter, "torch.Tensor.copy_", {scale, next});
  call_torch(interpreter, "torch.Tensor.copy_", {tracker, next_tracker});
  return scale;
}

}  // namespace

std::span<const SpecialCallable> gradient_scaler_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch._amp_foreach_non_finite_check_and_unscale_", call_unscale},
      {"torch._amp_update_scale_", call_update_scale},
  };
  return table;
}

}  // namespace janus::frontend
