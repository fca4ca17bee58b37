// The classes that the profile saw are grouped by how they answer; a branch of the graph asks for
// the class.
#include "frontend/objects/run_time_attributes.h"

#include "frontend/control/branches.h"
#include "frontend/control/run_time_reads.h"
#include "frontend/core/class_of.h"
#include "frontend/core/heap_places.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "frontend/core/recursion_state.h"
#include "frontend/core/run_time_objects.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/named_attribute.h"
#include "frontend/values/class_sets.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;
using speculate::ValueFact;

namespace {

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
      guard_classes(interpreter_, *object_, classes, fact_);
    }
    if (!is_certain || having.size() != classes.size())
      guard_classes(interpreter_, *object_, having, fact_);
    if (seen_ == nullptr) {
      seen_ = std::make_shared<ValueFact>();
      for (const Object& each : having)
        look_at_samples(as_type(each), name_, *seen_, interpreter_.call());
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
    ClassTest test;
    test.object = object_->value;
    test.yes = answer.classes;
    auto [classes, is_certain] = classes_here(interpreter_, *object_);
    for (const Object& each : classes)
      if (!has_class(answer.classes, as_type(each))) test.no.push_back(each);
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
  Value written = interpreter.runtime_store_log().read(*object, name, fact, at_entry);
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
  graph::Value* written = interpreter.runtime_store_log().has(object, name);
  return written == nullptr ? own : op::scalar_or(interpreter.builder(), {own, written});
}

void write_run_time_attribute(Interpreter& interpreter,
                              const std::shared_ptr<RuntimeObject>& object, const std::string& name,
                              const Value& value) {
  if (!interpreter.runtime_store_log().expects(name)) throw Generalise{.written = name};
  const Classes classes = expect_classes(interpreter, *object, -1);
  check_unchanged(interpreter, classes);
  interpreter.runtime_store_log().write(object, classes, name, value);
}

}  // namespace janus::frontend
