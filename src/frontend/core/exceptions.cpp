#include "frontend/core/exceptions.h"

#include "frontend/values/constants.h"
#include "frontend/values/make.h"

namespace janus::frontend {

using python::Object;

namespace {

constexpr const char* kArguments = "args";

}  // namespace

// --- who handles it -----------------------------------------------------------------------------

Awaiting::Awaiting(Interpreter& interpreter, What what, PyObject* type)
    : frame_(interpreter.frame()) {
  frame_.awaiting.push_back({what == What::exceptions ? type : nullptr, interpreter.open_scopes()});
}

bool is_awaited(const Interpreter& interpreter, PyObject* type) {
  for (const Frame* frame = &interpreter.frame(); frame != nullptr; frame = frame->caller) {
    for (auto each = frame->awaiting.rbegin(); each != frame->awaiting.rend(); ++each) {
      if (each->type == nullptr) return false;
      if (type != nullptr && PyErr_GivenExceptionMatches(type, each->type) == 0) continue;
      return interpreter.only_branches_since(each->open_scopes);
    }
  }
  return false;
}

void raise(Interpreter& interpreter, PyObject* type, std::string details) {
  if (is_awaited(interpreter, type)) throw Raised{std::make_shared<Instance>(Object::borrow(type))};
  interpreter.refuse(ReasonCode::would_raise, std::move(details));
}

// --- exceptions as values -----------------------------------------------------------------------

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

Value initialise_exception(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.empty() || !arguments.keywords.empty() ||
      !is_exception(arguments.positional[0]))
    return nullptr;
  set_exception_arguments(*as<Instance>(arguments.positional[0]),
                make_tuple({arguments.positional.begin() + 1, arguments.positional.end()}));
  return interpreter.none();
}

// --- functions that may raise -------------------------------------------------------------------

}  // namespace janus::frontend
