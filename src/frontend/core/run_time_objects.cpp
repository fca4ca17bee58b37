#include "frontend/core/run_time_objects.h"

#include <algorithm>

#include "frontend/core/class_of.h"
#include "frontend/core/interpreter.h"
#include "frontend/values/class_sets.h"
#include "frontend/values/constants.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

int64_t number_of(GraphWriter& writer, PyObject* object) {
  std::vector<Object>& objects = writer.output().objects;
  for (size_t i = 0; i < objects.size(); ++i)
    if (objects[i].is(object)) return static_cast<int64_t>(i);
  objects.push_back(Object::borrow(object));
  return static_cast<int64_t>(objects.size() - 1);
}

graph::Value* class_flag(GraphWriter& writer, const RuntimeObject& object, PyTypeObject* type) {
  return op::object_is_instance_of_class(
      writer.builder(), {object.value},
      {{"class", number_of(writer, reinterpret_cast<PyObject*>(type))}});
}

graph::Value* any_flag(GraphWriter& writer, const RuntimeObject& object, const Classes& classes) {
  graph::Value* any = nullptr;
  for (const Object& each : classes) {
    graph::Value* flag = class_flag(writer, object, as_type(each));
    any = any == nullptr ? flag : op::scalar_or(writer.builder(), {any, flag});
  }
  return any;
}

std::pair<Classes, bool> classes_here(const InterpreterState& state, const RuntimeObject& object) {
  auto known = state.known_classes.find(object.value);
  if (known == state.known_classes.end()) return {object.classes, false};
  return {known->second.classes, known->second.is_certain};
}

void guard_classes(Interpreter& interpreter, const RuntimeObject& object, const Classes& classes,
                   int fact) {
  if (classes.empty())
    interpreter.refuse(ReasonCode::dynamic_value, "an object of a class that was not seen");
  interpreter.guard_kinds(any_flag(interpreter, object, classes), fact);
  interpreter.known_classes[object.value] = {classes, true};
}

graph::Attributes may_fail(Guards& guards, int fact) {
  graph::Attributes attributes;
  attributes.set("id", guards.kinds_test(fact));
  attributes.set("reason", std::string("kind_changed"));
  return attributes;
}

Classes expect_classes(Interpreter& interpreter, const RuntimeObject& object, int fact) {
  auto [classes, is_certain] = classes_here(interpreter, object);
  if (!is_certain) guard_classes(interpreter, object, classes, fact);
  return classes;
}

Value test_classes(Interpreter& interpreter, const RuntimeObject& object,
                   const std::function<bool(PyTypeObject*)>& holds, int fact) {
  ClassTest test;
  test.object = object.value;
  for (const Object& each : expect_classes(interpreter, object, fact))
    (holds(as_type(each)) ? test.yes : test.no).push_back(each);
  if (test.yes.empty() || test.no.empty()) return interpreter.boolean(test.no.empty());
  graph::Value* flag = any_flag(interpreter, object, test.yes);
  interpreter.class_tests[flag] = std::move(test);
  return interpreter.number(flag);
}

graph::Value* object_value(Interpreter& interpreter, const Value& value) {
  if (const auto* object = as<RuntimeObject>(value)) return object->value;
  const auto* known = as<Known>(value);
  if (known == nullptr) return nullptr;
  PyObject* object = known->object.get();
  // Which object a number or string is, is an accident of Python.
  if (is_immutable_constant(object) && object != Py_None) return nullptr;
  interpreter.assume_identity(*known);
  return interpreter.builder()
      .append_unchecked(op::object_constant, std::vector<graph::Value*>{},
                        {{"object", number_of(interpreter, object)}}, {Type::object("object")})
      ->output();
}

Classes possible_classes(const InterpreterState& state, const Value& value) {
  if (const auto* object = as<RuntimeObject>(value)) return classes_here(state, *object).first;
  PyTypeObject* type = class_of(value);
  if (type == nullptr) return {};
  return {Object::borrow(reinterpret_cast<PyObject*>(type))};
}

}  // namespace janus::frontend
