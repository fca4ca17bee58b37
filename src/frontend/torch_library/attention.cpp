// Attention with dropout: in a graph it is the program of torchjanus/attention.py. Without dropout
// it stays ATen's operator, which never writes the scores.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/functions.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/described_call.h"
#include "frontend/tensors/tensor.h"
#include "frontend/torch_library/special_callables.h"
#include "frontend/values/make.h"

namespace janus::frontend {

namespace {

struct Attention {
  std::shared_ptr<Tensor> query, key, value, mask;
  Value dropout;
  bool is_causal = false;
  double scale = 1;
};

constexpr const char* kCallable = "torch.nn.functional.scaled_dot_product_attention";
constexpr std::array kNames{"query",     "key",       "value", "attn_mask",
                            "dropout_p", "is_causal", "scale", "enable_gqa"};
enum Place : uint8_t { kQuery, kKey, kValue, kMask, kDropout, kCausal, kScale, kGrouped };

/// The argument, or none: each has a default but the first three.
Value argument(Interpreter& interpreter, const CallArguments& arguments, Place place) {
  const Value* given = arguments.given(place, kNames.at(place));
  return given == nullptr ? interpreter.none() : *given;
}

/// A number that the front end knows; nullopt for none, and for what is no number.
std::optional<double> known_number(const Value& value) {
  PyObject* object = known_object(value);
  if (object == nullptr || (PyFloat_CheckExact(object) == 0 && PyLong_CheckExact(object) == 0))
    return {};
  return PyFloat_AsDouble(object);
}

std::optional<bool> known_flag(const Value& value) {
  PyObject* object = known_object(value);
  if (object == Py_None || object == Py_False) return false;
  if (object == Py_True) return true;
  return {};
}

/// Of tensors without elements, ATen gives zeros and draws nothing.
bool has_elements(const Tensor& tensor) {
  return std::ranges::all_of(tensor.value->type.shape, [](const graph::Dim& size) {
    return size.lower_bound().value_or(0) > 0;
  });
}

/// Tensors of one floating dtype and rank. Half precision is computed in float32.
bool are_plain(const Attention& attention) {
  if (attention.query == nullptr || attention.key == nullptr || attention.value == nullptr)
    return false;
  const graph::Type& type = attention.query->value->type;
  if (type.dtype != graph::DType::f32 && type.dtype != graph::DType::f64) return false;
  const auto fits = [&](const std::shared_ptr<Tensor>& tensor) {
    return tensor->value->type.dtype == type.dtype && tensor->value->type.rank() == type.rank() &&
           has_elements(*tensor);
  };
  if (type.rank() < 2 || !fits(attention.query) || !fits(attention.key) || !fits(attention.value))
    return false;
  if (attention.mask == nullptr) return true;
  const graph::DType of_mask = attention.mask->value->type.dtype;
  return !attention.is_causal && attention.mask->value->type.rank() >= 2 &&
         (of_mask == type.dtype || of_mask == graph::DType::b1);
}

/// Which way a dropout leads: that of a number that varies is guarded.
enum class Dropout : uint8_t { none, some, unknown };

Dropout kind_of_dropout(Interpreter& interpreter, const Value& dropout) {
  if (const std::optional<double> known = known_number(dropout))
    return *known == 0                ? Dropout::none
           : *known > 0 && *known < 1 ? Dropout::some
                                      : Dropout::unknown;
  if (as<Number>(dropout) == nullptr) return Dropout::unknown;
  const Value zero = interpreter.integer(0), one = interpreter.integer(1);
  if (holds(interpreter, dropout, syntax::CompareOperator::Eq, zero)) return Dropout::none;
  if (holds(interpreter, zero, syntax::CompareOperator::Lt, dropout) &&
      holds(interpreter, dropout, syntax::CompareOperator::Lt, one))
    return Dropout::some;
  interpreter.refuse(ReasonCode::dynamic_value, "a dropout of attention outside of 0 to 1");
}

/// nullopt: torch's own operator computes it.
std::optional<Attention> attention_of(Interpreter& interpreter, const CallArguments& arguments) {
  const auto given = [&](Place place) { return argument(interpreter, arguments, place); };
  const std::optional<bool> is_causal = known_flag(given(kCausal));
  if (!is_causal || known_flag(given(kGrouped)) != false) return {};
  Attention attention{.query = shared_as<Tensor>(given(kQuery)),
                      .key = shared_as<Tensor>(given(kKey)),
                      .value = shared_as<Tensor>(given(kValue)),
                      .mask = shared_as<Tensor>(given(kMask)),
                      .dropout = given(kDropout),
                      .is_causal = *is_causal};
  if (attention.mask == nullptr && !is_none(given(kMask))) return {};
  if (!are_plain(attention)) return {};
  const graph::Dim& features = attention.query->value->type.shape.back();
  if (const std::optional<double> scale = known_number(given(kScale)))
    attention.scale = *scale;
  else if (is_none(given(kScale)) && features.is_constant() && features.value() > 0)
    attention.scale = 1 / std::sqrt(static_cast<double>(features.value()));
  else
    return {};
  return attention.scale > 0 ? std::optional(attention) : std::nullopt;
}

/// The call with a dropout of 0, whose number varies: strides of ATen's result depend on it.
Value call_without_dropout(Interpreter& interpreter, const CallArguments& arguments) {
  CallArguments changed = arguments;
  changed.replace(kDropout, kNames.at(kDropout),
                  interpreter.constant(python::check(PyFloat_FromDouble(0))));
  return call_operator(interpreter, imported(kCallable), changed);
}

Value call_attention(Interpreter& interpreter, const CallArguments& arguments) {
  static PyObject* const program = imported("torchjanus.attention.attention");
  const Value dropout = argument(interpreter, arguments, kDropout);
  const Dropout kind = kind_of_dropout(interpreter, dropout);
  if (kind == Dropout::none && as<Number>(dropout) != nullptr)
    return call_without_dropout(interpreter, arguments);
  if (kind != Dropout::some || interpreter.modes.autocast.is_on) return nullptr;
  const std::optional<Attention> attention = attention_of(interpreter, arguments);
  if (!attention) return nullptr;
  CallArguments given;
  given.positional = {
      attention->query,
      attention->key,
      attention->value,
      attention->mask == nullptr ? interpreter.none() : attention->mask,
      attention->dropout,
      interpreter.boolean(attention->is_causal),
      interpreter.constant(python::check(PyFloat_FromDouble(std::sqrt(attention->scale))))};
  Value result = inline_function(interpreter, program, nullptr, given);
  if (auto output = shared_as<Tensor>(result); output->requires_grad)
    output->produced_by = describe_call(interpreter, imported(kCallable), arguments, 0);
  return result;
}

}  // namespace

std::span<const SpecialCallable> attention_callables() {
  static constexpr SpecialCallable table[] = {{kCallable, call_attention}};
  return table;
}

}  // namespace janus::frontend
