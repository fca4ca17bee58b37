// A deque is a Sequence whose type is collections.deque; its methods change the elements at the
// left.
#include "frontend/objects/deques.h"

#include <algorithm>

#include "frontend/control/list_parts.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/iteration.h"
#include "frontend/objects/lists.h"
#include "frontend/objects/special_callables.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

using python::Object;

namespace {

using Change = Value (*)(Interpreter&, Sequence&, const CallArguments&);

/// Puts the element in front of the others; where only the run knows how many these are, if they
/// grow there.
void put_in_front(Interpreter& interpreter, Sequence& self, const Value& element) {
  const Rolled* const list = self.elements.rolled().get();
  auto longer = list == nullptr ? nullptr : grown(interpreter, *list, element, /*front=*/true);
  if (longer != nullptr)
    self.elements = ElementList(std::move(longer));
  else
    self.elements.insert(self.elements.begin(), element);
  trim_deque(self, false);
}

Value append_left(Interpreter& interpreter, Sequence& self, const CallArguments& arguments) {
  expect_count(interpreter, arguments, 1, 1);
  put_in_front(interpreter, self, arguments.positional[0]);
  return interpreter.none();
}

Value extend_left(Interpreter& interpreter, Sequence& self, const CallArguments& arguments) {
  expect_count(interpreter, arguments, 1, 1);
  for_each_element(interpreter, arguments.positional[0], [&](const Value& element) {
    put_in_front(interpreter, self, element);
    note_list_change(interpreter, self);
  });
  return interpreter.none();
}

Value pop_left(Interpreter& interpreter, Sequence& self, const CallArguments& arguments) {
  expect_count(interpreter, arguments, 0, 0);
  if (const Rolled* const list = self.elements.rolled().get()) {
    auto first = popped(interpreter, *list, /*front=*/true, /*partly=*/true);
    if (first) self.elements = ElementList(std::move(first->rest));
    const Value element =
        first ? first->element : take_element(interpreter, self, interpreter.integer(0));
    if (element != nullptr) return element;
  }
  if (self.elements.empty())
    raise(interpreter, PyExc_IndexError, "IndexError: pop from an empty deque");
  Value element = self.elements[0];
  self.elements.erase(self.elements.begin());
  return element;
}

Value rotate(Interpreter& interpreter, Sequence& self, const CallArguments& arguments) {
  expect_count(interpreter, arguments, 0, 1);
  int64_t count = 1;
  if (!arguments.positional.empty())
    count = PyLong_AsLongLong(folded(interpreter, arguments.positional[0]).get());
  if (PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  const auto length = static_cast<int64_t>(self.elements.size());
  if (length == 0) return interpreter.none();
  const int64_t left = ((-count % length) + length) % length;
  std::rotate(self.elements.begin(), self.elements.begin() + left, self.elements.end());
  return interpreter.none();
}

std::shared_ptr<Sequence> empty_deque() {
  auto deque = std::make_shared<Sequence>(true);
  deque->type = Object::borrow(reinterpret_cast<PyObject*>(deque_type()));
  return deque;
}

/// collections.deque(elements, maxlen)
Value call_deque(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.size() > 2) return nullptr;
  const auto given = [&](size_t index, const char* name) -> Value {
    if (index < arguments.positional.size()) return arguments.positional[index];
    const Value* value = arguments.keyword(name);
    return value != nullptr ? *value : nullptr;
  };
  auto deque = empty_deque();
  if (const Value most = given(1, "maxlen")) {
    const Object number = folded(interpreter, most);
    if (!number.is(Py_None)) deque->most = PyLong_AsSsize_t(number.get());
    if (PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  }
  if (const Value elements = given(0, "iterable"))
    deque->elements = elements_of(interpreter, elements);
  trim_deque(*deque, true);
  return deque;
}

}  // namespace

void trim_deque(Sequence& deque, bool left) {
  if (deque.most < 0) return;
  const auto most = static_cast<size_t>(deque.most);
  if (deque.elements.size() <= most) return;
  const auto extra = static_cast<std::ptrdiff_t>(deque.elements.size() - most);
  if (left)
    deque.elements.erase(deque.elements.begin(), deque.elements.begin() + extra);
  else
    deque.elements.erase(deque.elements.begin() + deque.most, deque.elements.end());
}

Value deque_method(const std::shared_ptr<Sequence>& deque, const std::string& name) {
  static const std::pair<const char*, Change> changes[] = {{"appendleft", append_left},
                                                           {"extendleft", extend_left},
                                                           {"popleft", pop_left},
                                                           {"rotate", rotate}};
  for (const auto& [method, change] : changes)
    if (name == method)
      return std::make_shared<Native>(
          "deque." + name, [deque, change](Interpreter& inner, const CallArguments& arguments) {
            Value result = change(inner, *deque, arguments);
            note_list_change(inner, *deque);
            return result;
          });
  if (name == "copy")
    return std::make_shared<Native>(
        "deque.copy", [deque](Interpreter& inner, const CallArguments& arguments) -> Value {
          expect_count(inner, arguments, 0, 0);
          auto copy = empty_deque();
          copy->most = deque->most;
          copy->elements = deque->elements;
          return copy;
        });
  return nullptr;
}

std::span<const SpecialCallable> deque_callables() {
  static constexpr SpecialCallable table[] = {{"collections.deque", call_deque}};
  return table;
}

}  // namespace janus::frontend
