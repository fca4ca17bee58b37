#include "frontend/core/names.h"

#include <algorithm>
#include <utility>

#include "frontend/core/narrowing.h"
#include "frontend/values/constants.h"
#include "python/version.h"
#include "speculate/finalizers.h"
#include "speculate/reason_record.h"
#include "syntax/source.h"

namespace janus::frontend {

using python::Object;
using syntax::NameKind;

namespace {

PyObject* code_object(PyObject* function) { return PyFunction_GetCode(function); }

bool is_variable_of(const PyCodeObject* code, PyObject* name) {
  const char* kinds = PyBytes_AS_STRING(code->co_localspluskinds);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_localsplusnames); ++i)
    if (PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, i), name) == 0)
      return !python::is_hidden_variable(kinds[i]);
  return false;
}

}  // namespace

// --- variables ----------------------------------------------------------------------------------

std::string Names::mangled(const std::string& name) const {
  return name.starts_with("__") ? frames_.frame().code->tree->mangle(name) : name;
}

Value* Names::find_variable(const std::string& name) {
  for (Variables* scope = frames_.frame().variables.get(); scope != nullptr;
       scope = scope->parent.get()) {
    if (scope->scope == nullptr) continue;
    bool statements = scope->scope->kind == syntax::Scope::Kind::statements;
    auto kind = scope->scope->names.find(name);
    bool here = kind != scope->scope->names.end() &&
                (kind->second == NameKind::local || kind->second == NameKind::cell);
    if (!here && !statements) continue;
    auto value = scope->values.find(name);
    if (value != scope->values.end()) return &value->second;
    if (here && !statements) return &scope->values[name];  // unbound so far
  }
  return nullptr;
}

/// A local variable of the function that the statements stand in never falls back to a global, even
/// while it is unbound.
const Source* Names::frame_variable(const Object& name) const {
  const bool is_local = call_.variables != call_.globals && is_variable_of(call_.code, name.get());
  return writer_.sources().root(Source::Kind::variable, name, is_local ? 1 : 0);
}

Value Names::read_statement_variable(const std::string& name) {
  auto written = statement_run.variables->values.find(name);
  if (written != statement_run.variables->values.end()) {
    check_merged(written->second);
    if (written->second == nullptr)
      frames_.refuse(ReasonCode::would_raise, cat("NameError: name '", name, "' is not defined"));
    return written->second;
  }
  Object key = Object::steal(PyUnicode_FromStringAndSize(name.data(), Py_ssize_t(name.size())));
  const Source* source = frame_variable(key);
  for (PyObject* dict : {call_.variables, call_.globals, PyEval_GetBuiltins()}) {
    if (dict == nullptr || (source->index != 0 && dict != call_.variables)) continue;
    const Held changed = state_.heap.find(frames_, dict, key.get(), nullptr);
    if (changed.is_value()) return changed.value();
    if (changed.is_absent()) continue;
    Object value = Object::borrow(PyDict_GetItemWithError(dict, key.get()));
    if (PyErr_Occurred() != nullptr) frames_.refuse_raised();
    if (value) return lifting_.wrap(value.get(), source);
  }
  frames_.refuse(ReasonCode::would_raise, cat("NameError: name '", name, "' is not defined"));
}

/// A function made before the run reads a variable of the frame that the statements stand in, which
/// they have written: its cell still holds what it was at entry. That is laid to who wrote it.
void Names::check_not_written(const std::string& name, PyObject* cell) const {
  if (statement_run.variables == nullptr || !statement_run.variables->values.contains(name)) return;
  if (!may_be_variable(name, cell)) return;
  auto writer = statement_run.written_by.find(name);
  std::string details = cat("the variable ", name, " of a nested function");
  speculate::record(ReasonCode::heap_write, details);
  throw Refusal{{ReasonCode::heap_write, std::move(details), frames_.user_span(),
                 writer == statement_run.written_by.end() ? -1 : writer->second}};
}

Value Names::read_closure_cell(const std::string& name) {
  const Code& code = *frames_.frame().code;
  if (!code.function) frames_.refuse(ReasonCode::expression, cat("the free variable ", name));
  PyObject* function_code = code_object(code.function.get());
  Object names = frames_.must(PyObject_GetAttrString(function_code, "co_freevars"));
  PyObject* closure = PyFunction_GetClosure(code.function.get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
    if (text_of(PyTuple_GET_ITEM(names.get(), i)) != name) continue;
    if (closure == nullptr || i >= PyTuple_GET_SIZE(closure)) break;
    const Held written = state_.heap.find(frames_, PyTuple_GET_ITEM(closure, i), Py_None, nullptr);
    if (written.is_value()) return written.value();
    if (written.is_absent())
      frames_.refuse(ReasonCode::would_raise,
                     cat("NameError: free variable '", name, "' is unbound"));
    check_not_written(name, PyTuple_GET_ITEM(closure, i));
    Object value = Object::steal(PyCell_Get(PyTuple_GET_ITEM(closure, i)));
    if (!value) {
      PyErr_Clear();
      frames_.refuse(ReasonCode::would_raise,
                     cat("NameError: free variable '", name, "' is unbound"));
    }
    return lifting_.wrap(
        value.get(), writer_.sources().step(Source::Kind::closure, code.function_source,
                                            Object::borrow(PyTuple_GET_ITEM(names.get(), i)), i));
  }
  frames_.refuse(ReasonCode::expression, cat("the free variable ", name));
}

Value Names::read_name(const std::string& written) {
  const std::string name = mangled(written);
  const syntax::Scope* scope = frames_.frame().variables->scope;
  auto kind = scope->names.find(name);
  bool is_global = kind == scope->names.end() || kind->second == NameKind::global;
  bool statements = scope->kind == syntax::Scope::Kind::statements;
  if (is_global && !statements) {
    // Inside a comprehension or function of a run of statements, its variables come first.
    return read_global(name);
  }
  if (Value* found = find_variable(name)) {
    check_merged(*found);
    if (*found == nullptr)
      frames_.refuse(ReasonCode::would_raise,
                     cat("UnboundLocalError: cannot access local variable '", name, "'"));
    return *found;
  }
  if (!frames_.frame().code->function) return read_statement_variable(name);
  return read_closure_cell(name);
}

Value Names::read_global(const std::string& name) {
  if (!frames_.frame().code->function) return read_statement_variable(name);
  PyObject* globals = PyFunction_GetGlobals(frames_.frame().code->function.get());
  if (statement_run.variables != nullptr && globals == call_.variables) {
    auto written = statement_run.variables->values.find(name);
    if (written != statement_run.variables->values.end() && written->second != nullptr) {
      check_merged(written->second);
      return written->second;
    }
  }
  Object key = Object::steal(PyUnicode_FromStringAndSize(name.data(), Py_ssize_t(name.size())));
  Object value;
  const Held written = state_.heap.find(frames_, globals, key.get(), nullptr);
  if (written.is_value()) return written.value();
  if (written.is_unknown()) value = Object::borrow(PyDict_GetItemWithError(globals, key.get()));
  if (!value && PyErr_Occurred() == nullptr) {
    Object builtins = Object::borrow(PyDict_GetItemString(globals, "__builtins__"));
    PyObject* dict = builtins && PyModule_Check(builtins.get()) ? PyModule_GetDict(builtins.get())
                     : builtins                                 ? builtins.get()
                                                                : PyEval_GetBuiltins();
    value = Object::borrow(PyDict_GetItemWithError(dict, key.get()));
  }
  if (PyErr_Occurred() != nullptr) frames_.refuse_raised();
  if (!value)
    frames_.refuse(ReasonCode::would_raise, cat("NameError: name '", name, "' is not defined"));
  return lifting_.wrap(value.get(),
                       writer_.sources().step(Source::Kind::global, globals_owner(), key));
}

const Source* Names::globals_owner() {
  PyObject* globals = PyFunction_GetGlobals(frames_.frame().code->function.get());
  if (call_.function != nullptr && globals == PyFunction_GetGlobals(call_.function))
    return writer_.sources().root(Source::Kind::function);
  return globals_owners_.try_emplace(globals, frames_.frame().code->function_source).first->second;
}

/// Whether a closure's cell may be a variable of the function that a run of statements stands in:
/// frames do not show their cells.
bool Names::may_be_variable(const std::string& name, PyObject* cell) const {
  if (call_.function != nullptr || call_.variables == call_.globals) return false;
  PyObject* value = PyDict_GetItemString(call_.variables, name.c_str());
  return value == PyCell_GET(cell);
}

void Names::write_global(const std::string& name, const Value& value) {
  const Code& code = *frames_.frame().code;
  Object key = Object::steal(PyUnicode_InternFromString(name.c_str()));
  PyObject* globals = PyFunction_GetGlobals(code.function.get());
  if (statement_run.variables != nullptr && globals == call_.variables) {
    // A variable of the run of statements itself, if it assigns it.
    const auto& assigned = call_.tree->scope->assigned;
    if (std::find(assigned.begin(), assigned.end(), name) != assigned.end()) {
      statement_run.variables->values[name] = value;
      return;
    }
  }
  Heap::Target target;
  target.table = globals;
  target.kind = speculate::HeapWrite::Kind::global;
  target.owner = globals_owner();
  target.object = code.function;
  places_.write_place(target, key, writer_.sources().step(Source::Kind::global, target.owner, key),
                      Held::stored(value));
}

namespace {

/// Whether the graph takes any function of the same code at some place (core/lifting.cpp): then
/// nobody knows which functions share a cell.
bool knows_functions_by_code(GraphWriter& writer) {
  return std::ranges::any_of(writer.output().assumptions, [](const Assumption& each) {
    return each.source->kind == Source::Kind::attribute &&
           text_of(each.source->key.get()) == "__globals__";
  });
}

}  // namespace

void Names::write_closure_cell(const std::string& name, const Value& value) {
  const Code& code = *frames_.frame().code;
  Object names =
      frames_.must(PyObject_GetAttrString(code_object(code.function.get()), "co_freevars"));
  PyObject* closure = PyFunction_GetClosure(code.function.get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
    if (text_of(PyTuple_GET_ITEM(names.get(), i)) != name) continue;
    if (may_be_variable(name, PyTuple_GET_ITEM(closure, i)) || knows_functions_by_code(writer_))
      frames_.refuse(ReasonCode::heap_write,
                     cat("the variable ", name, " of an enclosing function"));
    Heap::Target target;
    target.table = PyTuple_GET_ITEM(closure, i);
    target.kind = speculate::HeapWrite::Kind::cell;
    target.owner = code.function_source;
    target.object = code.function;
    target.index = static_cast<size_t>(i);
    const Source* at_entry =
        writer_.sources().step(Source::Kind::closure, code.function_source, {}, i);
    return places_.write_place(target, Object::borrow(Py_None), at_entry, Held::stored(value));
  }
  frames_.refuse(ReasonCode::expression, cat("the free variable ", name));
}

namespace {

/// A graph frees what its variables held when it has run, behind all that it shows. An object whose
/// end the program sees has to go where the statement stands.
void check_freed_variable(const Frames& frames, const std::string& name) {
  PyObject* const variables = frames.call().variables;
  if (variables == nullptr || variables == frames.call().globals) return;
  PyObject* const held = PyDict_GetItemString(variables, name.c_str());
  constexpr Py_ssize_t kOurs = 5;  // the variable, its dict, and what the interpreter has of it
  if (speculate::would_run_finalizer(held, kOurs))
    frames.refuse(ReasonCode::unknown_callable, cat("the finalizer of ", name));
}

}  // namespace

void Names::write_name(const std::string& written, Value value) {
  const std::string name = mangled(written);
  if (statement_run.at >= 0 && frames_.frame().variables == statement_run.variables) {
    if (!statement_run.variables->values.contains(name)) check_freed_variable(frames_, name);
    statement_run.written_by[name] = statement_run.at;
  }
  const syntax::Scope* scope = frames_.frame().variables->scope;
  auto kind = scope->names.find(name);
  bool statements = scope->kind == syntax::Scope::Kind::statements;
  bool is_global = kind != scope->names.end() && kind->second == NameKind::global;
  if (statements || kind == scope->names.end() || kind->second == NameKind::local ||
      kind->second == NameKind::cell) {
    frames_.frame().variables->values[name] = std::move(value);
    return;
  }
  if (is_global && frames_.frame().code->function) return write_global(name, value);
  if (is_global) frames_.refuse(ReasonCode::heap_write, cat("the global ", name));
  Value* found = find_variable(name);
  if (found == nullptr) {
    if (!frames_.frame().code->function && statement_run.variables != nullptr)
      statement_run.variables->values[name] = std::move(value);
    else
      write_closure_cell(name, value);
    return;
  }
  *found = std::move(value);
}

void Names::delete_name(const std::string& name) {
  read_name(name);  // it must be bound
  write_name(name, nullptr);
}

void Names::blame_writer_of(size_t index) {
  constexpr size_t kBeforeVariables = 2;  // how the statements ended, and what they returned
  statement_run.at = -1;
  const auto& assigned = call_.tree->scope->assigned;
  if (statement_run.variables == nullptr || index < kBeforeVariables) return;
  auto writer = statement_run.written_by.find(assigned.at(index - kBeforeVariables));
  if (writer != statement_run.written_by.end()) statement_run.at = writer->second;
}

// --- code ---------------------------------------------------------------------------------------

std::shared_ptr<const Code> Names::code_of(PyObject* function, const Source* source) {
  const syntax::Source& found = syntax::source_of(function);
  if (found.tree == nullptr) {
    Object name = Object::steal(PyObject_GetAttrString(function, "__qualname__"));
    PyErr_Clear();
    frames_.refuse(ReasonCode::no_source, cat(text_of(name.get()), ": ", found.why_not));
  }
  auto code = std::make_shared<Code>();
  code->tree = found.tree.get();
  code->function = Object::borrow(function);
  code->function_source =
      source != nullptr ? source
                        : writer_.sources().root(Source::Kind::constant, Object::borrow(function));
  code->facts_key = Object::borrow(code_object(function));
  // The body that was read is that of the function's code object. A function of torch is reached by
  // many paths: one assumption stands for all of them.
  const Source* owner = Frames::is_library(*found.tree)
                            ? writer_.sources().root(Source::Kind::constant, code->function)
                            : code->function_source;
  assumptions_.assume(Assumption::Kind::identity, writer_.sources().step(Source::Kind::code, owner),
                      Object::borrow(syntax::original_code(code->facts_key.get())));
  return code;
}

}  // namespace janus::frontend
