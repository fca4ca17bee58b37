#include "frontend/control/run_time_reads.h"

#include <structmember.h>

#include <algorithm>
#include <set>

#include "base/policy.h"
#include "frontend/core/heap.h"
#include "frontend/core/heap_places.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/run_time_objects.h"
#include "frontend/core/torch_objects.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/class_sets.h"
#include "frontend/values/constants.h"
#include "ops/list.h"
#include "python/integer.h"
#include "python/version.h"

namespace janus::frontend {

using graph::Type;
using python::Object;
using speculate::ValueFact;

Type number_type(PyTypeObject* type) {
  if (type == &PyLong_Type) return Type::i64();
  if (type == &PyFloat_Type) return Type::f64();
  return type == &PyBool_Type ? Type::boolean() : Type::object("object");
}

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

void check_unchanged(Interpreter& interpreter, const Classes& classes) {
  for (PyObject* identity : interpreter.heap.table_order()) {
    const Heap::Table* table = interpreter.heap.table(identity);
    PyObject* owner = table->target.object.get();
    if (owner != nullptr && !table->changes.empty() && has_class(classes, Py_TYPE(owner)))
      interpreter.refuse(ReasonCode::heap_write, cat("an object of class ", Py_TYPE(owner)->tp_name,
                                                     ", before one is read that may be the same"));
  }
  if (has_class(classes, &PyList_Type) && interpreter.heap.has_changed_list())
    interpreter.refuse(ReasonCode::heap_write, "a list, before one is read that may be the same");
}

namespace {

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
    while (!open_.empty() && found_.size() < policy::kMostObjectsSearched) {
      PyObject* object = open_.back();
      open_.pop_back();
      look_into(object);
    }
  }

 private:
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
      PyObject* dict =
          python::class_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(classes, i)));
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

/// The attributes of a node that looks up the key in a dict.
graph::Attributes with_key(const Frames& frames, const Value& key, graph::Attributes attributes) {
  PyObject* const known = known_object(key);
  const std::optional<int64_t> number =
      known != nullptr && PyLong_CheckExact(known) ? python::int64_of(known) : std::nullopt;
  if (known != nullptr && PyUnicode_CheckExact(known))
    attributes.set("key", text_of(known));
  else if (number)
    attributes.set("key", *number);
  else
    frames.refuse(ReasonCode::expression, "a key of a dict met at run time");
  return attributes;
}

}  // namespace

void look_at_samples(PyTypeObject* type, const std::string& name, ValueFact& seen,
                     const speculate::Call& call) {
  Sample(type, name, seen).look(call);
}

void look_at_samples(PyTypeObject* type, Py_ssize_t index, Py_ssize_t count, ValueFact& seen,
                     const speculate::Call& call) {
  Sample(type, index, count, seen).look(call);
}

bool are_dicts(const Classes& classes) {
  return !classes.empty() && std::ranges::all_of(classes, [](const Object& each) {
    return as_type(each) == &PyDict_Type;
  });
}

Value dict_item(Interpreter& interpreter, const RuntimeObject& dict, const Value& key,
                const ValueFact* seen, int fact) {
  graph::Attributes attributes = with_key(interpreter, key, may_fail(interpreter, fact));
  ValueFact sampled;
  if (seen == nullptr)
    look_at_samples(&PyDict_Type, text_of(known_object(key)), sampled, interpreter.call());
  if (seen == nullptr) seen = &sampled;
  const graph::Node* node = interpreter.builder().append_unchecked(
      op::object_entry, std::vector<graph::Value*>{dict.value}, std::move(attributes),
      {type_seen(seen)});
  return read_value(interpreter, node->output(), seen);
}

graph::Value* has_item(Interpreter& interpreter, const RuntimeObject& dict, const Value& key) {
  return op::object_has_entry(interpreter.builder(), {dict.value}, with_key(interpreter, key, {}));
}

}  // namespace janus::frontend
