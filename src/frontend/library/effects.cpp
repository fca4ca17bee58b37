// Calls that only show something: print, writes to text files, warnings, log records. They wait for
// the commit and are made then, in the program's order, with the text that they would have had.
#include <algorithm>

#include "frontend/control/effects.h"
#include "frontend/control/journal.h"
#include "frontend/control/list_parts.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/nesting.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/functions.h"
#include "frontend/language/strings.h"
#include "frontend/library/builtins.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/attributes.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "syntax/tree.h"

namespace janus::frontend {

using python::Object;
using speculate::Template;

namespace {

using Arguments = CallArguments;

/// Whether this method of a file is that of a class written in C, or of an installed package, as
/// notebooks have it: what such code notes, it keeps to itself.
bool is_foreign(PyObject* file, const char* method) {
  static PyObject* const is_users =
      python::import_attribute("torchjanus.regions", "is_users").release();
  const Object own = python::try_attribute(file, "__dict__");
  if (own && PyDict_Check(own.get()) && python::dict_item(own.get(), method)) return false;
  const Object found = python::try_attribute(reinterpret_cast<PyObject*>(Py_TYPE(file)), method);
  if (!found) return false;
  if (Py_TYPE(found.get()) == &PyMethodDescr_Type) return true;
  if (!PyFunction_Check(found.get())) return false;
  PyObject* code = PyFunction_GET_CODE(found.get());
  return python::call(is_users, {reinterpret_cast<PyCodeObject*>(code)->co_filename}).is(Py_False);
}

/// Whether writing to the file may run code of the program's own, which may tell the program what
/// was written, or raise.
bool is_written_by_program(PyObject* file) {
  return !is_foreign(file, "write") || !is_foreign(file, "flush");
}

/// The file that print writes to: its argument, or what sys.stdout is there, which the run may have
/// replaced.
Value file_of(Interpreter& interpreter, const Arguments& arguments) {
  static PyObject* const sys = python::import_module("sys").release();
  for (const auto& [name, value] : arguments.keywords) {
    const auto* known = as<Known>(value);
    if (name == "file" && (known == nullptr || !known->object.is(Py_None))) return value;
  }
  const Source* place = interpreter.sources().root(Source::Kind::constant, Object::borrow(sys));
  return attribute(interpreter, interpreter.wrap(sys, place), "stdout");
}

/// The arguments with this file.
Arguments with_file(Arguments arguments, const Value& file) {
  std::erase_if(arguments.keywords, [](const auto& each) { return each.first == "file"; });
  arguments.keywords.emplace_back("file", file);
  return arguments;
}

bool is_text(const Value& value) {
  if (const auto* deferred = as<Deferred>(value))
    return deferred->type.is(reinterpret_cast<PyObject*>(&PyUnicode_Type));
  const auto* known = as<Known>(value);
  return known != nullptr && PyUnicode_CheckExact(known->object.get());
}

/// What print shows of the value: as it is if its text is the same after the run.
Value shown(Interpreter& interpreter, const Value& value) {
  if (Value kept = lasting(interpreter, value)) return kept;
  const Value text = shown_text(interpreter, value);
  if (text == nullptr) interpreter.refuse(ReasonCode::unknown_callable, "print of an object");
  return text;
}

/// print to a writer of the program's own, by the program in torchjanus/printing.py.
Value print_by_program(Interpreter& interpreter, Arguments arguments) {
  static PyObject* const program = imported("torchjanus.printing.print_to");
  for (Value& value : arguments.positional) {
    value = shown(interpreter, value);
    if (!is_text(value) && !is_varying_text(value))
      value = defer(interpreter, Object::borrow(imported("builtins.str")),
                    {.positional = {value}, .keywords = {}}, &PyUnicode_Type);
  }
  return inline_function(interpreter, program, nullptr, arguments);
}

/// Refuses what print would not take, and what is more than a text between others.
void check_keywords(const Frames& frames, const Arguments& arguments) {
  for (const auto& [name, value] : arguments.keywords) {
    if (name == "file") continue;
    const auto* known = as<Known>(value);
    const bool is_between = name == "sep" || name == "end";
    if (known == nullptr || !(is_between || name == "flush")) refuse_arguments(frames, "print");
    PyObject* object = known->object.get();
    if (is_between && object != Py_None && !PyUnicode_CheckExact(object))
      refuse_arguments(frames, "print");
  }
}

Value call_print(Interpreter& interpreter, const Arguments& given) {
  check_keywords(interpreter, given);
  const Value file = file_of(interpreter, given);
  if (is_none(file)) return interpreter.none();  // sys.stdout may be that
  const auto* known_file = as<Known>(file);
  if (known_file == nullptr || is_written_by_program(known_file->object.get()))
    return print_by_program(interpreter, with_file(given, file));
  Arguments arguments = given;
  if (!known_file->object.is(PySys_GetObject("stdout"))) arguments = with_file(given, file);
  for (Value& value : arguments.positional) value = shown(interpreter, value);
  for (const auto& [name, value] : arguments.keywords)
    if (name == "file") interpreter.assume_identity(*as<Known>(value));
  call_behind_run(interpreter, imported("builtins.print"), arguments);
  return interpreter.none();
}

// --- text files ---------------------------------------------------------------------------------

/// file.write(text) gives the number of characters.
Value write_text(Interpreter& interpreter, const Arguments& arguments, const char* method) {
  const auto* file = arguments.positional.empty() ? nullptr : as<Known>(arguments.positional[0]);
  if (file == nullptr || file->source == nullptr || arguments.positional.size() != 2 ||
      !arguments.keywords.empty())
    return nullptr;
  const Value& text = arguments.positional[1];
  if (!is_text(text)) return nullptr;
  call_behind_run(interpreter, imported(method), arguments);
  Arguments of_length;
  of_length.positional = {text};
  return defer(interpreter, Object::borrow(imported("builtins.len")), of_length, &PyLong_Type);
}

Value flush_text(Interpreter& interpreter, const Arguments& arguments, const char* method) {
  const auto* file = arguments.positional.empty() ? nullptr : as<Known>(arguments.positional[0]);
  if (file == nullptr || file->source == nullptr || arguments.positional.size() != 1)
    return nullptr;
  call_behind_run(interpreter, imported(method), arguments);
  return interpreter.none();
}

Value call_file_write(Interpreter& interpreter, const Arguments& arguments) {
  return write_text(interpreter, arguments, "io.TextIOWrapper.write");
}
Value call_file_flush(Interpreter& interpreter, const Arguments& arguments) {
  return flush_text(interpreter, arguments, "io.TextIOWrapper.flush");
}
Value call_string_write(Interpreter& interpreter, const Arguments& arguments) {
  return write_text(interpreter, arguments, "io.StringIO.write");
}

// --- places in the program ----------------------------------------------------------------------

/// Where a function is, as Python's own frames tell it.
struct Place {
  std::string file;
  int line = 0;
  std::string function;
  PyObject* globals = nullptr;
};

PyObject* globals_of(const Frames& frames, const Frame& frame) {
  PyObject* function = frame.code->function.get();
  return function != nullptr ? PyFunction_GET_GLOBALS(function) : frames.call().globals;
}

std::string file_of(const Frame& frame) {
  PyObject* function = frame.code->function.get();
  if (function == nullptr)
    return frame.code->tree->file != nullptr ? *frame.code->tree->file : std::string();
  return text_of(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function))->co_filename);
}

/// "fit" of "Model.fit", also of "fit, loop at line 6": the part of a function that runs.
std::string code_name(const Frame& frame) {
  const std::string whole = frame.name.substr(0, frame.name.find(','));
  return whole.substr(whole.rfind('.') + 1);
}

Place place_of(const Frames& frames, const Frame& frame) {
  Place place;
  place.file = file_of(frame);
  place.line = frame.span.line;
  place.function = code_name(frame);
  place.globals = globals_of(frames, frame);
  return place;
}

// --- warnings -----------------------------------------------------------------------------------

/// Assumes that no filter turns warnings into exceptions: those could not be deferred.
void assume_that_warnings_are_shown(Interpreter& interpreter) {
  static PyObject* const module = imported("warnings");
  const Source* root = interpreter.sources().root(Source::Kind::constant, Object::borrow(module));
  const Object name = Object::steal(PyUnicode_InternFromString("filters"));
  const Object filters = interpreter.must(PyObject_GetAttr(module, name.get()));
  if (!PyList_CheckExact(filters.get()))
    interpreter.refuse(ReasonCode::unknown_callable, "warnings.warn");
  const Source* source = interpreter.sources().step(Source::Kind::attribute, root, name);
  interpreter.assume(Assumption::Kind::exact_type, source,
                     Object::borrow(reinterpret_cast<PyObject*>(&PyList_Type)));
  const Py_ssize_t count = PyList_GET_SIZE(filters.get());
  interpreter.assume(Assumption::Kind::length, source, {}, count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* filter = PyList_GET_ITEM(filters.get(), i);
    interpreter.assume(Assumption::Kind::identity,
                       interpreter.sources().step(Source::Kind::index, source, {}, i),
                       Object::borrow(filter));
    if (!PyTuple_Check(filter) || PyTuple_GET_SIZE(filter) == 0 ||
        text_of(PyTuple_GET_ITEM(filter, 0)) == "error")
      interpreter.refuse(ReasonCode::would_raise, "a warning that a filter makes an exception");
  }
}

/// globals.setdefault("__warningregistry__", {})
Template registry_of(PyObject* globals) {
  Template form;
  form.kind = Template::Kind::call;
  form.object = Object::borrow(imported("builtins.dict.setdefault"));
  form.children.push_back(constant_template(Object::borrow(globals)));
  form.children.push_back(constant_template(python::string("__warningregistry__")));
  form.children.emplace_back().kind = Template::Kind::dict;
  return form;
}

/// warnings.warn for a frame that is followed, as warn_explicit with what it would find out.
void warn_inside(Interpreter& interpreter, const Frame& frame, const Value& message,
                 const Value& category) {
  const Place place = place_of(interpreter, frame);
  const Object name = python::dict_item(place.globals, "__name__");
  Arguments arguments;
  arguments.positional = {
      message, category, interpreter.string(place.file), interpreter.integer(place.line),
      interpreter.constant(name && PyUnicode_Check(name.get()) ? name
                                                               : python::string("<string>"))};
  Value call = defer(interpreter, Object::borrow(imported("warnings.warn_explicit")), arguments,
                     Py_TYPE(Py_None));
  Template form = as<Deferred>(call)->recipe;
  form.children.push_back(registry_of(place.globals));
  add_effect(interpreter, std::move(form));
}

/// warnings.warn with what `stacklevel` counts from the frame at hand. Frames beyond the one that
/// the graph stands for are Python's own, and there when the effects are made.
void warn(Interpreter& interpreter, const Value& message, const Value& category, int64_t level) {
  const bool is_function = interpreter.call().function != nullptr;
  const Frame* frame = &interpreter.frame();
  for (; level > 1; --level) {
    // nn.Module's frames stand between a module's caller and its forward.
    if (frame->name == "forward" || frame->name.ends_with(".forward"))
      interpreter.refuse(ReasonCode::unknown_callable, "warnings.warn with a stacklevel");
    const Frame* caller = frame->caller;
    level -= frame->uncounted;
    if (level <= 1)
      interpreter.refuse(ReasonCode::unknown_callable, "warnings.warn with a stacklevel");
    if (caller == nullptr || (is_function && caller->caller == nullptr)) break;
    frame = caller;
  }
  if (level <= 1) return warn_inside(interpreter, *frame, message, category);
  Arguments arguments;
  arguments.positional = {message, category, interpreter.integer(is_function ? level - 1 : level)};
  call_behind_run(interpreter, imported("warnings.warn"), arguments);
}

/// The filters that the run has put in place of those from before the call, as
/// `warnings.catch_warnings` does; null: there are none.
Value filters_of_the_run(Interpreter& interpreter) {
  static PyObject* const module = imported("warnings");
  static PyObject* const name = python::interned("filters");
  PyObject* const table = PyModule_GetDict(module);
  const Held changed = interpreter.heap.find(interpreter, table, name, nullptr);
  if (!changed.is_value()) return nullptr;
  const bool is_put_back = known_object(changed.value()) == PyDict_GetItem(table, name);
  return is_put_back ? nullptr : changed.value();
}

/// Whether the first of the run's filters that takes the warning ignores it: one that would be
/// shown is refused, as the run's filters are gone by then.
void check_ignored(Interpreter& interpreter, const Value& filters, PyObject* category) {
  for (const Value& filter : elements_of(interpreter, filters)) {
    const std::vector<Value> parts = elements_of(interpreter, filter);
    if (parts.size() != 5) break;
    PyObject* const of = known_object(parts[2]);
    if (of == nullptr || !PyType_Check(of)) break;
    if (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(category),
                         reinterpret_cast<PyTypeObject*>(of)) == 0)
      continue;
    PyObject* const line = known_object(parts[4]);
    const bool takes_all = is_none(parts[1]) && is_none(parts[3]) && line != nullptr &&
                           PyLong_CheckExact(line) && PyLong_AsLong(line) == 0;
    if (!takes_all || text_of(known_object(parts[0])) != "ignore") break;
    return;
  }
  interpreter.refuse(ReasonCode::unknown_callable, "warnings.warn under filters of the run");
}

/// It makes Python forget which warnings were shown already.
Value call_filters_mutated(Interpreter& interpreter, const Arguments& arguments) {
  if (!arguments.positional.empty() || !arguments.keywords.empty()) return nullptr;
  call_behind_run(interpreter, imported("warnings._filters_mutated"), arguments);
  return interpreter.none();
}

/// Taking or releasing the lock of `warnings`: what it guards is the run's own until its end.
Value call_lock_of_warnings(Interpreter& interpreter, const Arguments& arguments) {
  if (!arguments.positional.empty() || !arguments.keywords.empty()) return nullptr;
  return interpreter.none();
}

/// The objects as a tuple; null if one of them is not known.
Object known_tuple(const std::vector<Value>& parts) {
  std::vector<Object> objects;
  for (const Value& part : parts) {
    if (known_object(part) == nullptr) return {};
    objects.push_back(Object::borrow(known_object(part)));
  }
  return python::tuple(objects);
}

/// warnings._add_filter(*item, append) where the run has a list of filters of its own: the item is
/// put in front, and goes from where it was, or behind all if it is not there.
Value call_add_filter(Interpreter& interpreter, const Arguments& arguments) {
  const auto filters = shared_as<Sequence>(filters_of_the_run(interpreter));
  const Value* append = arguments.keyword("append");
  const Object item = known_tuple(arguments.positional);
  if (filters == nullptr || !filters->is_list || append == nullptr || !item) return nullptr;
  const bool is_last = truth(interpreter, *append, -1);
  std::vector<Value> others;
  bool is_there = false;
  for (const Value& each : elements_of(interpreter, filters)) {
    const Object known = known_tuple(elements_of(interpreter, each));
    const bool same =
        known && !is_there && PyObject_RichCompareBool(known.get(), item.get(), Py_EQ) == 1;
    PyErr_Clear();
    is_there |= same;
    if (!same || is_last) others.push_back(each);
  }
  if (!is_last || !is_there)
    others.insert(is_last ? others.end() : others.begin(), make_tuple(arguments.positional));
  filters->elements = std::move(others);
  return call_filters_mutated(interpreter, {});
}

Value call_warn(Interpreter& interpreter, const Arguments& arguments) {
  const auto given = [&](size_t index, const char* name, Value otherwise) -> Value {
    if (arguments.positional.size() > index) return arguments.positional[index];
    const Value* keyword = arguments.keyword(name);
    return keyword != nullptr ? *keyword : std::move(otherwise);
  };
  for (const auto& [name, value] : arguments.keywords)
    if (name != "message" && name != "category" && name != "stacklevel") return nullptr;
  if (arguments.positional.size() > 3) return nullptr;
  const Value message = given(0, "message", nullptr);
  Value category = given(1, "category", interpreter.none());
  const Value count = given(2, "stacklevel", interpreter.integer(1));
  const auto* level = as<Known>(count);
  if (message == nullptr || level == nullptr || !PyLong_CheckExact(level->object.get()))
    return nullptr;
  const auto* text = as<Known>(message);
  const auto* deferred = as<Deferred>(message);
  const bool is_text = deferred != nullptr
                           ? deferred->type.is(reinterpret_cast<PyObject*>(&PyUnicode_Type))
                           : text != nullptr && PyUnicode_CheckExact(text->object.get());
  const auto* kind = as<Known>(category);
  if (!is_text || kind == nullptr) return nullptr;
  if (kind->object.is(Py_None))
    category = interpreter.constant_borrowed(PyExc_UserWarning);
  else if (!PyType_Check(kind->object.get()))
    return nullptr;
  if (const Value filters = filters_of_the_run(interpreter)) {
    check_ignored(interpreter, filters, as<Known>(category)->object.get());
    return interpreter.none();
  }
  assume_that_warnings_are_shown(interpreter);
  const int64_t stacklevel = PyLong_AsLongLong(level->object.get());
  PyErr_Clear();
  warn(interpreter, message, category, stacklevel);
  return interpreter.none();
}

// --- log records --------------------------------------------------------------------------------

/// The innermost frame that is none of the logging module's.
const Frame* logging_frame(const Frames& frames) {
  static const std::string logging = text_of(imported("logging._srcfile"));
  const Frame* frame = &frames.frame();
  while (frame != nullptr && file_of(*frame) == logging) frame = frame->caller;
  return frame;
}

/// Logger._log(level, msg, args): the record that it would make is made and handled after the
/// commit.
Value call_log(Interpreter& interpreter, const Arguments& arguments) {
  static PyObject* const logger_class = imported("logging.Logger");
  static PyObject* const root_class = imported("logging.RootLogger");
  if (arguments.positional.size() != 4 || !arguments.keywords.empty()) return nullptr;
  const auto* logger = as<Known>(arguments.positional[0]);
  if (logger == nullptr) return nullptr;
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(logger->object.get()));
  if (type != logger_class && type != root_class) return nullptr;
  std::vector<Value> shown;
  for (size_t i = 1; i < 4; ++i)
    if (shown.emplace_back(lasting(interpreter, arguments.positional[i])) == nullptr)
      return nullptr;
  const Frame* frame = logging_frame(interpreter);
  if (frame == nullptr) return nullptr;
  const Place place = place_of(interpreter, *frame);
  Arguments record;
  record.positional = {arguments.positional[0],
                       interpreter.constant(python::attribute(logger->object.get(), "name")),
                       shown[0],
                       interpreter.string(place.file),
                       interpreter.integer(place.line),
                       shown[1],
                       shown[2],
                       interpreter.none(),
                       interpreter.string(place.function)};
  Arguments handled;
  handled.positional = {arguments.positional[0],
                        defer(interpreter, Object::borrow(imported("logging.Logger.makeRecord")),
                              record, &PyBaseObject_Type)};
  call_behind_run(interpreter, imported("logging.Logger.handle"), handled);
  return interpreter.none();
}

}  // namespace

std::span<const SpecialCallable> effect_callables() {
  static constexpr SpecialCallable table[] = {
      {"builtins.print", call_print},
      {"io.TextIOWrapper.write", call_file_write},
      {"io.TextIOWrapper.flush", call_file_flush},
      {"io.StringIO.write", call_string_write},
      {"warnings.warn", call_warn},
      {"warnings._filters_mutated", call_filters_mutated},
      {"warnings._filters_mutated_lock_held", call_filters_mutated},  // since Python 3.14
      {"warnings._acquire_lock", call_lock_of_warnings},
      {"warnings._release_lock", call_lock_of_warnings},
      {"warnings._add_filter", call_add_filter},
      {"logging.Logger._log", call_log},
  };
  return table;
}

}  // namespace janus::frontend
