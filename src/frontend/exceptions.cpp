#include "frontend/exceptions.h"

#include "frontend/attributes.h"
#include "frontend/branches.h"
#include "frontend/callables.h"
#include "frontend/calls.h"
#include "frontend/containers.h"
#include "frontend/expressions.h"

namespace janus::frontend {

using python::Object;

namespace {

constexpr const char* kArguments = "args";

PyTypeObject* base_exception() { return reinterpret_cast<PyTypeObject*>(PyExc_BaseException); }

void set_arguments(Instance& exception, const Value& arguments) {
  auto& items = exception.fields->items;
  std::erase_if(items, [](const auto& item) { return text_of(item.first.get()) == kArguments; });
  items.emplace_back(Object::steal(PyUnicode_InternFromString(kArguments)), arguments);
}

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

Value value_unless_raised(Interpreter& interpreter, PyObject* type,
                          const std::function<Value()>& body) {
  const auto& forks = interpreter.frame().forks;
  const size_t before = forks.size();
  const auto check_forks = [&] {
    if (forks.size() != before) throw CannotMerge{*forks.back()->test(), "only one side raises"};
  };
  Value value;
  try {
    const Awaiting awaiting(interpreter, Awaiting::What::exceptions, type);
    value = body();
  } catch (const Raised& raised) {
    check_forks();
    if (PyErr_GivenExceptionMatches(class_of_exception(raised.exception), type) == 0) throw;
    return nullptr;
  }
  check_forks();
  return value;
}

// --- exceptions as values -----------------------------------------------------------------------

bool is_exception(const Value& value) {
  const auto* instance = as<Instance>(value);
  return instance != nullptr && PyExceptionClass_Check(instance->type.get());
}

PyObject* class_of_exception(const Value& exception) { return as<Instance>(exception)->type.get(); }

Value arguments_of_exception(const Instance& exception) {
  for (const auto& [name, value] : exception.fields->items)
    if (text_of(name.get()) == kArguments) return value;
  return nullptr;
}

Value make_exception(Interpreter& interpreter, const Known& known, const CallArguments& arguments) {
  auto* type = reinterpret_cast<PyTypeObject*>(known.object.get());
  if (type->tp_new != base_exception()->tp_new) return nullptr;
  auto exception = std::make_shared<Instance>(known.object);
  set_arguments(*exception, make_tuple(arguments.positional));
  if (const Value initialiser = written_method(interpreter, exception, "__init__"))
    call(interpreter, initialiser, arguments);
  else if (!arguments.keywords.empty())
    return nullptr;
  return exception;
}

Value exception_of(const Object& type, const Object& exception) {
  auto made = std::make_shared<Instance>(type);
  Object arguments = Object::steal(PyObject_GetAttrString(exception.get(), kArguments));
  PyErr_Clear();
  if (arguments && is_immutable_constant(arguments.get()))
    set_arguments(*made, std::make_shared<Known>(arguments, nullptr));
  return made;
}

Value initialise_exception(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.empty() || !arguments.keywords.empty() ||
      !is_exception(arguments.positional[0]))
    return nullptr;
  set_arguments(*as<Instance>(arguments.positional[0]),
                make_tuple({arguments.positional.begin() + 1, arguments.positional.end()}));
  return interpreter.none();
}

// --- functions that may raise -------------------------------------------------------------------

Value settle_outcome(Interpreter& interpreter, const Value& result) {
  const auto* outcome = as<Outcome>(result);
  if (outcome == nullptr) return result;
  const Truth raises = truth_of(interpreter, outcome->raises);
  if (raises.known && *raises.known) throw Raised{outcome->exception};
  if (raises.known) return outcome->value;
  if (!has_room_for_fork(interpreter))
    throw CannotMerge{outcome->test, "there are too many branches"};
  auto fork = std::make_shared<Fork>(interpreter, raises, outcome->test);
  fork->enter(0);
  fork->leave(Completion::raise_, outcome->exception);
  fork->enter(1);
  interpreter.frame().forks.push_back(std::move(fork));
  return outcome->value;
}

}  // namespace janus::frontend
