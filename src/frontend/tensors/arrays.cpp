// An instance of numpy.ndarray, whose only field no attribute can have the name of.
#include "frontend/tensors/arrays.h"

#include <algorithm>

#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/torch_objects.h"
#include "speculate/array_contents.h"

namespace janus::frontend {

using python::Object;

namespace {

PyObject* field_name() {
  static PyObject* const name = python::interned("the tensor");
  return name;
}

/// Whether the memory of some object that existed before may have changed since the run began. In a
/// loop that stays one, a later statement may do that.
bool may_have_written(const Interpreter& interpreter) {
  return interpreter.journal.open > 0 || interpreter.recursion().is_building() ||
         std::ranges::any_of(interpreter.entry_tensor_order, [](const auto& tensor) {
           return tensor->written || tensor->data_replaced;
         });
}

}  // namespace

Value array_of(const std::shared_ptr<Tensor>& tensor) {
  auto array = std::make_shared<Instance>(Object::borrow(imported("numpy.ndarray")));
  array->fields->items.emplace_back(Object::borrow(field_name()), tensor);
  return array;
}

std::shared_ptr<Tensor> tensor_of_array(const Instance& instance) {
  for (const auto& [name, value] : instance.fields->items)
    if (name.is(field_name())) return shared_as<Tensor>(value);
  return nullptr;
}

std::shared_ptr<Tensor> contents_of_array(Interpreter& interpreter, const Value& value) {
  const auto* known = as<Known>(value);
  if (known == nullptr || known->source == nullptr || !speculate::is_array(known->object.get()) ||
      may_have_written(interpreter))
    return nullptr;
  const Object contents = Object::steal(speculate::contents_of_array(known->object.get()));
  if (!contents) {
    PyErr_Clear();
    return nullptr;
  }
  const speculate::Source* const place =
      interpreter.sources().step(speculate::Source::Kind::array_contents, known->source);
  return shared_as<Tensor>(interpreter.wrap(contents.get(), place));
}

std::shared_ptr<Tensor> indices_of_array(Interpreter& interpreter, const Value& part,
                                         bool is_alone) {
  using graph::DType;
  static const Handler to_long = handler_named("torch.Tensor.long");
  const auto contents = contents_of_array(interpreter, part);
  if (contents == nullptr) return nullptr;
  const auto rank = contents->value->type.rank();
  if (rank < 1 || (rank > 1 && is_alone)) return nullptr;
  switch (contents->value->type.dtype) {
    case DType::b1:
      if (rank > 1) return nullptr;  // beside `...`, eager takes it for one dimension
      return contents;
    case DType::i64:
      return contents;
    case DType::i32:
    case DType::i16:
      return shared_as<Tensor>(to_long(interpreter, {.positional = {contents}, .keywords = {}}));
    default:
      return nullptr;
  }
}

}  // namespace janus::frontend
