#include "frontend/recursion/runtime_store_log.h"

#include <structmember.h>

#include <algorithm>

#include "frontend/autograd/consumed_tape.h"
#include "frontend/control/branches.h"
#include "frontend/control/list_parts.h"
#include "frontend/control/run_time_items.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/operations.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/lengths.h"
#include "frontend/tensors/grad_fn_name.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/class_sets.h"
#include "frontend/values/make.h"
#include "frontend/values/symbolic_list.h"
#include "frontend/values/truth.h"
#include "ops/list.h"
#include "passes/reach/list_reach.h"
#include "python/version.h"
#include "speculate/test_number.h"

namespace janus::frontend {

using python::Object;
using syntax::CompareOperator;

RuntimeStoreLog::RuntimeStoreLog(Interpreter& interpreter, const std::vector<std::string>& names)
    : interpreter_(interpreter) {
  for (const std::string& name : names) logs_.push_back({.name = name});
}

const RuntimeStoreLog::Log* RuntimeStoreLog::find(const std::string& name) const {
  const auto log = std::ranges::find(logs_, name, &Log::name);
  return log == logs_.end() ? nullptr : &*log;
}

bool RuntimeStoreLog::is_log(const Sequence& list) const {
  return std::ranges::any_of(logs_, [&](const Log& log) { return log.writes.get() == &list; });
}

bool RuntimeStoreLog::is_empty(const Log& log) {
  return log.writes->elements.rolled() == nullptr && log.writes->elements.empty();
}

// --- writes -------------------------------------------------------------------------------------

/// Whether objects of the class take the attribute by Python's general rules, and without a call of
/// the program's code. Both are assumed to stay so.
void RuntimeStoreLog::check_class(const Object& type, const std::string& name) const {
  auto* of = reinterpret_cast<PyTypeObject*>(type.get());
  PyObject* const setter = class_descriptor(interpreter_, of, "__setattr__");
  const bool is_general =
      setter == PyDict_GetItemString(python::class_dict(&PyBaseObject_Type), "__setattr__");
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

/// Adds the number of its node's name for each tensor of the value that eager's autograd tracks.
void RuntimeStoreLog::add_names(const Value& value, std::vector<Value>& numbers) {
  if (const auto* tuple = as<Sequence>(value); tuple != nullptr && !tuple->is_list)
    for (const Value& part : tuple->elements.known()) add_names(part, numbers);
  const auto* tensor = as<Tensor>(value);
  if (tensor == nullptr || !tensor->requires_grad) return;
  const std::string name = grad_fn_name(*tensor);
  const auto place = std::ranges::find(grad_fn_names_, name);
  numbers.push_back(interpreter_.integer(place - grad_fn_names_.begin()));
  if (place == grad_fn_names_.end()) grad_fn_names_.push_back(name);
}

void RuntimeStoreLog::write(const std::shared_ptr<RuntimeObject>& object, const Classes& classes,
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

/// The value stored last, if it was stored to this very value of the graph.
Value RuntimeStoreLog::last_write(const RuntimeObject& object, const Log& log) const {
  const Rolled* all = log.writes->elements.rolled().get();
  const Value last =
      all != nullptr ? last_pushed(interpreter_, *all) : log.writes->elements.known().back();
  if (last == nullptr) return nullptr;
  const std::vector<Value>& parts = as<Sequence>(last)->elements.known();
  return as<RuntimeObject>(parts[0])->value == object.value ? parts[1] : nullptr;
}

std::shared_ptr<const Rolled> RuntimeStoreLog::rolled_up(const Log& log, int fact) const {
  if (log.writes->elements.rolled() != nullptr) return log.writes->elements.rolled();
  const std::vector<Value>& writes = log.writes->elements.known();
  std::string why;
  const auto form = common_form(interpreter_, writes, why);
  if (!form)
    interpreter_.refuse(ReasonCode::heap_write, cat("the attribute ", log.name, ": ", why));
  return roll(interpreter_, {interpreter_.frame().code->facts_key, fact}, *form, writes, false);
}

Value RuntimeStoreLog::position_of(const RuntimeObject& object, const Rolled& writes) const {
  return interpreter_.number(
      op::list_find_object(interpreter_.builder(), {writes.lists.front(), object.value}));
}

graph::Value* RuntimeStoreLog::has(const RuntimeObject& object, const std::string& name) {
  const Log* log = find(name);
  if (log == nullptr || is_empty(*log)) return nullptr;
  const Value position = position_of(object, *rolled_up(*log, -1));
  return interpreter_.graph_value(
      compare(interpreter_, CompareOperator::NotEq, position, interpreter_.integer(0)));
}

Value RuntimeStoreLog::read(const RuntimeObject& object, const std::string& name, int fact,
                            const std::function<Value()>& at_entry) {
  const Log* log = find(name);
  if (log == nullptr || is_empty(*log)) return nullptr;
  if (Value last = last_write(object, *log)) return last;
  const std::shared_ptr<const Rolled> writes = rolled_up(*log, fact);
  const Value position = position_of(object, *writes);
  const Truth found = truth_of(interpreter_, compare(interpreter_, CompareOperator::NotEq, position,
                                                     interpreter_.integer(0)));
  const auto written = [&] {
    note_read(*log, *writes, position);
    return as<Sequence>(element_at(interpreter_, *writes, position))->elements.known()[1];
  };
  const speculate::NodeFact* seen = interpreter_.fact(fact);
  const auto none = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(Py_None)));
  const bool may_be_none =
      seen != nullptr && std::ranges::any_of(seen->value.classes(), [&](const Object& type) {
        return type.is(none.get());
      });
  // A value that an earlier call left may have a gradient, which this run can not know.
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

void RuntimeStoreLog::check_unwritten(PyTypeObject* type, const std::string& name) const {
  for (const Log& log : logs_) {
    if ((log.name != name && name != "__dict__") || is_empty(log)) continue;
    for (const Object& each : log.classes)
      if (each.is(reinterpret_cast<PyObject*>(type)))
        interpreter_.refuse(ReasonCode::heap_write, cat("the attribute ", name,
                                                        " of an object that may be one met at run "
                                                        "time, after such were written"));
  }
}

// --- gradients ----------------------------------------------------------------------------------

// Eager's backward() reaches a stored value in two ways: the value itself leads to the loss, or a
// read of its object does. The former is known (consumed_tape.h). For the latter, each read notes
// which store it found, and the run tells in the end whether all were found. A read counts if it
// leads to the loss or to another stored value. The last stored value leads to none, so all reads
// that count lead to the loss.

namespace {

using Pushes = std::vector<graph::Node*>;

/// The lists of a log whose elements have gradients.
void add_tracked(const ElementForm& form, size_t& next, std::vector<size_t>& tracked) {
  if (form.kind == ElementForm::Kind::tuple) {
    for (const ElementForm& part : form.parts) add_tracked(part, next, tracked);
    return;
  }
  if (form.tracked) tracked.push_back(next);
  ++next;
}

std::vector<size_t> tracked_lists(const Rolled& writes) {
  std::vector<size_t> tracked;
  size_t next = 0;
  add_tracked(writes.form, next, tracked);
  return tracked;
}

/// What a noted read found, counted from the end; null: no position that was looked for.
graph::Value* found_by(const graph::Node& note) {
  const graph::Node* sum = note.inputs[1]->definition;
  if (sum == nullptr) return nullptr;
  for (graph::Value* term : sum->inputs)
    if (term->definition != nullptr && term->definition->op == &op::list_find_object) return term;
  return nullptr;
}

/// The elements that a read took at that position, in the order of the lists.
std::vector<graph::Value*> elements_read(const graph::Block& block, const graph::Value* position) {
  std::vector<graph::Value*> elements;
  for (const graph::Node* node : block.nodes)
    if (node->op == &op::list_item && node->inputs[1] == position)
      elements.push_back(node->output());
  return elements;
}

}  // namespace

void RuntimeStoreLog::note_read(const Log& log, const Rolled& writes, const Value& position) {
  const size_t count = tracked_lists(writes).size();
  if (count == 0 || !interpreter_.modes.grad_enabled) return;
  if (count > log.reads.size()) refuse_unconsumed(log);
  const Value place =
      binary(interpreter_, syntax::Operator::Add, length_of(interpreter_, writes), position);
  for (size_t i = 0; i < count; ++i) append(interpreter_, *log.reads[i], place);
}

void RuntimeStoreLog::refuse_unconsumed(const Log& log) const {
  interpreter_.refuse(ReasonCode::autograd,
                      cat("the attribute ", log.name,
                          " of objects met in the run, to whose gradient backward() may not come"));
}

void RuntimeStoreLog::check_consumed() {
  Pushes all;
  bool are_sure = true;
  ConsumedTape sure(interpreter_);
  for (const Log& log : logs_) {
    const Rolled* writes = log.writes->elements.rolled().get();
    if (writes == nullptr) continue;
    for (const size_t list : tracked_lists(*writes)) {
      const auto pushes = passes::pushes_to(*writes->lists[list]);
      if (!pushes) refuse_unconsumed(log);
      all.insert(all.end(), pushes->begin(), pushes->end());
      for (const graph::Node* push : *pushes) are_sure = are_sure && sure.raises(push->inputs[1]);
    }
  }
  if (are_sure) return;
  ConsumedTape if_read(interpreter_, all);
  for (const Log& log : logs_)
    if (log.writes->elements.rolled() != nullptr) guard_reads(log, sure, if_read);
}

void RuntimeStoreLog::guard_reads(const Log& log, ConsumedTape& sure, ConsumedTape& if_read) {
  const Rolled& writes = *log.writes->elements.rolled();
  const std::vector<size_t> lists = tracked_lists(writes);
  for (size_t i = 0; i < lists.size(); ++i) {
    const Pushes pushes = *passes::pushes_to(*writes.lists[lists[i]]);
    const auto is_sure = [&](const graph::Node* push) { return sure.raises(push->inputs[1]); };
    const auto raises = [&](const graph::Node* push) { return if_read.raises(push->inputs[1]); };
    if (std::ranges::all_of(pushes, is_sure)) continue;
    if (i >= log.reads.size() || !std::ranges::all_of(pushes, raises)) refuse_unconsumed(log);
    guard_reads(log, lists[i], *log.reads[i], sure, if_read);
  }
}

void RuntimeStoreLog::guard_reads(const Log& log, size_t list, const Sequence& noted,
                                  ConsumedTape& sure, ConsumedTape& if_read) {
  const Rolled& writes = *log.writes->elements.rolled();
  graph::Value* reads = rolled_positions(noted)->lists.front();
  const auto notes = passes::pushes_to(*reads);
  size_t used = 0;
  for (graph::Node* note : notes.value_or(Pushes())) {
    graph::Value* const position = found_by(*note);
    if (position == nullptr) refuse_unconsumed(log);
    const std::vector<graph::Value*> read = elements_read(*note->parent, position);
    if (read.size() == writes.lists.size() && if_read.contains(read[list]))
      ++used;
    else
      note->inputs[1] = position;  // from the end: it is none of the places that count
  }
  if (used == 0) refuse_unconsumed(log);
  graph::Builder& builder = interpreter_.builder();
  const Pushes pushes = *passes::pushes_to(*writes.lists[list]);
  for (const graph::Node* push : pushes)
    if (push->parent == &builder.block() && sure.raises(push->inputs[1]))
      reads = op::list_push(builder, {reads, op::list_size(builder, {push->inputs[0]})});
  graph::Value* const size = op::list_size(builder, {writes.lists[list]});
  graph::Value* const are_all = op::list_covers(builder, {reads, size});
  if (!interpreter_.follow(are_all, Object(), speculate::kUncounted)) refuse_unconsumed(log);
}

std::shared_ptr<const Rolled> RuntimeStoreLog::rolled_positions(const Sequence& reads) const {
  if (reads.elements.rolled() != nullptr) return reads.elements.rolled();
  ElementForm form;
  form.type = graph::Type::i64();
  const TestKey here{interpreter_.frame().code->facts_key, -1};
  return roll(interpreter_, here, form, reads.elements.known(), false);
}

// --- the end of the run -------------------------------------------------------------------------

std::vector<Value> RuntimeStoreLog::lists() const {
  std::vector<Value> all = {order_};
  for (const Log& log : logs_) {
    all.push_back(log.writes);
    all.insert(all.end(), log.reads.begin(), log.reads.end());
  }
  return all;
}

Value RuntimeStoreLog::written() const {
  if (std::ranges::all_of(logs_, is_empty)) return nullptr;
  std::vector<Value> all;
  for (const Log& log : logs_) all.push_back(log.writes);
  if (logs_.size() > 1) all.push_back(order_);
  return make_tuple(std::move(all));
}

speculate::HeapWrite RuntimeStoreLog::commit() const {
  speculate::HeapWrite write;
  write.kind = speculate::HeapWrite::Kind::met;
  write.owner = interpreter_.sources().root(Source::Kind::constant, Object::borrow(Py_None));
  write.key = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(logs_.size())));
  for (size_t i = 0; i < logs_.size(); ++i)
    PyTuple_SET_ITEM(write.key.get(), static_cast<Py_ssize_t>(i),
                     PyUnicode_InternFromString(logs_[i].name.c_str()));
  return write;
}

RuntimeStoreLog& runtime_store_log_of(AttachedStates& attached) {
  return static_cast<RuntimeStoreLog&>(attached.runtime_store_log());
}

}  // namespace janus::frontend
