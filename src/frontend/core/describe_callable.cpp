#include "frontend/core/describe_callable.h"

#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;

std::string describe_callable(const Value& callee) {
  if (const auto* closure = as<Closure>(callee)) return closure->name;
  if (const auto* native = as<Native>(callee)) return native->name;
  if (const auto* method = as<Method>(callee)) return describe_callable(method->function);
  if (const auto* known = as<Known>(callee)) {
    Object name = Object::steal(PyObject_GetAttrString(known->object.get(), "__qualname__"));
    PyErr_Clear();
    constexpr std::string_view torchs = "_VariableFunctionsClass.";  // the class of torch.rand
    if (name && text_of(name.get()).starts_with(torchs))
      return cat("torch.", text_of(name.get()).substr(torchs.size()));
    if (name) return text_of(name.get());
    return std::string("an object of ") + Py_TYPE(known->object.get())->tp_name;
  }
  return "a value";
}

}  // namespace janus::frontend
