// See run_warnings.h. The filters are asked as Python's own `warnings` asks them, but only whether
// one makes an exception: all else is left to `warnings.warn_explicit`, behind the run.
#include "torch/run_warnings.h"

#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "base/check.h"
#include "python/lock.h"
#include "python/object.h"
#include "torch/certain_part.h"

namespace janus::torch {

using python::Object;

namespace {

thread_local const graph::SourceSpan* place = nullptr;

/// A warning as warn_explicit takes it.
struct Told {
  PyObject* category = nullptr;
  std::string text, file;
  int line = 0;
};

bool is_of_file(PyObject* globals, const std::string& file) {
  const Object own = python::dict_item(globals, "__file__");
  return own && PyUnicode_Check(own.get()) && python::to_string(own.get()) == file;
}

/// The globals of the code in a file: those of a frame that runs it, or of its module.
Object globals_of(const std::string& file) {
  Object frame = Object::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* each = reinterpret_cast<PyFrameObject*>(frame.get());
    const Object code = Object::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(each)));
    if (python::to_string(python::attribute(code.get(), "co_filename").get()) == file)
      return python::attribute(frame.get(), "f_globals");
    frame = Object::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(each)));
  }
  const Object modules = python::import_attribute("sys", "modules");
  for (const Object& module :
       python::elements(python::call_method(modules.get(), "values").get())) {
    if (!PyModule_Check(module.get())) continue;
    PyObject* globals = PyModule_GetDict(module.get());
    if (is_of_file(globals, file)) return Object::borrow(globals);
  }
  return Object::steal(PyDict_New());
}

/// As eager's: what stands in C++ is named beside the text, unless it is about Python's line.
Told told_of(const c10::Warning& warning) {
  Told told;
  const bool is_deprecation = std::holds_alternative<c10::DeprecationWarning>(warning.type());
  told.category = is_deprecation ? PyExc_DeprecationWarning : PyExc_UserWarning;
  told.text = ::torch::processErrorMsg(warning.msg());
  const c10::SourceLocation& from = warning.source_location();
  if (from.file != nullptr && warning.verbatim()) {
    told.file = from.file;
    told.line = static_cast<int>(from.line);
    return told;
  }
  if (from.file != nullptr)
    told.text += cat(" (Triggered internally at ", from.file, ":", from.line, ".)");
  if (place != nullptr && place->known()) {
    told.file = *place->file;
    told.line = place->line;
  } else if (PyFrameObject* frame = PyEval_GetFrame()) {
    const Object code = Object::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    told.file = python::to_string(python::attribute(code.get(), "co_filename").get());
    told.line = PyFrame_GetLineNumber(frame);
  }
  return told;
}

Object module_name(PyObject* globals) {
  const Object name = python::dict_item(globals, "__name__");
  return name && PyUnicode_Check(name.get()) ? name : python::string("<string>");
}

bool matches(PyObject* pattern, PyObject* text) {
  if (pattern == Py_None) return true;
  if (PyUnicode_CheckExact(pattern)) return python::equal(pattern, text);
  return PyObject_IsTrue(python::call_method(pattern, "match", {text}).get()) == 1;
}

/// What the first filter that fits does with it.
std::string action_on(const Told& told, PyObject* module) {
  const Object text = python::string(told.text);
  const Object filters = python::import_attribute("warnings", "filters");
  for (const Object& filter : python::elements(filters.get())) {
    const std::vector<Object> parts = python::elements(filter.get());
    if (parts.size() != 5) return "unknown";
    const int is_category = PyObject_IsSubclass(told.category, parts[2].get());
    python::check_status(is_category);
    const int64_t line = python::to_integer(parts[4].get());
    if (is_category == 1 && (line == 0 || line == told.line) &&
        matches(parts[1].get(), text.get()) && matches(parts[3].get(), module))
      return python::to_string(parts[0].get());
  }
  return python::to_string(python::import_attribute("warnings", "defaultaction").get());
}

bool would_raise(const Told& told) {
  const std::string action = action_on(told, module_name(globals_of(told.file).get()).get());
  for (const char* shown : {"default", "always", "all", "ignore", "module", "once"})
    if (action == shown) return false;
  return true;
}

void show_one(const Told& told) {
  const Object globals = globals_of(told.file);
  const Object name = module_name(globals.get());
  const Object key = python::string("__warningregistry__");
  const Object fresh = Object::steal(PyDict_New());
  PyObject* registry = PyDict_SetDefault(globals.get(), key.get(), fresh.get());
  python::check_status(PyErr_WarnExplicit(told.category, told.text.c_str(), told.file.c_str(),
                                          told.line, python::to_string(name.get()).c_str(),
                                          registry));
}

class Held final : public speculate::DeferredWarnings, private c10::WarningHandler {
 public:
  Held() : before_(c10::WarningUtils::get_warning_handler()) {
    c10::WarningUtils::set_warning_handler(this);
  }
  ~Held() override { release(); }

  void show() override {
    release();
    for (const Told& told : std::exchange(told_, {})) show_one(told);
  }

 private:
  void process(const c10::Warning& warning) override {
    const python::WithLock locked;
    const python::ErrorScope scope;
    Told told = told_of(warning);
    if (!is_certain_part() && would_raise(told))
      throw std::runtime_error("an operator warns, and a filter makes that an exception");
    told_.push_back(std::move(told));
  }

  void release() {
    if (c10::WarningUtils::get_warning_handler() == this)
      c10::WarningUtils::set_warning_handler(before_);
  }

  c10::WarningHandler* before_;
  std::vector<Told> told_;
};

}  // namespace

WarningPlace::WarningPlace(const graph::SourceSpan& span) : before_(std::exchange(place, &span)) {}
WarningPlace::~WarningPlace() { place = before_; }

std::unique_ptr<speculate::DeferredWarnings> defer_warnings() { return std::make_unique<Held>(); }

}  // namespace janus::torch
