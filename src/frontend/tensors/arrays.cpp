// An instance of numpy.ndarray, whose only field no attribute can have the name of.
#include "frontend/tensors/arrays.h"

#include "frontend/core/torch_objects.h"

namespace janus::frontend {

using python::Object;

namespace {

PyObject* field_name() {
  static PyObject* const name = python::interned("the tensor");
  return name;
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

}  // namespace janus::frontend
