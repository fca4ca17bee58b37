#include "frontend/run_time.h"

#include <structmember.h>

#include <algorithm>
#include <set>

#include "frontend/attributes.h"
#include "frontend/branches.h"
#include "frontend/callables.h"
#include "frontend/calls.h"
#include "frontend/container_parts.h"
#include "frontend/entry_lists.h"
#include "frontend/expressions.h"
#include "frontend/met_writes.h"
#include "frontend/operators.h"
#include "frontend/recursion.h"
#include "frontend/tensor.h"
#include "ops/list.h"
#include "python/integer.h"

namespace janus::frontend {

using graph::Type;
using python::Object;
using speculate::ValueFact;

namespace {

bool has(const Classes& classes, PyTypeObject* type) {
  return std::any_of(classes.begin(), classes.end(), [&](const Object& each) {
    return each.is(reinterpret_cast<PyObject*>(type));
  });
}

PyTypeObject* as_type(const Object& object) {
  return reinterpret_cast<PyTypeObject*>(object.get());
}

/// The number by which nodes name an object.
int64_t number_of(Interpreter& interpreter, PyObject* object) {
  std::vector<Object>& objects = interpreter.output().objects;
  for (size_t i = 0; i < objects.size(); ++i)
    if (objects[i].is(object)) return static_cast<int64_t>(i);
  objects.push_back(Object::borrow(object));
  return static_cast<int64_t>(objects.size() - 1);
}

graph::Value* class_flag(Interpreter& interpreter, const RuntimeObject& object,
                         PyTypeObject* type) {
  return op::object_is_instance_of_class(
      interpreter.builder(), {object.value},
      {{"class", number_of(interpreter, reinterpret_cast<PyObject*>(type))}});
}

/// Whether it is exactly of one of the classes, of which there is at least one.
graph::Value* any_flag(Interpreter& interpreter, const RuntimeObject& object,
                       const Classes& classes) {
  graph::Value* any = nullptr;
  for (const Object& each : classes) {
    graph::Value* flag = class_flag(interpreter, object, as_type(each));
    any = any == nullptr ? flag : op::scalar_or(interpreter.builder(), {any, flag});
  }
  return any;
}

/// The classes as they are known here, and whether they are certain.
std::pair<Classes, bool> classes_here(Interpreter& interpreter, const RuntimeObject& object) {
  auto known = interpreter.known_classes.find(object.value);
  if (known == interpreter.known_classes.end()) return {object.classes, false};
  return {known->second.classes, known->second.is_certain};
}

void expect(Interpreter& interpreter, const RuntimeObject& object, const Classes& classes,
            int fact) {
  if (classes.empty())
    interpreter.refuse(ReasonCode::dynamic_value, "an object of a class that was not seen");
  interpreter.guard_kinds(any_flag(interpreter, object, classes), fact);
  interpreter.known_classes[object.value] = {classes, true};
}

/// The attributes of a node that may fail.
graph::Attributes may_fail(Interpreter& interpreter, int fact) {
  graph::Attributes attributes;
  attributes.set("id", interpreter.kinds_test(fact));
  attributes.set("reason", std::string("kind_changed"));
  return attributes;
}

}  // namespace

Classes united(Classes classes, const Classes& more) {
  for (const Object& each : more)
    if (!has(classes, as_type(each))) classes.push_back(each);
  return classes;
}

Value entry_object(Interpreter& interpreter, PyObject* object, const Source* source) {
  auto type = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  interpreter.assume(Assumption::Kind::exact_type, source, type);
  graph::Value* value = interpreter.run_time_input(source);
  interpreter.known_classes[value] = {{type}, true};
  auto result = std::make_shared<RuntimeObject>(value, Classes{type});
  result->example = Object::borrow(object);
  return result;
}

Classes expect_classes(Interpreter& interpreter, const RuntimeObject& object, int fact) {
  auto [classes, is_certain] = classes_here(interpreter, object);
  if (!is_certain) expect(interpreter, object, classes, fact);
  return classes;
}

Value test_classes(Interpreter& interpreter, const RuntimeObject& object,
                   const std::function<bool(PyTypeObject*)>& holds, int fact) {
  Interpreter::ClassTest test;
  test.object = object.value;
  for (const Object& each : expect_classes(interpreter, object, fact))
    (holds(as_type(each)) ? test.yes : test.no).push_back(each);
  if (test.yes.empty() || test.no.empty()) return interpreter.boolean(test.no.empty());
  graph::Value* flag = any_flag(interpreter, object, test.yes);
  interpreter.class_tests[flag] = std::move(test);
  return interpreter.number(flag);
}

// --- attributes ---------------------------------------------------------------------------------

namespace {

/// What numbers of the class are in the graph; objects for any other class.
Type number_type(PyTypeObject* type) {
  if (type == &PyLong_Type) return Type::i64();
  if (type == &PyFloat_Type) return Type::f64();
  return type == &PyBool_Type ? Type::boolean() : Type::object("object");
}

/// What values of a place were, as the type of a value of the graph.
Type type_seen(const ValueFact* seen) {
  const Type object = Type::object("object");
  if (seen == nullptr) return object;
  using Level = ValueFact::Level;
  if (seen->is_tensor() && seen->level() == Level::shape &&
      seen->type() == reinterpret_cast<PyObject*>(tensor_class())) {
    graph::Shape shape;
    for (int64_t size : seen->sizes()) shape.push_back(graph::Dim(size));
    return Type::tensor(seen->dtype(), std::move(shape));
  }
  if (seen->classes().size() != 1) return object;
  return number_type(as_type(seen->classes().front()));
}

/// What a node that reads the heap gives, as a value of the program.
Value read_value(Interpreter& interpreter, graph::Value* value, const ValueFact* seen) {
  if (value->type.is_number()) return interpreter.number(value);
  if (value->type.is_tensor()) {
    for (const auto& written : interpreter.entry_tensor_order)
      if (written->written)
        interpreter.refuse(ReasonCode::unsupported_tensor,
                           "a tensor met at run time, after others were written");
    auto tensor = make_tensor(interpreter, value, false);
    tensor->is_borrowed = tensor->uncertain_alias = true;
    return tensor;
  }
  return std::make_shared<RuntimeObject>(value, seen == nullptr ? Classes() : seen->classes());
}

/// What is read of Python's heap must not have been changed by the run, which writes at its end.
/// Objects of another class are other objects.
void check_unchanged(Interpreter& interpreter, const Classes& classes) {
  for (PyObject* identity : interpreter.heap.table_order()) {
    const Heap::Table* table = interpreter.heap.table(identity);
    PyObject* owner = table->target.object.get();
    if (owner != nullptr && !table->changes.empty() && has(classes, Py_TYPE(owner)))
      interpreter.refuse(ReasonCode::heap_write, cat("an object of class ", Py_TYPE(owner)->tp_name,
                                                     ", before one is read that may be the same"));
  }
  if (has(classes, &PyList_Type) && interpreter.heap.has_changed_list())
    interpreter.refuse(ReasonCode::heap_write, "a list, before one is read that may be the same");
}

/// What the attribute, the item of a dict or the element is in objects of the class that the call
/// at hand is given: for what no profile saw, such as the code of properties. Runs no code of the
/// program.
class Sample {
 public:
  Sample(PyTypeObject* type, const std::string& name, ValueFact& seen)
      : type_(type), name_(Object::steal(PyUnicode_InternFromString(name.c_str()))), seen_(seen) {}
  /// The element at `index` of lists or tuples of so many.
  Sample(PyTypeObject* type, Py_ssize_t index, Py_ssize_t count, ValueFact& seen)
      : type_(type), index_(index), count_(count), seen_(seen) {}

  void look(const speculate::Call& call) {
    Py_ssize_t keywords = call.keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(call.keyword_names);
    for (Py_ssize_t i = 0; i < call.argument_count + keywords; ++i) add(call.arguments[i]);
    if (call.variables != nullptr && call.variables != call.globals) add(call.variables);
    while (!open_.empty() && found_.size() < kMostObjects) {
      PyObject* object = open_.back();
      open_.pop_back();
      look_into(object);
    }
  }

 private:
  static constexpr size_t kMostObjects = 3000;

  void add(PyObject* object) {
    bool is_heap_type = (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
    bool may_hold = PyList_CheckExact(object) || PyTuple_CheckExact(object) ||
                    PyDict_CheckExact(object) || (is_heap_type && !PyType_Check(object));
    if (may_hold && found_.insert(object).second) open_.push_back(object);
  }

  void look_into(PyObject* object) {
    if (PyList_CheckExact(object) || PyTuple_CheckExact(object)) {
      const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
      if (Py_TYPE(object) == type_ && count == count_)
        seen_.see(PySequence_Fast_GET_ITEM(object, index_));
      for (Py_ssize_t i = 0; i < count; ++i) add(PySequence_Fast_GET_ITEM(object, i));
      return;
    }
    Object dict = PyDict_CheckExact(object) ? Object::borrow(object) : own_dictionary(object);
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t place = 0; dict && PyDict_Next(dict.get(), &place, &key, &value) != 0;)
      note(object, key, value);
    if (!PyDict_CheckExact(object)) look_into_slots(object);
  }

  void look_into_slots(PyObject* object) {
    PyObject* classes = Py_TYPE(object)->tp_mro;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes); ++i) {
      PyObject* dict = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(classes, i))->tp_dict;
      PyObject *key = nullptr, *member = nullptr;
      for (Py_ssize_t place = 0; PyDict_Next(dict, &place, &key, &member) != 0;) {
        if (Py_TYPE(member) != &PyMemberDescr_Type) continue;
        Object value = Object::steal(
            PyMember_GetOne(reinterpret_cast<char*>(object),
                            reinterpret_cast<PyMemberDescrObject*>(member)->d_member));
        PyErr_Clear();
        if (value) note(object, key, value.get());
      }
    }
  }

  void note(PyObject* object, PyObject* key, PyObject* value) {
    if (Py_TYPE(object) == type_ && name_ &&
        (key == name_.get() || text_of(key) == text_of(name_.get())))
      seen_.see(value);
    add(value);
  }

  PyTypeObject* type_;
  Object name_;
  Py_ssize_t index_ = 0, count_ = -1;
  ValueFact& seen_;
  std::vector<PyObject*> open_;
  std::set<PyObject*> found_;
};

bool are_dicts(const Classes& classes) {
  return !classes.empty() && std::ranges::all_of(classes, [](const Object& each) {
    return as_type(each) == &PyDict_Type;
  });
}

/// The attributes of a node that looks up the key in a dict.
graph::Attributes with_key(Interpreter& interpreter, const Value& key,
                           graph::Attributes attributes) {
  PyObject* const known = known_object(key);
  const std::optional<int64_t> number =
      known != nullptr && PyLong_CheckExact(known) ? python::int64_of(known) : std::nullopt;
  if (known != nullptr && PyUnicode_CheckExact(known))
    attributes.set("key", text_of(known));
  else if (number)
    attributes.set("key", *number);
  else
    interpreter.refuse(ReasonCode::expression, "a key of a dict met at run time");
  return attributes;
}

/// dict[key]; `seen`: what such items were, if that is known.
Value dict_item(Interpreter& interpreter, const RuntimeObject& dict, const Value& key,
                const ValueFact* seen, int fact) {
  graph::Attributes attributes = with_key(interpreter, key, may_fail(interpreter, fact));
  ValueFact sampled;
  if (seen == nullptr)
    Sample(&PyDict_Type, text_of(known_object(key)), sampled).look(interpreter.call());
  if (seen == nullptr) seen = &sampled;
  const graph::Node* node = interpreter.builder().append_unchecked(
      op::object_entry, std::vector<graph::Value*>{dict.value}, std::move(attributes),
      {type_seen(seen)});
  return read_value(interpreter, node->output(), seen);
}

graph::Value* has_item(Interpreter& interpreter, const RuntimeObject& dict, const Value& key) {
  return op::object_has_entry(interpreter.builder(), {dict.value}, with_key(interpreter, key, {}));
}

/// dict.get
Value dict_get(const std::shared_ptr<RuntimeObject>& dict) {
  return std::make_shared<Native>("dict.get", [dict](Interpreter& interpreter,
                                                     const CallArguments& arguments) {
    if (arguments.positional.empty() || arguments.positional.size() > 2 ||
        !arguments.keywords.empty())
      interpreter.refuse(ReasonCode::unsupported_argument, "dict.get");
    const Value& key = arguments.positional[0];
    const Truth truth{
        .known = std::nullopt, .flag = has_item(interpreter, *dict, key), .example = {}};
    return choose(
        interpreter, truth, -1, [&] { return dict_item(interpreter, *dict, key, nullptr, -1); },
        [&] {
          return arguments.positional.size() == 2 ? arguments.positional[1] : interpreter.none();
        });
  });
}

/// One way in which objects of several classes answer for an attribute.
struct Answer {
  Classes classes;
  PyObject* descriptor = nullptr;  // of the class; null: only the object's dictionary counts
  bool is_slot = false;
};

class Attributes {
 public:
  Attributes(Interpreter& interpreter, const std::shared_ptr<RuntimeObject>& object,
             const std::string& name, int fact)
      : interpreter_(interpreter), object_(object), name_(name), fact_(fact) {
    const speculate::NodeFact* node = interpreter.fact(fact);
    if (node != nullptr && node->value.level() != ValueFact::Level::nothing)
      seen_ = std::make_shared<ValueFact>(node->value);
  }

  Value run() {
    Classes having;
    auto [classes, is_certain] = classes_here(interpreter_, *object_);
    check_unchanged(interpreter_, classes);
    if (name_ == "get" && are_dicts(classes)) return dict_get(object_);
    for (const Object& each : classes)
      if (add_answer(each)) having.push_back(each);
    if (answers_.empty()) {
      if (!classes.empty()) return nullptr;
      expect(interpreter_, *object_, classes, fact_);
    }
    if (!is_certain || having.size() != classes.size())
      expect(interpreter_, *object_, having, fact_);
    if (seen_ == nullptr) {
      seen_ = std::make_shared<ValueFact>();
      for (const Object& each : having)
        Sample(as_type(each), name_, *seen_).look(interpreter_.call());
    }
    return from(0);
  }

 private:
  /// Whether objects of the class have the attribute.
  bool add_answer(const Object& type) {
    const bool is_heap_type = (as_type(type)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
    if (!is_heap_type) return false;  // what a builtin has, such as None, is another subject
    PyObject* descriptor = class_descriptor(interpreter_, as_type(type), name_);
    if (descriptor == nullptr && as_type(type)->tp_dictoffset == 0) return false;
    bool is_slot = descriptor != nullptr && Py_TYPE(descriptor) == &PyMemberDescr_Type;
    for (Answer& each : answers_) {
      bool same = each.is_slot == is_slot && (is_slot || each.descriptor == descriptor);
      if (!same) continue;
      each.classes.push_back(type);
      return true;
    }
    answers_.push_back({{type}, descriptor, is_slot});
    return true;
  }

  /// The value for objects of the classes of the answers from `index` on.
  Value from(size_t index) {
    const Answer& answer = answers_[index];
    if (index + 1 == answers_.size()) return value_of(answer);
    // Methods of several classes become one that asks when it is called.
    if (is_method(answer)) return chosen_method(index);
    Truth truth{.known = std::nullopt, .flag = flag_of(answer), .example = {}};
    return choose(
        interpreter_, truth, fact_, [&] { return value_of(answer); },
        [&] { return from(index + 1); });
  }

  graph::Value* flag_of(const Answer& answer) {
    graph::Value* flag = any_flag(interpreter_, *object_, answer.classes);
    Interpreter::ClassTest test;
    test.object = object_->value;
    test.yes = answer.classes;
    auto [classes, is_certain] = classes_here(interpreter_, *object_);
    for (const Object& each : classes)
      if (!has(answer.classes, as_type(each))) test.no.push_back(each);
    interpreter_.class_tests[flag] = std::move(test);
    return flag;
  }

  static bool is_method(const Answer& answer) {
    return answer.descriptor != nullptr && PyFunction_Check(answer.descriptor);
  }

  Value chosen_method(size_t index) {
    auto self = std::make_shared<Attributes>(*this);
    return std::make_shared<Native>(
        name_, [self, index](Interpreter& inner, const CallArguments& arguments) {
          return self->call_from(inner, index, arguments);
        });
  }

  Value call_from(Interpreter& interpreter, size_t index, const CallArguments& arguments) {
    const Answer& answer = answers_[index];
    auto first = [&] { return call(interpreter, value_of(answer), arguments); };
    if (index + 1 == answers_.size()) return first();
    Truth truth{.known = std::nullopt, .flag = flag_of(answer), .example = {}};
    return choose(interpreter, truth, fact_, first,
                  [&] { return call_from(interpreter, index + 1, arguments); });
  }

  Value value_of(const Answer& answer) {
    if (answer.descriptor == nullptr || answer.is_slot) return read(answer.is_slot);
    PyTypeObject* kind = Py_TYPE(answer.descriptor);
    const PyTypeObject* type = as_type(answer.classes.front());
    Value bound;
    auto of_class = [&] {
      return bound_class_attribute(interpreter_, object_, as_type(answer.classes.front()), name_);
    };
    if (kind->tp_descr_set != nullptr || type->tp_dictoffset == 0) return of_class();
    // The object's own dictionary comes first.
    graph::Value* own =
        op::object_has_attribute(interpreter_.builder(), {object_->value}, {{"name", name_}});
    if (kind->tp_descr_get != nullptr) {
      interpreter_.guard_kinds(op::scalar_not(interpreter_.builder(), {own}), fact_);
      return of_class();
    }
    Truth truth{.known = std::nullopt, .flag = own, .example = {}};
    return choose(interpreter_, truth, fact_, [&] { return read(false); }, of_class);
  }

  Value read(bool is_slot) {
    graph::Attributes attributes = may_fail(interpreter_, fact_);
    attributes.set("name", name_);
    if (is_slot) attributes.set("slot", true);
    graph::Node* node = interpreter_.builder().append_unchecked(
        op::object_attribute, std::vector<graph::Value*>{object_->value}, std::move(attributes),
        {type_seen(seen_.get())});
    Value value = read_value(interpreter_, node->output(), seen_.get());
    if (auto* part = as<RuntimeObject>(value)) part->example = example_part();
    return value;
  }

  /// The attribute of the object at hand, if its own dictionary holds it.
  Object example_part() const {
    Object dictionary = object_->example ? own_dictionary(object_->example.get()) : Object();
    return dictionary ? Object::borrow(PyDict_GetItemString(dictionary.get(), name_.c_str()))
                      : Object();
  }

  Interpreter& interpreter_;
  std::shared_ptr<RuntimeObject> object_;
  std::string name_;
  int fact_;
  std::shared_ptr<ValueFact> seen_;
  std::vector<Answer> answers_;
};

}  // namespace

Value run_time_attribute(Interpreter& interpreter, const std::shared_ptr<RuntimeObject>& object,
                         const std::string& name, int fact) {
  if (name == "__class__") return type_of(interpreter, object);
  if (name.starts_with("__"))
    interpreter.refuse(ReasonCode::expression, cat("the attribute ", name, " of an object"));
  const auto at_entry = [&] { return Attributes(interpreter, object, name, fact).run(); };
  Value written = interpreter.met_writes().read(*object, name, fact, at_entry);
  return written != nullptr ? written : at_entry();
}

graph::Value* run_time_has_attribute(Interpreter& interpreter, const RuntimeObject& object,
                                     const std::string& name) {
  for (const Object& each : expect_classes(interpreter, object, -1)) {
    const bool is_plain = (as_type(each)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 &&
                          as_type(each)->tp_dictoffset != 0 && !name.starts_with("__");
    if (!is_plain || class_descriptor(interpreter, as_type(each), name) != nullptr)
      interpreter.refuse(ReasonCode::expression,
                         cat("whether a ", as_type(each)->tp_name, " has the attribute ", name));
  }
  graph::Value* own =
      op::object_has_attribute(interpreter.builder(), {object.value}, {{"name", name}});
  graph::Value* written = interpreter.met_writes().has(object, name);
  return written == nullptr ? own : op::scalar_or(interpreter.builder(), {own, written});
}

void write_run_time_attribute(Interpreter& interpreter,
                              const std::shared_ptr<RuntimeObject>& object, const std::string& name,
                              const Value& value) {
  if (!interpreter.met_writes().expects(name)) throw Generalise{.written = name};
  const Classes classes = expect_classes(interpreter, *object, -1);
  check_unchanged(interpreter, classes);
  interpreter.met_writes().write(object, classes, name, value);
}

// --- lists and tuples ---------------------------------------------------------------------------

namespace {

/// The outcome of a test of an object. What the call at hand hands over is followed: so it is known
/// that a recursion recurs at least once, which decides about what has a gradient for certain.
Value outcome(Interpreter& interpreter, const RuntimeObject& object, graph::Value* flag,
              bool (*holds)(PyObject*)) {
  if (!object.example) return interpreter.number(flag);
  const Object example = Object::borrow(holds(object.example.get()) ? Py_True : Py_False);
  return interpreter.boolean(interpreter.follow(flag, example, -1));
}

bool is_list_or_tuple(PyTypeObject* type) { return type == &PyList_Type || type == &PyTuple_Type; }

void expect_sequence(Interpreter& interpreter, const RuntimeObject& object, int fact) {
  const Classes classes = expect_classes(interpreter, object, fact);
  check_unchanged(interpreter, classes);
  for (const Object& each : classes)
    if (!is_list_or_tuple(as_type(each)))
      interpreter.refuse(ReasonCode::expression, cat("the elements of a ", as_type(each)->tp_name));
}

graph::Value* read_length(Interpreter& interpreter, const RuntimeObject& object, int fact) {
  expect_sequence(interpreter, object, fact);
  graph::Node* node = interpreter.builder().append_unchecked(
      op::object_length, std::vector<graph::Value*>{object.value}, may_fail(interpreter, fact),
      {Type::i64()});
  return node->output();
}

/// Whether it is longer than 0: followed for what the call at hand hands over.
Value has_elements(Interpreter& interpreter, const RuntimeObject& object, graph::Value* length) {
  graph::Value* flag =
      interpreter.graph_value(compare(interpreter, syntax::CompareOperator::Gt,
                                      interpreter.number(length), interpreter.integer(0)));
  return outcome(interpreter, object, flag, [](PyObject* example) {
    return is_list_or_tuple(Py_TYPE(example)) && PySequence_Fast_GET_SIZE(example) > 0;
  });
}

}  // namespace

Value run_time_length(Interpreter& interpreter, const RuntimeObject& object, int fact) {
  Object example;
  if (object.example && is_list_or_tuple(Py_TYPE(object.example.get())))
    example = interpreter.must(PyLong_FromSsize_t(PySequence_Fast_GET_SIZE(object.example.get())));
  return interpreter.number(read_length(interpreter, object, fact), std::move(example));
}

Value run_time_item(Interpreter& interpreter, const RuntimeObject& object, const Value& position,
                    const ValueFact* seen, int fact) {
  const Classes classes = expect_classes(interpreter, object, fact);
  if (are_dicts(classes)) {
    check_unchanged(interpreter, classes);
    return dict_item(interpreter, object, position, seen, fact);
  }
  expect_sequence(interpreter, object, fact);
  if (!is_number(position))
    interpreter.refuse(ReasonCode::expression, "an index of a list met at run time");
  graph::Value* at = interpreter.graph_value(position);
  if (at->type.kind != Type::Kind::i64)
    interpreter.refuse(ReasonCode::expression, "an index of a list met at run time");
  graph::Node* node = interpreter.builder().append_unchecked(
      op::object_item, std::vector<graph::Value*>{object.value, at}, may_fail(interpreter, fact),
      {type_seen(seen)});
  return read_value(interpreter, node->output(), seen);
}

namespace {

/// Whether objects of the class hold data and do nothing: they are no modules and no functions.
bool is_class_of_data(const Object& object) {
  const PyTypeObject* type = as_type(object);
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && type->tp_call == nullptr &&
         !PyType_IsSubtype(as_type(object), tensor_class());
}

/// How many elements of a list one looks at.
constexpr Py_ssize_t kMostLookedAt = 1000;

/// Whether the elements, as far as one looks, are tuples of the same parts: tensors of one form and
/// numbers of one class, as the samples of a data set.
bool are_tuples_of_one_form(PyObject* list) {
  std::vector<ValueFact> parts;
  for (Py_ssize_t i = 0; i < std::min(kMostLookedAt, PySequence_Fast_GET_SIZE(list)); ++i) {
    PyObject* const element = PySequence_Fast_GET_ITEM(list, i);
    if (!PyTuple_CheckExact(element)) return false;
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(element));
    if (i == 0) parts.resize(count);
    if (count != parts.size()) return false;
    for (size_t k = 0; k < count; ++k)
      parts[k].see(PyTuple_GET_ITEM(element, static_cast<Py_ssize_t>(k)));
  }
  return std::ranges::none_of(
      parts, [](const ValueFact& part) { return type_seen(&part) == Type::object("object"); });
}

/// Of a list of so many numbers each is an input of the graph.
constexpr Py_ssize_t kMostNumbers = 64;

/// Whether the run can take whichever element comes.
bool are_interchangeable(PyObject* list, const ValueFact& seen) {
  if (type_seen(&seen).is_tensor()) return true;
  if (type_seen(&seen).is_number()) return PySequence_Fast_GET_SIZE(list) > kMostNumbers;
  if (seen.classes().empty()) return false;
  if (seen.classes().front().is(reinterpret_cast<PyObject*>(&PyTuple_Type)))
    return are_tuples_of_one_form(list);
  return std::ranges::all_of(seen.classes(), is_class_of_data);
}

/// The element that the call at hand takes; null if that is not known.
Object element_at_hand(PyObject* list, const Number& position) {
  if (!position.example || !PyLong_Check(position.example.get())) return {};
  const Py_ssize_t index = PyLong_AsSsize_t(position.example.get());
  PyErr_Clear();
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
  if (index < -size || index >= size) return {};
  return Object::borrow(PySequence_Fast_GET_ITEM(list, index < 0 ? index + size : index));
}

}  // namespace

namespace {

/// The list or tuple of before the call as an object of the run, which reads elements of it
/// wherever they stand; null if they can't take each other's place. `seen`: what elements were.
std::shared_ptr<RuntimeObject> chosen_from(Interpreter& interpreter, const Known& list,
                                           const ValueFact& seen) {
  constexpr Py_ssize_t kMostKnown = 8;  // of a list whose elements are a graph each
  if (list.source == nullptr || !is_list_or_tuple(Py_TYPE(list.object.get())) ||
      PySequence_Fast_GET_SIZE(list.object.get()) <= kMostKnown ||
      interpreter.heap.list(list.object.get(), list.source) != nullptr ||
      interpreter.followed(entry_list_test(list.source)) != nullptr ||
      !are_interchangeable(list.object.get(), seen))
    return nullptr;
  Value& all = interpreter.chosen_from[list.source];
  if (all == nullptr) all = entry_object(interpreter, list.object.get(), list.source);
  return shared_as<RuntimeObject>(all);
}

Value chosen_item(Interpreter& interpreter, const Known& list, const RuntimeObject& all,
                  const Value& position, const ValueFact& seen, int fact) {
  Value item = run_time_item(interpreter, all, position, &seen, fact);
  const auto* number = as<Number>(position);
  if (auto* object = as<RuntimeObject>(item); object != nullptr && number != nullptr)
    object->example = element_at_hand(list.object.get(), *number);
  return item;
}

bool is_int_of_the_run(const Value& value) {
  const auto* number = as<Number>(value);
  return number != nullptr && number->type == Type::Kind::i64;
}

}  // namespace

Value varying_item(Interpreter& interpreter, const Known& list, const Value& position, int fact) {
  const speculate::NodeFact* node = interpreter.fact(fact);
  if (!is_int_of_the_run(position) || node == nullptr) return nullptr;
  const auto all = chosen_from(interpreter, list, node->value);
  if (all == nullptr) return nullptr;
  return chosen_item(interpreter, list, *all, position, node->value, fact);
}

namespace {

/// What the elements of the list are, as far as one looks.
ValueFact elements_seen(PyObject* list) {
  ValueFact seen;
  for (Py_ssize_t i = 0; i < std::min(kMostLookedAt, PySequence_Fast_GET_SIZE(list)); ++i)
    seen.see(PySequence_Fast_GET_ITEM(list, i));
  return seen;
}

}  // namespace

Value varying_part(Interpreter& interpreter, const Known& list, const Value& key, int fact) {
  constexpr size_t kMost = 256;  // each is read by itself
  const auto* slice = as<SliceValue>(key);
  if (slice == nullptr || !is_none(slice->step) ||
      (!is_int_of_the_run(slice->start) && !is_int_of_the_run(slice->stop)) ||
      list.source == nullptr || !is_list_or_tuple(Py_TYPE(list.object.get())))
    return nullptr;
  const ValueFact seen = elements_seen(list.object.get());
  const auto all = chosen_from(interpreter, list, seen);
  if (all == nullptr) return nullptr;
  const auto positions =
      slice_positions(interpreter, *slice, run_time_length(interpreter, *all, fact));
  if (!positions || positions->size() > kMost)
    interpreter.refuse(ReasonCode::dynamic_value, "the number of elements of a slice");
  auto part = std::make_shared<Sequence>(PyList_CheckExact(list.object.get()));
  for (const Value& position : *positions)
    part->elements.push_back(chosen_item(interpreter, list, *all, position, seen, fact));
  return part;
}

std::function<Value(const Value& position)> varying_elements(Interpreter& interpreter,
                                                             const Known& list) {
  if (list.source == nullptr || !is_list_or_tuple(Py_TYPE(list.object.get()))) return nullptr;
  const ValueFact seen = elements_seen(list.object.get());
  const auto all = chosen_from(interpreter, list, seen);
  if (all == nullptr) return nullptr;
  interpreter.assume(Assumption::Kind::length, list.source, {},
                     PySequence_Fast_GET_SIZE(list.object.get()));
  return
      [&interpreter, list = list.object, source = list.source, all, seen](const Value& position) {
        return chosen_item(interpreter, Known(list, source), *all, position, seen, -1);
      };
}

namespace {

/// An element that the run might have chosen in place of the object; null if it chose none.
Object another_choice(Interpreter& interpreter, const RuntimeObject& object) {
  const graph::Node* read = object.value->definition;
  if (read == nullptr || read->op != &op::object_item) return {};
  for (const auto& [source, list] : interpreter.chosen_from) {
    const auto& all = *as<RuntimeObject>(list);
    if (all.value == read->inputs[0] && PySequence_Fast_GET_SIZE(all.example.get()) > 0)
      return Object::borrow(PySequence_Fast_GET_ITEM(all.example.get(), 0));
  }
  return {};
}

}  // namespace

std::vector<Value> run_time_elements(Interpreter& interpreter, const RuntimeObject& object,
                                     size_t count) {
  const Value length = run_time_length(interpreter, object, -1);
  const auto size = static_cast<int64_t>(count);
  const Value fits =
      compare(interpreter, syntax::CompareOperator::Eq, length, interpreter.integer(size));
  if (as<Known>(fits) == nullptr) interpreter.guard_kinds(interpreter.graph_value(fits), -1);
  const Object like = object.example ? object.example : another_choice(interpreter, object);
  PyObject* const example = like.get();
  const bool has_example = example != nullptr && is_list_or_tuple(Py_TYPE(example)) &&
                           PySequence_Fast_GET_SIZE(example) == size;
  std::vector<Value> elements;
  for (int64_t i = 0; i < size; ++i) {
    ValueFact seen;
    if (has_example) seen.see(PySequence_Fast_GET_ITEM(example, i));
    for (const Object& each : expect_classes(interpreter, object, -1))
      Sample(as_type(each), i, size, seen).look(interpreter.call());
    elements.push_back(run_time_item(interpreter, object, interpreter.integer(i), &seen, -1));
  }
  return elements;
}

Value run_time_contains(Interpreter& interpreter, const RuntimeObject& object, const Value& key) {
  const Classes classes = expect_classes(interpreter, object, -1);
  check_unchanged(interpreter, classes);
  if (!are_dicts(classes))
    interpreter.refuse(ReasonCode::expression, "whether something is in an object met at run time");
  return interpreter.number(has_item(interpreter, object, key));
}

Value run_time_number(Interpreter& interpreter, const Value& value) {
  const auto* object = as<RuntimeObject>(value);
  if (object == nullptr) return value;
  auto [classes, is_certain] = classes_here(interpreter, *object);
  if (!is_certain || classes.size() != 1) return value;
  const Type type = number_type(as_type(classes.front()));
  if (!type.is_number()) return value;
  return interpreter.number(interpreter.builder()
                                .append_unchecked(op::object_value,
                                                  std::vector<graph::Value*>{object->value},
                                                  may_fail(interpreter, -1), {type})
                                ->output());
}

// --- identity and truth -------------------------------------------------------------------------

namespace {

/// Whether the object is None: decides the class either way, so nothing else has to be known.
Value is_none(Interpreter& interpreter, const RuntimeObject& object) {
  auto [classes, is_certain] = classes_here(interpreter, object);
  const auto none = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(Py_None)));
  if (is_certain && !has(classes, as_type(none))) return interpreter.boolean(false);
  if (is_certain && classes.size() == 1) return interpreter.boolean(true);
  Interpreter::ClassTest test;
  test.object = object.value;
  test.yes = {none};
  for (const Object& each : classes)
    if (!each.is(none.get())) test.no.push_back(each);
  test.no_is_certain = is_certain;
  graph::Value* flag = class_flag(interpreter, object, as_type(none));
  interpreter.class_tests[flag] = std::move(test);
  return outcome(interpreter, object, flag, [](PyObject* example) { return example == Py_None; });
}

}  // namespace

Value run_time_identity(Interpreter& interpreter, const Value& left, const Value& right) {
  if (left == right) return interpreter.boolean(true);
  const auto *a = as<RuntimeObject>(left), *b = as<RuntimeObject>(right);
  if (a != nullptr && is_none(right)) return is_none(interpreter, *a);
  if (b != nullptr && is_none(left)) return is_none(interpreter, *b);
  graph::Value* first = object_value(interpreter, left);
  graph::Value* second = object_value(interpreter, right);
  if (first == nullptr || second == nullptr)
    interpreter.refuse(ReasonCode::expression, "the identity of such objects");
  return interpreter.number(op::object_is(interpreter.builder(), {first, second}));
}

Value run_time_equality(Interpreter& interpreter, const RuntimeObject& object,
                        const Value& constant) {
  const auto* known = as<Known>(constant);
  if (known == nullptr) return nullptr;
  PyTypeObject* type = Py_TYPE(known->object.get());
  if (type != &PyUnicode_Type && type != &PyLong_Type) return nullptr;
  // An int equals floats and flags too, a text only texts.
  for (const Object& each : expect_classes(interpreter, object, -1))
    if (as_type(each) != &PyUnicode_Type && as_type(each) != &PyLong_Type &&
        as_type(each) != Py_TYPE(Py_None))
      return nullptr;
  return interpreter.number(
      op::object_equals_constant(interpreter.builder(), {object.value},
                                 {{"object", number_of(interpreter, known->object.get())}}));
}

Value run_time_truth(Interpreter& interpreter, const RuntimeObject& object) {
  auto [classes, is_certain] = classes_here(interpreter, object);
  const auto is_sequence = [](const Object& type) { return is_list_or_tuple(as_type(type)); };
  if (!classes.empty() && std::all_of(classes.begin(), classes.end(), is_sequence))
    return has_elements(interpreter, object, read_length(interpreter, object, -1));
  for (const Object& each : classes) {
    const PyTypeObject* type = as_type(each);
    bool decides = (type->tp_as_number != nullptr && type->tp_as_number->nb_bool != nullptr) ||
                   (type->tp_as_mapping != nullptr && type->tp_as_mapping->mp_length != nullptr) ||
                   (type->tp_as_sequence != nullptr && type->tp_as_sequence->sq_length != nullptr);
    if (decides && !each.is(reinterpret_cast<PyObject*>(Py_TYPE(Py_None))))
      interpreter.refuse(ReasonCode::dynamic_value, cat("the truth of a ", type->tp_name));
  }
  expect_classes(interpreter, object, -1);
  Value none = is_none(interpreter, object);
  if (const auto* known = as<Known>(none)) return interpreter.boolean(known->object.is(Py_False));
  return interpreter.number(interpreter.negated_flag(interpreter.graph_value(none)));
}

// --- as values of the graph ---------------------------------------------------------------------

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

Classes possible_classes(Interpreter& interpreter, const Value& value) {
  if (const auto* object = as<RuntimeObject>(value))
    return classes_here(interpreter, *object).first;
  PyTypeObject* type = class_of(value);
  if (type == nullptr) return {};
  return {Object::borrow(reinterpret_cast<PyObject*>(type))};
}

}  // namespace janus::frontend
