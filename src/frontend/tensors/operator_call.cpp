#include "frontend/tensors/operator_call.h"

#include <algorithm>

#include "frontend/core/class_of.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/core/torch_services.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "graph/constant.h"
#include "ops/list.h"
#include "python/integer.h"

namespace janus::frontend {

using python::Object;

namespace {

/// An int as an attribute: a number or a dimension expression.
std::optional<graph::Dim> as_dimension(const Value& value) {
  if (const auto* known = as<Known>(value)) {
    if (!PyLong_CheckExact(known->object.get())) return std::nullopt;
    return python::int64_of(known->object.get());
  }
  const auto* number = as<Number>(value);
  return number != nullptr && number->type == graph::Type::Kind::i64 ? number->dim : std::nullopt;
}

bool is_integer(const Value& value) {
  const auto* number = as<Number>(value);
  return as_dimension(value) || (number != nullptr && number->type == graph::Type::Kind::i64);
}

}  // namespace

bool OperatorCall::bind() {
  return !signature_.free_form && assign_positional() && assign_keywords() && convert_all();
}

size_t OperatorCall::positional_parameters() const {
  size_t count = 0;
  for (const Parameter& parameter : signature_.parameters) count += parameter.keyword_only ? 0 : 1;
  return count;
}

bool OperatorCall::takes_separate_ints(size_t index) const {
  const Parameter& parameter = signature_.parameters[index];
  if (parameter.kind != Parameter::Kind::integer_list) return false;
  if (arguments_.positional.size() <= index || !is_integer(arguments_.positional[index]))
    return false;
  if (arguments_.positional.size() == index + 1) return false;
  bool first = index == 0 || (index == 1 && signature_.parameters[0].name == "self");
  return first && positional_parameters() == index + 1;
}

bool OperatorCall::assign_positional() {
  values_.resize(signature_.parameters.size());
  const auto& given = arguments_.positional;
  size_t most = positional_parameters();
  for (size_t i = 0; i < given.size(); ++i) {
    if (i >= most) return accepts_extra_positional(i);
    if (takes_separate_ints(i)) {
      values_[i] = make_tuple({given.begin() + static_cast<std::ptrdiff_t>(i), given.end()});
      return true;
    }
    values_[i] = given[i];
  }
  return true;
}

bool OperatorCall::accepts_extra_positional(size_t index) {
  return function_takes("inplace") && index + 1 == arguments_.positional.size() &&
         known_object(arguments_.positional[index]) == Py_False;
}

bool OperatorCall::function_takes(std::string_view keyword) const {
  if (function_ == nullptr) return false;
  auto* const code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function_));
  if ((code->co_flags & CO_VARKEYWORDS) != 0) return true;
  const Object names = python::check(PyCode_GetVarnames(code));
  const int parameters = code->co_argcount + code->co_kwonlyargcount;
  for (Py_ssize_t i = code->co_posonlyargcount; i < parameters; ++i)
    if (text_of(PyTuple_GET_ITEM(names.get(), i)) == keyword) return true;
  return false;
}

bool OperatorCall::assign_keywords() {
  for (const auto& [keyword, value] : arguments_.keywords) {
    if (function_ != nullptr && !function_takes(keyword)) return false;
    bool found = false;
    for (size_t i = 0; i < signature_.parameters.size() && !found; ++i) {
      if (!names_parameter(keyword, signature_.parameters[i].name)) continue;
      if (values_[i] != nullptr) return false;
      values_[i] = value;
      found = true;
    }
    if (!found && !accept_extra_keyword(keyword, value)) return false;
  }
  return true;
}

bool OperatorCall::accept_extra_keyword(const std::string& keyword, const Value& value) {
  PyObject* object = known_object(value);
  if (keyword == "out" || keyword == "generator") return object == Py_None;
  if (keyword == "inplace" && function_takes(keyword)) {
    in_place_flag = object == Py_True;
    return object == Py_False || object == Py_True;
  }
  if (keyword == "requires_grad") {
    requires_grad = object == Py_True;
    return object == Py_False || object == Py_True;
  }
  return is_default_setting(keyword, value);
}

bool OperatorCall::is_default_setting(const std::string& name, const Value& value) {
  PyObject* object = known_object(value);
  if (object == nullptr) return false;
  constexpr std::string_view settings[] = {"device",       "layout", "memory_format", "pin_memory",
                                           "non_blocking", "names",  "generator"};
  if (std::find(std::begin(settings), std::end(settings), name) == std::end(settings)) return false;
  if (object == Py_None || object == Py_False) return true;
  if (name == "layout") return object == imported("torch.strided");
  if (name == "memory_format") {
    wants_order = object == imported("torch.contiguous_format");
    return wants_order || object == imported("torch.preserve_format");
  }
  if (name == "device") {
    Object text = Object::steal(PyObject_Str(object));
    return text_of(text.get()) == "cpu";
  }
  return false;
}

bool OperatorCall::convert_all() {
  for (size_t i = 0; i < values_.size(); ++i) {
    const Parameter& parameter = signature_.parameters[i];
    if (parameter.is_operand()) values.push_back(shared_as<Tensor>(values_[i]));
    if (values_[i] == nullptr) {
      if (!use_default(parameter)) return false;
    } else if (!(parameter.is_operand() ? add_operand(parameter, values_[i])
                                        : add_attribute(parameter, values_[i]))) {
      return false;
    }
  }
  return true;
}

bool OperatorCall::use_default(const Parameter& parameter) {
  if (parameter.kind == Parameter::Kind::ignored) return true;
  if (!parameter.default_value) return false;
  if (!parameter.is_operand()) return true;  // Builder fills it in
  graph::Builder& builder = interpreter_.builder();
  const AttributeValue& value = *parameter.default_value;
  if (const auto* number = std::get_if<double>(&value))
    operands.push_back(builder.constant(*number));
  else if (const auto* integer = std::get_if<int64_t>(&value))
    operands.push_back(builder.constant(*integer));
  else if (const auto* flag = std::get_if<bool>(&value))
    operands.push_back(builder.constant(*flag));
  else
    operands.push_back(builder.none());
  return true;
}

bool OperatorCall::add_tensor(const Value& value) {
  if (auto tensor = shared_as<Tensor>(value)) {
    operands.push_back(read(interpreter_, *tensor));
    tensors.push_back(std::move(tensor));
    return true;
  }
  // What is written in Python is for tensors, and may do more with a number before it fails.
  if (!is_number(value) || (function_ != nullptr && operands.empty())) return false;
  operands.push_back(interpreter_.graph_value(value));
  return true;
}

bool OperatorCall::add_operand(const Parameter& parameter, const Value& value) {
  if (parameter.kind == Parameter::Kind::tensor_list) {
    Value shadow = opened(interpreter_, value);
    const auto* sequence = as<Sequence>(shadow);
    if (sequence == nullptr || !is_list_or_tuple(shadow)) return false;
    for (const Value& element : sequence->elements) {
      if (parameter.element_optional && is_none(element))
        operands.push_back(interpreter_.builder().none());
      else if (as<Tensor>(element) == nullptr || !add_tensor(element))
        return false;
    }
    return true;
  }
  if (is_none(value)) {
    if (!parameter.optional) return false;
    operands.push_back(interpreter_.builder().none());
    return true;
  }
  if (parameter.kind == Parameter::Kind::tensor) return add_tensor(value);
  if (auto* tensor = as<Tensor>(value); takes_elements_ && tensor != nullptr &&
                                        tensor->value->type.rank() == 0 && !tensor->requires_grad) {
    operands.push_back(interpreter_.graph_value(item(interpreter_, *tensor)));
    return true;
  }
  if (!is_number(value)) return false;
  operands.push_back(interpreter_.graph_value(value));
  return true;
}

bool OperatorCall::add_attribute(const Parameter& parameter, const Value& value) {
  std::optional<AttributeValue> converted;
  if (parameter.kind == Parameter::Kind::ignored) return is_default_setting(parameter.name, value);
  if (is_none(value)) {
    if (!parameter.optional) return false;
    converted = graph::None{};
  } else {
    converted = attribute_value(parameter, value);
  }
  if (!converted) return false;
  attributes.set(parameter.name, std::move(*converted));
  return true;
}

std::optional<AttributeValue> OperatorCall::attribute_value(const Parameter& parameter,
                                                            const Value& value) {
  PyObject* object = known_object(value);
  switch (parameter.kind) {
    case Parameter::Kind::integer: {
      std::optional<graph::Dim> dim = as_size(parameter, value);
      if (!dim) return std::nullopt;
      return dim->is_constant() ? AttributeValue(dim->value()) : AttributeValue(*dim);
    }
    case Parameter::Kind::integer_list:
      return integer_list(parameter, value);
    case Parameter::Kind::boolean:
      if (is_flag(value)) return AttributeValue(truth(interpreter_, value, -1));
      if (object == nullptr || !PyBool_Check(object)) return std::nullopt;
      return AttributeValue(object == Py_True);
    case Parameter::Kind::string:
      if (object == nullptr || !PyUnicode_CheckExact(object)) return std::nullopt;
      return AttributeValue(text_of(object));
    case Parameter::Kind::dtype: {
      std::optional<graph::DType> dtype = object == nullptr ? std::nullopt : dtype_of(object);
      if (!dtype) return std::nullopt;
      return AttributeValue(*dtype);
    }
    case Parameter::Kind::boolean_list:
    case Parameter::Kind::floating_list:
      return constant_list(parameter, value);
    default:
      return std::nullopt;
  }
}

std::optional<graph::Dim> OperatorCall::as_size(const Parameter& parameter, const Value& given) {
  // Python asks a tensor for the int that it holds.
  auto* tensor = as<Tensor>(given);
  const bool holds_int = tensor != nullptr && tensor->value->type.rank() == 0 &&
                         tensor->value->type.dtype == graph::DType::i64;
  const Value value = holds_int ? item(interpreter_, *tensor) : given;
  const std::optional<graph::Dim> dim = as_dimension(value);
  const bool is_size = parameter.name == "size" || parameter.name == "repeats" ||
                       std::ranges::none_of(signature_.parameters, [](const Parameter& each) {
                         return each.kind <= Parameter::Kind::tensor_list;
                       });
  if (dim || !is_integer(value)) return dim;
  graph::Value* const number = interpreter_.graph_value(value);
  if (is_size) return interpreter_.run_time_dimension(number);
  return interpreter_.run_time_size([&](const graph::Value* size) { return size == number; });
}

std::optional<AttributeValue> OperatorCall::integer_list(const Parameter& parameter,
                                                         const Value& value) {
  if (std::optional<graph::Dim> dim = as_size(parameter, value)) {
    const size_t index = signature_.parameters[0].name == "self" ? 1 : 0;
    const bool is_only =
        &parameter == &signature_.parameters[index] && positional_parameters() == index + 1;
    if (parameter.list_size == 0 && !is_only) return std::nullopt;
    auto length = static_cast<size_t>(std::max(parameter.list_size, 1));
    return AttributeValue(graph::Shape(length, *dim));
  }
  Value shadow = opened(interpreter_, value);
  const auto* sequence = as<Sequence>(shadow);
  if (sequence == nullptr || !is_list_or_tuple(shadow)) return std::nullopt;
  graph::Shape shape;
  for (const Value& element : sequence->elements) {
    std::optional<graph::Dim> dim = as_size(parameter, element);
    if (!dim) return std::nullopt;
    shape.push_back(*dim);
  }
  if (shape.size() == 1 && parameter.list_size > 1)
    shape.resize(static_cast<size_t>(parameter.list_size), graph::Dim(shape[0]));
  return AttributeValue(std::move(shape));
}

std::optional<AttributeValue> OperatorCall::constant_list(const Parameter& parameter,
                                                          const Value& value) {
  Value shadow = opened(interpreter_, value);
  const auto* sequence = as<Sequence>(shadow);
  if (sequence == nullptr || !is_list_or_tuple(shadow)) return std::nullopt;
  std::vector<double> numbers;
  std::vector<bool> flags;
  for (const Value& element : sequence->elements) {
    PyObject* object = known_object(element);
    if (object == nullptr) return std::nullopt;
    if (parameter.kind == Parameter::Kind::boolean_list) {
      if (!PyBool_Check(object)) return std::nullopt;
      flags.push_back(object == Py_True);
      continue;
    }
    if (!PyFloat_CheckExact(object) && !PyLong_CheckExact(object)) return std::nullopt;
    numbers.push_back(PyFloat_AsDouble(object));
  }
  if (parameter.kind == Parameter::Kind::boolean_list) return AttributeValue(std::move(flags));
  return AttributeValue(std::move(numbers));
}

}  // namespace janus::frontend
