// torch._foreach_*: an operator on each tensor of a list, and on what stands at its place in other
// lists. On a CPU torch itself calls the operator for one tensor after the other.
#include <algorithm>
#include <array>
#include <optional>

#include "frontend/core/class_of.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/torch_library/special_callables.h"
#include "frontend/values/make.h"

namespace janus::frontend {

namespace {

/// A path as an argument of a template.
template <size_t size>
struct Path {
  char text[size];
  consteval Path(const char (&given)[size]) { std::ranges::copy(given, text); }
};

bool is_list(const Value& value) {
  if (as<Sequence>(value) != nullptr) return is_list_or_tuple(value);
  const auto* known = as<Known>(value);
  return known != nullptr &&
         (PyList_CheckExact(known->object.get()) || PyTuple_CheckExact(known->object.get()));
}

/// Torch takes a tensor with dimensions for no list, and for no number.
void check_no_tensor(Interpreter& interpreter, const Value& value) {
  const auto* tensor = as<Tensor>(value);
  if (tensor != nullptr && tensor->value->type.rank() > 0)
    interpreter.refuse(ReasonCode::would_raise, "RuntimeError: a tensor where a list is expected");
}

/// What one argument is in each of the calls.
std::vector<Value> spread(Interpreter& interpreter, const Value& value, size_t count) {
  if (is_list(value)) return elements_of(interpreter, value);
  return std::vector<Value>(count, value);
}

/// Tensors that require a gradient get torch's own grad_fn for the list. Numbers that half
/// precision is multiplied by are rounded to it here, and not by the operator for one tensor.
bool are_plain(const InterpreterState& state, const std::vector<Value>& tensors) {
  return std::ranges::all_of(tensors, [&](const Value& each) {
    const auto* tensor = as<Tensor>(each);
    return tensor != nullptr && !(state.modes.grad_enabled && tensor->requires_grad) &&
           !graph::is_half(tensor->value->type.dtype);
  });
}

/// The arguments of each call; nullopt if lists are not of one length.
std::optional<std::vector<CallArguments>> arguments_of_each(Interpreter& interpreter,
                                                            const CallArguments& arguments) {
  if (arguments.positional.empty() || !is_list(arguments.positional[0])) return std::nullopt;
  const size_t count = elements_of(interpreter, arguments.positional[0]).size();
  std::vector<CallArguments> calls(count);
  for (const Value& argument : arguments.positional) {
    check_no_tensor(interpreter, argument);
    const std::vector<Value> elements = spread(interpreter, argument, count);
    const bool may_be_tensors =
        is_list(argument) && !elements.empty() && as<Tensor>(elements[0]) != nullptr;
    if (elements.size() != count) return std::nullopt;
    if (may_be_tensors && !are_plain(interpreter, elements)) return std::nullopt;
    for (size_t i = 0; i < count; ++i) calls[i].positional.push_back(elements[i]);
  }
  for (const auto& [name, argument] : arguments.keywords) {
    check_no_tensor(interpreter, argument);
    if (is_list(argument)) return std::nullopt;
    for (CallArguments& call : calls) call.keywords.emplace_back(name, argument);
  }
  return calls;
}

/// addcdiv(x, y, z, value): the operator for one tensor has the factor by name only.
void name_factor(CallArguments& call) {
  if (call.positional.size() != 4) return;
  call.keywords.emplace_back("value", call.positional.back());
  call.positional.pop_back();
}

/// Whether a fourth argument is the factor of the other ones.
enum class Factor { none, fourth };

template <Path function, bool in_place, Factor factor = Factor::none>
Value call_each(Interpreter& interpreter, const CallArguments& arguments) {
  auto calls = arguments_of_each(interpreter, arguments);
  if (!calls || calls->empty() || as<Tensor>(calls->front().positional[0]) == nullptr)
    return nullptr;
  std::vector<Value> results;
  for (CallArguments& each : *calls) {
    if (factor == Factor::fourth) name_factor(each);
    results.push_back(
        call(interpreter, interpreter.constant_borrowed(imported(function.text)), each));
  }
  return in_place ? arguments.positional[0] : make_tuple(std::move(results));
}

template <Path function>
constexpr Handler gives = call_each<function, false>;
template <Path function>
constexpr Handler writes = call_each<function, true>;
template <Path function>
constexpr Handler gives_scaled = call_each<function, false, Factor::fourth>;
template <Path function>
constexpr Handler writes_scaled = call_each<function, true, Factor::fourth>;

}  // namespace

std::span<const SpecialCallable> foreach_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch._foreach_abs", gives<"torch.abs">},
      {"torch._foreach_abs_", writes<"torch.Tensor.abs_">},
      {"torch._foreach_add", gives<"torch.add">},
      {"torch._foreach_add_", writes<"torch.Tensor.add_">},
      {"torch._foreach_addcdiv", gives_scaled<"torch.addcdiv">},
      {"torch._foreach_addcdiv_", writes_scaled<"torch.Tensor.addcdiv_">},
      {"torch._foreach_addcmul", gives_scaled<"torch.addcmul">},
      {"torch._foreach_addcmul_", writes_scaled<"torch.Tensor.addcmul_">},
      {"torch._foreach_clamp_max", gives<"torch.clamp_max">},
      {"torch._foreach_clamp_max_", writes<"torch.Tensor.clamp_max_">},
      {"torch._foreach_clamp_min", gives<"torch.clamp_min">},
      {"torch._foreach_clamp_min_", writes<"torch.Tensor.clamp_min_">},
      {"torch._foreach_copy_", writes<"torch.Tensor.copy_">},
      {"torch._foreach_div", gives<"torch.div">},
      {"torch._foreach_div_", writes<"torch.Tensor.div_">},
      {"torch._foreach_exp", gives<"torch.exp">},
      {"torch._foreach_exp_", writes<"torch.Tensor.exp_">},
      {"torch._foreach_lerp", gives<"torch.lerp">},
      {"torch._foreach_lerp_", writes<"torch.Tensor.lerp_">},
      {"torch._foreach_log", gives<"torch.log">},
      {"torch._foreach_log_", writes<"torch.Tensor.log_">},
      {"torch._foreach_maximum", gives<"torch.clamp_min">},
      {"torch._foreach_maximum_", writes<"torch.Tensor.clamp_min_">},
      {"torch._foreach_minimum", gives<"torch.clamp_max">},
      {"torch._foreach_minimum_", writes<"torch.Tensor.clamp_max_">},
      {"torch._foreach_mul", gives<"torch.mul">},
      {"torch._foreach_mul_", writes<"torch.Tensor.mul_">},
      {"torch._foreach_neg", gives<"torch.neg">},
      {"torch._foreach_neg_", writes<"torch.Tensor.neg_">},
      {"torch._foreach_norm", gives<"torch.linalg.vector_norm">},
      {"torch._foreach_pow", gives<"torch.pow">},
      {"torch._foreach_pow_", writes<"torch.Tensor.pow_">},
      {"torch._foreach_reciprocal", gives<"torch.reciprocal">},
      {"torch._foreach_reciprocal_", writes<"torch.Tensor.reciprocal_">},
      {"torch._foreach_rsqrt", gives<"torch.rsqrt">},
      {"torch._foreach_rsqrt_", writes<"torch.Tensor.rsqrt_">},
      {"torch._foreach_sign", gives<"torch.sign">},
      {"torch._foreach_sign_", writes<"torch.Tensor.sign_">},
      {"torch._foreach_sqrt", gives<"torch.sqrt">},
      {"torch._foreach_sqrt_", writes<"torch.Tensor.sqrt_">},
      {"torch._foreach_sub", gives<"torch.sub">},
      {"torch._foreach_sub_", writes<"torch.Tensor.sub_">},
      {"torch._foreach_zero_", writes<"torch.Tensor.zero_">},
  };
  return table;
}

}  // namespace janus::frontend
