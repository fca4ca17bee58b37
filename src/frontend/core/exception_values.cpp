#include "frontend/core/exception_values.h"

#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;

namespace {

constexpr const char* kArguments = "args";

}  // namespace

bool is_exception(const Value& value) {
  const auto* instance = as<Instance>(value);
  return instance != nullptr && PyExceptionClass_Check(instance->type.get());
}

PyObject* class_of_exception(const Value& exception) { return as<Instance>(exception)->type.get(); }

void set_exception_arguments(Instance& exception, const Value& arguments) {
  auto& items = exception.fields->items;
  std::erase_if(items, [](const auto& item) { return text_of(item.first.get()) == kArguments; });
  items.emplace_back(Object::steal(PyUnicode_InternFromString(kArguments)), arguments);
}

Value arguments_of_exception(const Instance& exception) {
  for (const auto& [name, value] : exception.fields->items)
    if (text_of(name.get()) == kArguments) return value;
  return nullptr;
}

Value exception_of(const Object& type, const Object& exception) {
  auto made = std::make_shared<Instance>(type);
  Object arguments = Object::steal(PyObject_GetAttrString(exception.get(), kArguments));
  PyErr_Clear();
  if (arguments && is_immutable_constant(arguments.get()))
    set_exception_arguments(*made, std::make_shared<Known>(arguments, nullptr));
  return made;
}

}  // namespace janus::frontend
