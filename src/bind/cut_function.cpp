#include "bind/cut_function.h"

#include "base/options.h"
#include "bind/converted_functions.h"
#include "python/gc_pause.h"
#include "speculate/describe.h"
#include "speculate/instrument.h"
#include "syntax/source.h"

namespace janus::bind {
namespace {

using python::Object;

/// The plain function `forward` of the module's class; null if it has none.
PyObject* forward_of(PyObject* module) {
  const Object forward =
      python::try_attribute(reinterpret_cast<PyObject*>(Py_TYPE(module)), "forward");
  return forward && PyFunction_Check(forward.get()) ? forward.get() : nullptr;
}

/// `may_be_whole`: a copy whose body is one region is wanted even if that can't be cut.
std::optional<CutFunction> make(PyObject* function, bool may_be_whole) {
  if (makes_generator(PyFunction_GET_CODE(function))) return std::nullopt;
  const python::GcPause pause;
  const syntax::Source& source = syntax::source_of(function);
  if (source.tree == nullptr || source.tree->function == nullptr) return std::nullopt;
  const Object definition = syntax::definition_of(function);
  if (!definition) return std::nullopt;
  const Object builder = python::import_attribute("torchjanus.regions", "cut_definition");
  const Object made =
      python::call(builder.get(), {definition.get(), python::string(*source.tree->file).get(),
                                   python::string(source.tree->name).get(),
                                   python::string(source.tree->class_name).get(),
                                   may_be_whole ? Py_True : Py_False});
  if (made.is(Py_None)) return std::nullopt;
  const std::vector<Object> parts = python::elements(made.get());
  CutFunction result;
  result.original = Object::borrow(function);
  result.code = Object::borrow(PyFunction_GET_CODE(function));
  result.function =
      speculate::function_of_definition(function, parts.at(0).get(), parts.at(1).get());
  result.regions = python::elements(parts.at(2).get());
  return result;
}

/// Why make() gave no copy.
std::string why_not_cut(PyObject* function) {
  const syntax::Source& source = syntax::source_of(function);
  return source.tree == nullptr
             ? source.why_not
             : "its body has only statements that are never converted, or no call and no operator";
}

/// The dicts of hooks that all modules share.
const std::vector<Object>& shared_hooks() {
  static const auto& all = *new std::vector<Object>{
      python::import_attribute("torch.nn.modules.module", "_global_backward_pre_hooks"),
      python::import_attribute("torch.nn.modules.module", "_global_backward_hooks"),
      python::import_attribute("torch.nn.modules.module", "_global_forward_hooks"),
      python::import_attribute("torch.nn.modules.module", "_global_forward_pre_hooks")};
  return all;
}

bool is_empty_dict(const Object& object) {
  return object && PyDict_Check(object.get()) && PyDict_GET_SIZE(object.get()) == 0;
}

}  // namespace

bool makes_generator(PyObject* code) {
  constexpr int kGenerators = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  return (reinterpret_cast<PyCodeObject*>(code)->co_flags & kGenerators) != 0;
}

bool is_module_call(PyObject* wrapped) {
  if (!PyMethod_Check(wrapped)) return false;
  static const Object& call = *new Object(
      python::attribute(python::import_attribute("torch.nn", "Module").get(), "_call_impl"));
  return call.is(PyMethod_GET_FUNCTION(wrapped));
}

PyObject* CutFunction::current() const {
  if (!original || original.is(function.get())) return function.get();
  if (!code.is(PyFunction_GET_CODE(original.get()))) return nullptr;
  const auto* from = reinterpret_cast<PyFunctionObject*>(original.get());
  const auto* to = reinterpret_cast<PyFunctionObject*>(function.get());
  const auto or_none = [](PyObject* value) { return value == nullptr ? Py_None : value; };
  if (from->func_defaults != to->func_defaults)
    python::check_status(PyFunction_SetDefaults(function.get(), or_none(from->func_defaults)));
  if (from->func_kwdefaults != to->func_kwdefaults)
    python::check_status(PyFunction_SetKwDefaults(function.get(), or_none(from->func_kwdefaults)));
  return function.get();
}

bool calls_only(const python::Object& forward, PyObject* module) {
  if (!forward.is(forward_of(module))) return false;
  for (const Object& hooks : shared_hooks())
    if (!is_empty_dict(hooks)) return false;
  for (const char* name :
       {"_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks"})
    if (!is_empty_dict(python::try_attribute(module, name))) return false;
  const Object variables = python::try_attribute(module, "__dict__");
  if (!variables || PyDict_GetItemString(variables.get(), "forward") != nullptr) return false;
  static const Object& tracing =
      *new Object(python::import_attribute("torch._C", "_get_tracing_state"));
  return python::call(tracing.get(), {}).is(Py_None);
}

Outlined outline(PyObject* function, bool may_be_whole) {
  if (is_converted(function)) return {{}, "torchjanus.function has converted it already"};
  const python::ErrorScope scope;
  std::string why_not;
  try {
    PyObject* code = PyFunction_GET_CODE(function);
    if (syntax::original_code(code) != code) return {{}, "its loops are converted already"};
    const auto copy = make(function, may_be_whole);
    if (!copy) return {{}, why_not_cut(function)};
    python::check_status(
        PyObject_SetAttrString(function, "__code__", PyFunction_GET_CODE(copy->function.get())));
    return {copy->regions, {}};
  } catch (const python::ErrorSet&) {
    why_not = python::take_error_message();
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  log("speculate", cat("a function is not outlined: ", why_not));
  return {{}, why_not};
}

std::vector<python::Object> cut_callee(const speculate::Reason& reason) {
  const Object& function = reason.callee;
  if (!function || !PyFunction_Check(function.get())) return {};
  const python::ErrorScope scope;
  try {
    const Object is_users = python::import_attribute("torchjanus.regions", "is_users");
    const Object file = python::attribute(PyFunction_GET_CODE(function.get()), "co_filename");
    if (!python::call(is_users.get(), {file.get()}).is(Py_True)) return {};
  } catch (const python::ErrorSet&) {
    log("speculate", cat("a callee is not cut: ", python::take_error_message()));
    return {};
  }
  std::vector<Object> regions = outline(function.get(), /*may_be_whole=*/false).regions;
  if (!regions.empty())
    log("speculate", cat("the function of ", reason.describe(), " is cut where it is called"));
  return regions;
}

void convert_module_within(const speculate::Reason& reason, bool on_account) {
  PyObject* const module = reason.module_within.get();
  if (module == nullptr) return;
  const python::ErrorScope scope;
  try {
    const char* const kCall = "_compiled_call_impl";
    if (!python::attribute(module, kCall).is(Py_None)) return;
    python::call(python::import_attribute("torchjanus", "function").get(), {module});
    if (on_account) python::call_method(python::attribute(module, kCall).get(), "_open_account");
    log("speculate", cat("the module within ", reason.describe(), " is converted by itself"));
  } catch (const python::ErrorSet&) {
    log("speculate", cat("a module within is not converted: ", python::take_error_message()));
  }
}

std::optional<CutFunction> cut_function(PyObject* wrapped, PyObject* function) {
  const python::ErrorScope scope;
  try {
    if (!is_module_call(wrapped)) return make(function, /*may_be_whole=*/false);
    PyObject* forward = forward_of(PyMethod_GET_SELF(wrapped));
    if (forward == nullptr) return std::nullopt;
    auto cut = make(forward, /*may_be_whole=*/false);
    if (cut) cut->is_forward = true;
    return cut;
  } catch (const python::ErrorSet&) {
    log("speculate", cat("a function is not cut: ", python::take_error_message()));
  } catch (const std::exception& error) {
    log("speculate", cat("a function is not cut: ", error.what()));
  }
  return std::nullopt;
}

}  // namespace janus::bind
