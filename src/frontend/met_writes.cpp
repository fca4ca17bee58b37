#include "frontend/met_writes.h"

#include <structmember.h>

#include <algorithm>

#include "frontend/attributes.h"
#include "frontend/autograd.h"
#include "frontend/branches.h"
#include "frontend/containers.h"
#include "frontend/expressions.h"
#include "frontend/operators.h"
#include "frontend/rolled.h"
#include "frontend/run_time.h"
#include "frontend/tensor.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;
using syntax::CompareOperator;

MetWrites::MetWrites(Interpreter& interpreter, const std::vector<std::string>& names)
    : interpreter_(interpreter) {
  for (const std::string& name : names) logs_.push_back({.name = name});
}

const MetWrites::Log* MetWrites::find(const std::string& name) const {
  const auto log = std::ranges::find(logs_, name, &Log::name);
  return log == logs_.end() ? nullptr : &*log;
}

bool MetWrites::is_empty(const Log& log) {
  return log.writes->elements.rolled() == nullptr && log.writes->elements.empty();
}

// --- writes -------------------------------------------------------------------------------------

/// Whether objects of the class take the attribute by Python's general rules, and without a call of
/// the program's code. Both are assumed to stay so.
void MetWrites::check_class(const Object& type, const std::string& name) const {
  auto* of = reinterpret_cast<PyTypeObject*>(type.get());
  PyObject* const setter = class_descriptor(interpreter_, of, "__setattr__");
  const bool is_general = setter == PyDict_GetItemString(PyBaseObject_Type.tp_dict, "__setattr__");
  PyObject* const descriptor = class_descriptor(interpreter_, of, name);
  bool takes = of->tp_dictoffset != 0;
  if (descriptor != nullptr && Py_TYPE(descriptor)->tp_descr_set != nullptr) {
    const bool is_slot = Py_TYPE(descriptor) == &PyMemberDescr_Type;
    const auto* member =
        is_slot ? reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member : nullptr;
    takes = is_slot && member->type == T_OBJECT_EX && (member->flags & READONLY) == 0;
  }
  if (!is_general || !takes || of->tp_setattro != PyObject_GenericSetAttr)
    interpreter_.refuse(ReasonCode::heap_write, cat("the attribute ", name, " of a ", of->tp_name));
}

/// For each tensor of the value that eager's autograd tracks the number of its node's name.
void MetWrites::add_names(const Value& value, std::vector<Value>& numbers) {
  if (const auto* tuple = as<Sequence>(value); tuple != nullptr && !tuple->is_list)
    for (const Value& part : tuple->elements.known()) add_names(part, numbers);
  const auto* tensor = as<Tensor>(value);
  if (tensor == nullptr || !tensor->requires_grad) return;
  const std::string name = grad_fn_name(*tensor);
  const auto place = std::ranges::find(grad_fn_names_, name);
  numbers.push_back(interpreter_.integer(place - grad_fn_names_.begin()));
  if (place == grad_fn_names_.end()) grad_fn_names_.push_back(name);
}

void MetWrites::write(const std::shared_ptr<RuntimeObject>& object, const Classes& classes,
                      const std::string& name, const Value& value) {
  const auto log = std::ranges::find(logs_, name, &Log::name);
  TORCHJANUS_CHECK(log != logs_.end(), "a write that was not announced");
  for (const Object& each : classes) check_class(each, name);
  log->classes = united(log->classes, classes);
  std::vector<Value> parts = {object, value};
  add_names(value, parts);
  append(interpreter_, *log->writes, make_tuple(std::move(parts)));
  if (logs_.size() > 1) append(interpreter_, *order_, interpreter_.integer(log - logs_.begin()));
  interpreter_.mark(speculate::LineMark::Kind::effect);
}

// --- reads --------------------------------------------------------------------------------------

/// What was written last, if that was to this very value of the graph.
Value MetWrites::last_write(const RuntimeObject& object, const Log& log) const {
  const Rolled* all = log.writes->elements.rolled().get();
  const Value last =
      all != nullptr ? last_pushed(interpreter_, *all) : log.writes->elements.known().back();
  if (last == nullptr) return nullptr;
  const std::vector<Value>& parts = as<Sequence>(last)->elements.known();
  return as<RuntimeObject>(parts[0])->value == object.value ? parts[1] : nullptr;
}

std::shared_ptr<const Rolled> MetWrites::rolled_up(const Log& log, int fact) const {
  if (log.writes->elements.rolled() != nullptr) return log.writes->elements.rolled();
  const std::vector<Value>& writes = log.writes->elements.known();
  std::string why;
  const auto form = common_form(interpreter_, writes, why);
  if (!form)
    interpreter_.refuse(ReasonCode::heap_write, cat("the attribute ", log.name, ": ", why));
  return roll(interpreter_, {interpreter_.frame().code->facts_key, fact}, *form, writes, false);
}

Value MetWrites::position_of(const RuntimeObject& object, const Rolled& writes) const {
  return interpreter_.number(
      op::list_find_object(interpreter_.builder(), {writes.lists.front(), object.value}));
}

graph::Value* MetWrites::has(const RuntimeObject& object, const std::string& name) {
  const Log* log = find(name);
  if (log == nullptr || is_empty(*log)) return nullptr;
  const Value position = position_of(object, *rolled_up(*log, -1));
  return interpreter_.graph_value(
      compare(interpreter_, CompareOperator::NotEq, position, interpreter_.integer(0)));
}

Value MetWrites::read(const RuntimeObject& object, const std::string& name, int fact,
                      const std::function<Value()>& at_entry) {
  const Log* log = find(name);
  if (log == nullptr || is_empty(*log)) return nullptr;
  if (Value last = last_write(object, *log)) return last;
  const std::shared_ptr<const Rolled> writes = rolled_up(*log, fact);
  const Value position = position_of(object, *writes);
  const Truth found = truth_of(interpreter_, compare(interpreter_, CompareOperator::NotEq, position,
                                                     interpreter_.integer(0)));
  const auto written = [&] {
    return as<Sequence>(element_at(interpreter_, *writes, position))->elements.known()[1];
  };
  const speculate::NodeFact* seen = interpreter_.fact(fact);
  const auto none = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(Py_None)));
  const bool may_be_none =
      seen != nullptr && std::ranges::any_of(seen->value.classes(), [&](const Object& type) {
        return type.is(none.get());
      });
  // What other calls left may have a gradient, which is not for this run to know.
  if (is_tracked(writes->form.parts[1]) && !may_be_none) {
    interpreter_.guard_kinds(found.flag, fact);
    return written();
  }
  return choose(interpreter_, found, fact, written, [&]() -> Value {
    Value before = at_entry();
    if (as<RuntimeObject>(before) == nullptr || !may_be_none) return before;
    const Truth is_none =
        truth_of(interpreter_, run_time_identity(interpreter_, before, interpreter_.none()));
    if (!is_none.known) interpreter_.guard_kinds(is_none.flag, fact);
    return is_none.known.value_or(true) ? interpreter_.none() : before;
  });
}

void MetWrites::check_unwritten(PyTypeObject* type, const std::string& name) const {
  for (const Log& log : logs_) {
    if ((log.name != name && name != "__dict__") || is_empty(log)) continue;
    for (const Object& each : log.classes)
      if (each.is(reinterpret_cast<PyObject*>(type)))
        interpreter_.refuse(ReasonCode::heap_write, cat("the attribute ", name,
                                                        " of an object that may be one met at run "
                                                        "time, after such were written"));
  }
}

// --- the end of the run -------------------------------------------------------------------------

std::vector<Value> MetWrites::lists() const {
  std::vector<Value> all;
  for (const Log& log : logs_) all.push_back(log.writes);
  if (logs_.size() > 1) all.push_back(order_);
  return all;
}

Value MetWrites::written() const {
  return std::ranges::all_of(logs_, is_empty) ? nullptr : make_tuple(lists());
}

speculate::HeapWrite MetWrites::commit() const {
  speculate::HeapWrite write;
  write.kind = speculate::HeapWrite::Kind::met;
  write.owner = interpreter_.sources().root(Source::Kind::constant, Object::borrow(Py_None));
  write.key = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(logs_.size())));
  for (size_t i = 0; i < logs_.size(); ++i)
    PyTuple_SET_ITEM(write.key.get(), static_cast<Py_ssize_t>(i),
                     PyUnicode_InternFromString(logs_[i].name.c_str()));
  return write;
}

}  // namespace janus::frontend
