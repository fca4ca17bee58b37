// The type uses the C API directly because its call is the hot entry: one vectorcall that goes to
// the dispatcher, or straight to the original once the dispatcher is disabled.
//
// A Function behaves like the function it wraps: it binds as a method, has its name, docstring and
// signature, passes on attributes that it does not have itself, can be referenced weakly, and is
// pickled by reference. It may also wrap a bound method: that is how a module is converted. The
// cycle module → Function → method → module is garbage collected.
#include "bind/function.h"

#include <structmember.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/options.h"
#include "base/printable.h"
#include "bind/co_execution.h"
#include "bind/converted_functions.h"
#include "bind/cut_function.h"
#include "bind/picture.h"
#include "bind/profiled.h"
#include "bind/region.h"
#include "bind/snapshot.h"
#include "python/type_slots.h"
#include "speculate/describe.h"
#include "speculate/facts.h"
#include "syntax/source.h"

namespace janus::bind {
namespace {

using python::slot;
using speculate::Call;
using speculate::Dispatcher;
using speculate::Reason;
using speculate::ReasonCode;

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* wrapped;   ///< the converted function, bound method or other callable
  PyObject* function;  ///< the plain Python function in it; null if there is none
  PyObject* self;      ///< a bound method's; null if there is none
  PyObject* dict;
  PyObject* weak_references;
  Dispatcher* dispatcher;
  const syntax::Source* source;  ///< null until the first call
  PyObject* code;                ///< the code that `source` belongs to
  CutFunction* cut;              ///< the copy that runs once it is cut; null before
  CoExecution* co_execution;     ///< of calls that no graph runs as a whole
};

FunctionObject* as_function(PyObject* object) { return reinterpret_cast<FunctionObject*>(object); }

// --- calls ---------------------------------------------------------------------------------------

/// The arguments of a call under all names that access paths may use.
Dispatcher::Roots roots_of_call(const Call& call) {
  Dispatcher::Roots roots;
  const auto* code = reinterpret_cast<PyCodeObject*>(call.facts_key);
  const python::Object names =
      python::Object::steal(PyObject_GetAttrString(call.facts_key, "co_varnames"));
  if (!names) {
    PyErr_Clear();
    return roots;
  }
  const Py_ssize_t named =
      std::min({call.argument_count, static_cast<Py_ssize_t>(code->co_argcount),
                PyTuple_GET_SIZE(names.get())});
  for (Py_ssize_t i = 0; i < named; ++i)
    roots.emplace_back(speculate::text_of(PyTuple_GET_ITEM(names.get(), i)), call.arguments[i]);
  for (Py_ssize_t i = 0; i < call.argument_count; ++i)
    roots.emplace_back(cat("argument ", i), call.arguments[i]);
  const Py_ssize_t keywords =
      call.keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(call.keyword_names);
  for (Py_ssize_t i = 0; i < keywords; ++i)
    roots.emplace_back(speculate::text_of(PyTuple_GET_ITEM(call.keyword_names, i)),
                       call.arguments[call.argument_count + i]);
  return roots;
}

/// Finds the source at the first call; false if the function can never be converted. May throw
/// speculate::StrictFallback.
bool has_source(FunctionObject* function) {
  if (function->source != nullptr) return true;
  Dispatcher& dispatcher = *function->dispatcher;
  if (function->function == nullptr) {
    const std::string why = cat(dispatcher.name(), ": it is not a function written in Python");
    dispatcher.disable(Reason{ReasonCode::no_source, why, {}});
    return false;
  }
  if (makes_generator(PyFunction_GET_CODE(function->function))) {
    dispatcher.disable(Reason{ReasonCode::generator, dispatcher.name(), {}});
    return false;
  }
  function->source = &syntax::source_of(function->function);
  Py_XSETREF(function->code, Py_NewRef(PyFunction_GET_CODE(function->function)));
  if (function->source->tree == nullptr) {
    const std::string why = cat(dispatcher.name(), ": ", function->source->why_not);
    function->source = nullptr;
    dispatcher.disable(Reason{ReasonCode::no_source, why, {}});
    return false;
  }
  return true;
}

/// What a call runs when no graph does. It takes all arguments, self included.
PyObject* imperative(const FunctionObject* function) {
  const CutFunction* cut = function->cut;
  if (cut == nullptr || (cut->is_forward && !calls_only(cut->original, function->self)))
    return function->function;
  PyObject* const copy = cut->current();
  return copy != nullptr ? copy : function->function;
}

/// Whether the call of a module was refused because the module itself communicates around another
/// one.
bool is_call_around(const FunctionObject& function, const Reason& refusal) {
  if (!refusal.module_within || function.self == nullptr) return false;
  return is_module_call(function.wrapped) &&
         python::try_attribute(function.self, "module").is(refusal.module_within.get());
}

/// Cuts the function if it was refused at a statement: from then on it runs as a cut copy. If the
/// statement is in a function that it calls, that one is cut.
void cut_if_refused(FunctionObject* function) {
  const Reason* refusal = function->dispatcher->refusal_to_cut();
  if (function->cut != nullptr || refusal == nullptr) return;
  convert_module_within(*refusal, /*on_account=*/false);
  if (is_call_around(*function, *refusal)) return function->dispatcher->disable(Reason(*refusal));
  const std::vector<python::Object> callee = cut_callee(*refusal);
  auto cut = cut_function(function->wrapped, function->function);
  if (!cut && !callee.empty()) cut.emplace().function = python::Object::borrow(function->function);
  if (!cut || function->cut != nullptr) return;
  function->cut = new CutFunction(std::move(*cut));
  function->cut->regions.insert(function->cut->regions.end(), callee.begin(), callee.end());
  for (const python::Object& region : function->cut->regions) {
    make_part(region.get());
    ask_for(region.get());
  }
  function->dispatcher->disable_as_cut();
}

/// The program replaced `__code__`: drops everything that was made of the old code.
void forget_replaced_code(FunctionObject* function) {
  if (function->source == nullptr || function->code == PyFunction_GET_CODE(function->function))
    return;
  function->source = nullptr;
  delete std::exchange(function->cut, nullptr);
  function->dispatcher->start_over(
      {ReasonCode::guard_failed,
       cat("the code of ", function->dispatcher->name(), " was replaced"),
       {}});
}

/// A call with all arguments, self included, to the plain function.
PyObject* call_function(FunctionObject* function, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* keyword_names) {
  Call call;
  call.tree = function->source->tree.get();
  call.function = function->function;
  call.arguments = arguments;
  call.argument_count = count;
  call.keyword_names = keyword_names;
  call.facts_key = PyFunction_GET_CODE(function->function);
  Dispatcher::Attempt attempt = function->dispatcher->attempt(call);
  if (attempt.ran) {
    function->dispatcher->call_ended(attempt.result.get());
    return attempt.result.release();
  }
  if (attempt.otherwise == Dispatcher::Otherwise::profile) {
    PyObject* result = profiled_call(*function->dispatcher, call);
    function->dispatcher->call_ended(result);
    return result;
  }
  cut_if_refused(function);
  const python::Object callee = python::Object::borrow(imperative(function));
  PyObject* result = nullptr;
  {
    std::optional<Dispatcher::PythonRun> timed;
    if (function->cut == nullptr) timed.emplace(*function->dispatcher);
    result = function->cut == nullptr
                 ? PyObject_Vectorcall(callee.get(), arguments, static_cast<size_t>(count),
                                       keyword_names)
                 : function->co_execution->call(callee.get(), arguments, static_cast<size_t>(count),
                                                keyword_names);
  }
  function->dispatcher->call_ended(result);
  return result;
}

PyObject* call_with_self(FunctionObject* function, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* keyword_names) {
  const Py_ssize_t keywords = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
  std::vector<PyObject*> all;
  all.reserve(static_cast<size_t>(count + keywords) + 1);
  all.push_back(function->self);
  all.insert(all.end(), arguments, arguments + count + keywords);
  return call_function(function, all.data(), count + 1, keyword_names);
}

PyObject* call(PyObject* object, PyObject* const* arguments, size_t flags,
               PyObject* keyword_names) {
  FunctionObject* function = as_function(object);
  try {
    forget_replaced_code(function);
    // The call keeps the function alive, which may be deleted while it runs.
    const python::Object alive = python::Object::borrow(object);
    const bool is_done = function->dispatcher->is_disabled() && function->cut == nullptr;
    if (is_done || !has_source(function)) {
      function->dispatcher->count_passed();
      return function->co_execution->call(function->wrapped, arguments, flags, keyword_names);
    }
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    return function->self == nullptr ? call_function(function, arguments, count, keyword_names)
                                     : call_with_self(function, arguments, count, keyword_names);
  } catch (const speculate::StrictFallback& fallback) {
    fallback.raise();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

// --- making --------------------------------------------------------------------------------------

std::string text_attribute(PyObject* object, const char* name, const std::string& otherwise) {
  const python::Object value = python::Object::steal(PyObject_GetAttrString(object, name));
  if (!value) PyErr_Clear();
  return value && PyUnicode_Check(value.get()) ? speculate::text_of(value.get()) : otherwise;
}

/// The plain function in it: itself, or a bound method's.
PyObject* plain_function(PyObject* wrapped) {
  if (PyMethod_Check(wrapped)) wrapped = PyMethod_GET_FUNCTION(wrapped);
  return PyFunction_Check(wrapped) ? wrapped : nullptr;
}

/// The name in reports: `LeNet` for a converted module, else the function's qualified name.
std::string report_name(PyObject* wrapped) {
  const std::string name = text_attribute(wrapped, "__qualname__", Py_TYPE(wrapped)->tp_name);
  if (PyMethod_Check(wrapped) && name == "Module._call_impl")
    return cat(Py_TYPE(PyMethod_GET_SELF(wrapped))->tp_name, " (module)");
  return name;
}

/// The plain function that reports show: a module's forward, or the function itself; null for a
/// callable that is not written in Python.
python::Object reported_function(PyObject* wrapped, PyObject* function) {
  if (function == nullptr) return {};
  if (report_name(wrapped).ends_with(" (module)")) {
    const python::Object forward =
        python::Object::steal(PyObject_GetAttrString(PyMethod_GET_SELF(wrapped), "forward"));
    PyErr_Clear();
    if (forward && plain_function(forward.get()) != nullptr)
      function = plain_function(forward.get());
  }
  return python::Object::borrow(function);
}

struct Place {
  std::string file = "?";
  int line = 0;
};

/// The user's running line: the innermost one outside of this package.
Place place_of_caller() {
  Place place;
  const std::string package = "/torchjanus/convert.py";
  python::Object frame = python::Object::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* raw = reinterpret_cast<PyFrameObject*>(frame.get());
    const python::Object code =
        python::Object::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
    place.file = speculate::text_of(reinterpret_cast<PyCodeObject*>(code.get())->co_filename);
    place.line = PyFrame_GetLineNumber(raw);
    if (!place.file.ends_with(package)) break;
    frame = python::Object::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  return place;
}

Dispatcher* make_dispatcher(PyObject* wrapped, PyObject* function, int profile_runs) {
  Place place;
  if (const python::Object reported = reported_function(wrapped, function)) {
    const auto* fields = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(reported.get()));
    place = {speculate::text_of(fields->co_filename), fields->co_firstlineno};
  } else {
    place = place_of_caller();
  }
  auto* dispatcher = new Dispatcher(report_name(wrapped), place.file, place.line, {profile_runs});
  dispatcher->roots = roots_of_call;
  return dispatcher;
}

/// Code from the prompt is kept under a file name of its own, which is known once it was looked
/// for. Null before.
python::Object file_of_source(const FunctionObject* function) {
  if (function->source == nullptr || function->source->tree == nullptr) return {};
  const python::Object shown = reported_function(function->wrapped, function->function);
  const syntax::Source& source = syntax::source_of(shown.get());
  return source.tree == nullptr ? python::Object() : python::string(printable(*source.tree->file));
}

/// stats_of() or snapshot_of(), with those of the regions once the function is cut.
PyObject* told(const FunctionObject* function, Dispatcher::Describe describe) {
  try {
    python::Object dict = python::check(describe(*function->dispatcher));
    if (const python::Object file = file_of_source(function))
      python::check_status(PyDict_SetItemString(dict.get(), "file", file.get()));
    add_co_execution(dict.get(), *function->co_execution);
    if (function->cut == nullptr) return dict.release();
    std::vector<python::Object> parts;
    for (const python::Object& region : function->cut->regions)
      parts.push_back(region_told(region.get(), describe));
    add_parts(dict.get(), parts);
    return dict.release();
  } catch (const python::ErrorSet&) {
    return nullptr;
  }
}

/// Copies name, docstring and so on, as functools.update_wrapper does.
int copy_identity(PyObject* dict, PyObject* wrapped) {
  if (PyFunction_Check(wrapped)) {
    PyObject* own = reinterpret_cast<PyFunctionObject*>(wrapped)->func_dict;
    if (own != nullptr && PyDict_Update(dict, own) < 0) return -1;
  }
  for (const char* name : {"__module__", "__name__", "__qualname__", "__doc__"}) {
    const python::Object value = python::Object::steal(PyObject_GetAttrString(wrapped, name));
    if (!value)
      PyErr_Clear();
    else if (PyDict_SetItemString(dict, name, value.get()) < 0)
      return -1;
  }
  return PyDict_SetItemString(dict, "__wrapped__", wrapped);
}

PyObject* create(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"wrapped", "profile_runs", nullptr};
  PyObject* wrapped = nullptr;
  int profile_runs = 3;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "O|$i:Function", const_cast<char**>(names),
                                  &wrapped, &profile_runs) == 0)
    return nullptr;
  if (PyCallable_Check(wrapped) == 0)
    return PyErr_Format(PyExc_TypeError, "torchjanus.function: expected a callable, got %.200s",
                        Py_TYPE(wrapped)->tp_name);
  if (profile_runs < 0)
    return PyErr_Format(PyExc_ValueError,
                        "torchjanus.function: profile_runs must not be negative, got %d",
                        profile_runs);
  auto* made = as_function(type->tp_alloc(type, 0));
  if (made == nullptr) return nullptr;
  made->vectorcall = call;
  made->wrapped = Py_NewRef(wrapped);
  made->function = Py_XNewRef(plain_function(wrapped));
  if (made->function != nullptr) note_converted(made->function);
  made->self = PyMethod_Check(wrapped) ? Py_NewRef(PyMethod_GET_SELF(wrapped)) : nullptr;
  made->dict = PyDict_New();
  made->co_execution = new CoExecution;
  made->dispatcher = make_dispatcher(wrapped, made->function, profile_runs);
  made->dispatcher->tell = [made](Dispatcher::Describe describe) { return told(made, describe); };
  if (made->dict == nullptr || copy_identity(made->dict, wrapped) < 0) {
    Py_DECREF(made);
    return nullptr;
  }
  return reinterpret_cast<PyObject*>(made);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  FunctionObject* function = as_function(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(function->wrapped);
  Py_VISIT(function->function);
  Py_VISIT(function->self);
  Py_VISIT(function->dict);
  if (function->cut != nullptr) {
    Py_VISIT(function->cut->original.get());
    Py_VISIT(function->cut->function.get());
  }
  return 0;
}

int clear(PyObject* object) {
  FunctionObject* function = as_function(object);
  if (function->function != nullptr) forget_converted(function->function);
  Py_CLEAR(function->wrapped);
  Py_CLEAR(function->function);
  Py_CLEAR(function->self);
  Py_CLEAR(function->dict);
  if (function->cut != nullptr) function->cut->original = function->cut->function = {};
  return 0;
}

void deallocate(PyObject* object) {
  PyObject_GC_UnTrack(object);
  FunctionObject* function = as_function(object);
  if (function->weak_references != nullptr) PyObject_ClearWeakRefs(object);
  clear(object);
  delete function->dispatcher;
  delete function->cut;
  delete function->co_execution;
  Py_XDECREF(function->code);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

// --- attributes ----------------------------------------------------------------------------------

PyObject* get_attribute(PyObject* object, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(object, name);
  if (found != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return found;
  PyObject* wrapped = as_function(object)->wrapped;
  if (wrapped == nullptr) return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(wrapped, name);
}

/// What the plain function runs, and with which defaults, is changed in it.
int set_attribute(PyObject* object, PyObject* name, PyObject* value) {
  const FunctionObject* function = as_function(object);
  if (function->function != nullptr && PyUnicode_Check(name))
    for (const char* own : {"__code__", "__defaults__", "__kwdefaults__"})
      if (PyUnicode_CompareWithASCIIString(name, own) == 0)
        return PyObject_SetAttr(function->wrapped, name, value);
  return PyObject_GenericSetAttr(object, name, value);
}

PyObject* bind_method(PyObject* object, PyObject* instance, PyObject* /*owner*/) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(object);
  // A bound method or a builtin does not bind again.
  if (as_function(object)->function == nullptr || as_function(object)->self != nullptr)
    return Py_NewRef(object);
  return PyMethod_New(object, instance);
}

PyObject* represent(PyObject* object) {
  return PyUnicode_FromFormat("<torchjanus.Function of %R>", as_function(object)->wrapped);
}

/// Calls a function of torchjanus/pickling.py with the Function and what it wraps.
PyObject* ask_pickling(const char* what, PyObject* object, PyObject* argument = nullptr) {
  try {
    const python::Object ask = python::import_attribute("torchjanus.pickling", what);
    PyObject* const wrapped = as_function(object)->wrapped;
    return (argument == nullptr ? python::call(ask.get(), {object, wrapped})
                                : python::call(ask.get(), {object, wrapped, argument}))
        .release();
  } catch (const python::ErrorSet&) {
    return nullptr;
  }
}

PyObject* reduce(PyObject* object, PyObject* protocol) {
  return ask_pickling("reduce", object, protocol);
}
PyObject* deep_copy(PyObject* object, PyObject* memo) {
  return ask_pickling("deep_copy", object, memo);
}
PyObject* shallow_copy(PyObject* object, PyObject* /*unused*/) { return Py_NewRef(object); }
PyObject* for_pickles(PyObject* object, void* /*unused*/) {
  return ask_pickling("copy_of", object);
}

PyObject* stats(PyObject* object, PyObject* /*unused*/) {
  return told(as_function(object), stats_of);
}
PyObject* snapshot(PyObject* object, PyObject* /*unused*/) {
  return told(as_function(object), snapshot_of);
}
PyObject* details(PyObject* object, PyObject* /*unused*/) {
  return told(as_function(object), details_of);
}
PyObject* explain(PyObject* object, PyObject* /*unused*/) { return render("explain", object); }
PyObject* graph_text(PyObject* object, PyObject* /*unused*/) { return render("graph", object); }
PyObject* as_html(PyObject* object, PyObject* /*unused*/) { return render("as_html", object); }

/// Takes IPython's printer, and whether the object is printed within itself.
PyObject* show(PyObject* object, PyObject* arguments) {
  PyObject* printer = nullptr;
  int is_cycle = 0;
  if (PyArg_ParseTuple(arguments, "Op:_repr_pretty_", &printer, &is_cycle) == 0) return nullptr;
  const python::Object line = python::Object::steal(render("headline", object));
  return line ? PyObject_CallMethod(printer, "text", "O", line.get()) : nullptr;
}

constexpr const char* kDoc = R"(What `torchjanus.function` gives.

It takes the place of a function or method, or of a module's call, and behaves as that: it binds as
a method, has its name, docstring, signature and attributes, and is copied and pickled as the function
would be. Calls take what the function takes, give what it gives, and raise what it raises.

Args:
    wrapped: What is converted: a callable.
    profile_runs: How many calls are watched first, at least 0.

Raises:
    TypeError: `wrapped` can't be called.
    ValueError: `profile_runs` is negative.
)";

PyObject* open_account(PyObject* object, PyObject* /*unused*/) {
  as_function(object)->dispatcher->open_account();
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"explain", explain, METH_NOARGS,
     "What was converted and what was not, line by line, as text (`torchjanus.explain`)."},
    {"graph", graph_text, METH_NOARGS,
     "The graphs in the cache in their textual form (`torchjanus.graph`)."},
    {"stats", stats, METH_NOARGS,
     "Counters, durations in milliseconds, and reasons, as a dict (`torchjanus.stats`)."},
    {"snapshot", snapshot, METH_NOARGS,
     R"(Everything that `explain` renders, as a dict.

It has what `stats` gives, and `cache`, a list of the graphs with their assumptions, lines and texts.
Its keys may change between versions.
)"},
    {"_repr_html_", as_html, METH_NOARGS, "What notebooks show of it."},
    {"_repr_pretty_", show, METH_VARARGS, "The line that IPython shows of it."},
    {"_details", details, METH_NOARGS,
     "The same with places, kernels, memory and calls over time (`torchjanus.report`)."},
    {"_open_account", open_account, METH_NOARGS,
     "Nobody has asked for the conversion: the account of the process pays."},
    {"__reduce_ex__", reduce, METH_O, nullptr},
    {"__copy__", shallow_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", deep_copy, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(FunctionObject, weak_references), READONLY,
     nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"_for_pickles", for_pickles, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(kDoc)},
                       {Py_tp_new, slot(create)},
                       {Py_tp_dealloc, slot(deallocate)},
                       {Py_tp_traverse, slot(traverse)},
                       {Py_tp_clear, slot(clear)},
                       {Py_tp_call, slot(PyVectorcall_Call)},
                       {Py_tp_getattro, slot(get_attribute)},
                       {Py_tp_setattro, slot(set_attribute)},
                       {Py_tp_descr_get, slot(bind_method)},
                       {Py_tp_repr, slot(represent)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_getset, properties},
                       {0, nullptr}};

PyType_Spec spec = {"torchjanus.Function", sizeof(FunctionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_METHOD_DESCRIPTOR,
                    slots};

}  // namespace

PyObject* function_type() {
  static PyObject* type = python::check(PyType_FromSpec(&spec)).release();
  return type;
}

PyObject* function_behind(PyObject* object) {
  if (Py_TYPE(object) != reinterpret_cast<PyTypeObject*>(function_type())) return nullptr;
  FunctionObject* function = as_function(object);
  return function->self == nullptr ? function->function : nullptr;
}

}  // namespace janus::bind
