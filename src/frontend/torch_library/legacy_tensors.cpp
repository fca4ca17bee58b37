// How tensors were made before torch.tensor: classes of a dtype (torch.FloatTensor), torch.Tensor
// itself, Tensor.new, Variable; and the names of those classes.
#include "frontend/torch_library/legacy_tensors.h"

#include <algorithm>

#include "frontend/core/class_of.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/tensors/arrays.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/torch_library/special_callables.h"
#include "frontend/values/number_kinds.h"

namespace janus::frontend {

using graph::DType;
using python::Object;

namespace {

using Arguments = CallArguments;

constexpr std::pair<const char*, DType> kClasses[] = {
    {"torch.HalfTensor", DType::f16},         {"torch.BFloat16Tensor", DType::bf16},
    {"torch.FloatTensor", DType::f32},        {"torch.DoubleTensor", DType::f64},
    {"torch.ByteTensor", DType::u8},          {"torch.CharTensor", DType::i8},
    {"torch.ShortTensor", DType::i16},        {"torch.IntTensor", DType::i32},
    {"torch.LongTensor", DType::i64},         {"torch.BoolTensor", DType::b1},
    {"torch.ComplexFloatTensor", DType::c64}, {"torch.ComplexDoubleTensor", DType::c128}};

/// Numbers, or lists of lists of them, that the dtype holds as they are: an int of a float is cut.
bool fits(Interpreter& interpreter, const Value& data, DType dtype) {
  const Value shadow = opened(interpreter, data);
  if (const auto* sequence = as<Sequence>(shadow)) {
    if (sequence->elements.rolled() != nullptr) return false;
    return std::ranges::all_of(sequence->elements.known(),
                               [&](const Value& each) { return fits(interpreter, each, dtype); });
  }
  const bool is_real = graph::is_floating(dtype);
  return is_number(shadow) && (is_real || class_of(shadow) != &PyFloat_Type);
}

bool is_size(const Value& value) {
  if (const auto* sequence = as<Sequence>(value))
    return sequence->type.is(reinterpret_cast<PyObject*>(size_class()));
  PyObject* const known = known_object(value);
  return known != nullptr && Py_TYPE(known) == size_class();
}

/// A tensor of such sizes, whose contents are not defined: they may be zeros.
Value undefined(Interpreter& interpreter, std::vector<Value> sizes, DType dtype) {
  return full(interpreter, std::move(sizes), interpreter.integer(0), dtype);
}

/// Sizes, a torch.Size, a tensor of that dtype, an array of another one, or data. Of a tensor it is
/// an alias, which gradients pass through, as `tensor[...]` is.
Value make(Interpreter& interpreter, const std::vector<Value>& given, DType dtype) {
  if (given.empty()) return undefined(interpreter, {interpreter.integer(0)}, dtype);
  const bool are_sizes = std::ranges::all_of(
      given, [](const Value& each) { return is_number(each) && class_of(each) == &PyLong_Type; });
  if (are_sizes) return undefined(interpreter, given, dtype);
  if (given.size() != 1) return nullptr;
  if (is_size(given[0])) return undefined(interpreter, elements_of(interpreter, given[0]), dtype);
  if (const auto* tensor = as<Tensor>(given[0])) {
    if (tensor->value->type.dtype != dtype) return nullptr;
    return index_tensor(interpreter, shared_as<Tensor>(given[0]),
                        interpreter.constant_borrowed(Py_Ellipsis));
  }
  const auto contents = contents_of_array(interpreter, given[0]);
  // One of the same dtype is on the array's memory.
  const bool is_copied = contents != nullptr && contents->value->type.dtype != dtype;
  if (!is_copied && (is_number(given[0]) || !fits(interpreter, given[0], dtype))) return nullptr;
  static const Handler function = handler_named("torch.tensor");
  const Arguments arguments{given, {{"dtype", interpreter.constant(dtype_object(dtype))}}};
  return function(interpreter, arguments);
}

template <DType dtype>
Value call_class_of(Interpreter& interpreter, const Arguments& arguments) {
  return arguments.keywords.empty() ? make(interpreter, arguments.positional, dtype) : nullptr;
}

Value call_tensor_class(Interpreter& interpreter, const Arguments& arguments) {
  if (!arguments.keywords.empty()) return nullptr;
  return make(interpreter, arguments.positional, interpreter.output().environment.default_dtype);
}

/// tensor.new(...)
Value call_new(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.keywords.empty()) return nullptr;
  const auto* self = as<Tensor>(arguments.positional[0]);
  if (self == nullptr) return nullptr;
  return make(interpreter, {arguments.positional.begin() + 1, arguments.positional.end()},
              self->value->type.dtype);
}

/// Variable(tensor, requires_grad=False): another tensor on the same memory.
Value call_variable(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.empty() || arguments.positional.size() > 2) return nullptr;
  const Value* wanted = arguments.positional.size() > 1 ? &arguments.positional[1]
                                                        : arguments.keyword("requires_grad");
  const size_t keywords = arguments.keyword("requires_grad") != nullptr ? 1 : 0;
  if (as<Tensor>(arguments.positional[0]) == nullptr || arguments.keywords.size() != keywords)
    return nullptr;
  const auto made =
      shared_as<Tensor>(call_named(interpreter, "Tensor.detach", {{arguments.positional[0]}, {}}));
  if (wanted != nullptr && truth(interpreter, *wanted, -1))
    switch_requires_grad(interpreter, made, true);
  return made;
}

}  // namespace

std::optional<DType> dtype_of_class_name(std::string_view name) {
  for (const auto& [known, dtype] : kClasses)
    if (name == known) return dtype;
  return std::nullopt;
}

const char* class_name_of(DType dtype) {
  for (const auto& [name, known] : kClasses)
    if (known == dtype) return name;
  return nullptr;
}

std::span<const SpecialCallable> legacy_tensor_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.HalfTensor", call_class_of<DType::f16>},
      {"torch.BFloat16Tensor", call_class_of<DType::bf16>},
      {"torch.FloatTensor", call_class_of<DType::f32>},
      {"torch.DoubleTensor", call_class_of<DType::f64>},
      {"torch.ByteTensor", call_class_of<DType::u8>},
      {"torch.CharTensor", call_class_of<DType::i8>},
      {"torch.ShortTensor", call_class_of<DType::i16>},
      {"torch.IntTensor", call_class_of<DType::i32>},
      {"torch.LongTensor", call_class_of<DType::i64>},
      {"torch.BoolTensor", call_class_of<DType::b1>},
      {"torch.Tensor", call_tensor_class},
      {"torch.Tensor.new", call_new},
      {"torch.autograd.Variable", call_variable},
  };
  return table;
}

}  // namespace janus::frontend
