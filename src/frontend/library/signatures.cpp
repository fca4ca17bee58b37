// inspect.signature() and what is built on it (inspect.getfullargspec), of functions, methods,
// classes and objects that can be called. The signature is an object of the run, made of what the
// function has: its code, which is assumed to stay, its defaults and annotations, which are read.
#include <algorithm>
#include <optional>

#include "frontend/core/class_entry.h"
#include "frontend/core/entry_answers.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/membership.h"
#include "frontend/objects/subscripts.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "python/classes.h"
#include "python/integer.h"
#include "python/version.h"
#include "syntax/source.h"

namespace janus::frontend {

using python::Object;

namespace {

constexpr const char* kPositionalOnly = "inspect._POSITIONAL_ONLY";
constexpr const char* kPositionalOrKeyword = "inspect._POSITIONAL_OR_KEYWORD";
constexpr const char* kVarPositional = "inspect._VAR_POSITIONAL";
constexpr const char* kKeywordOnly = "inspect._KEYWORD_ONLY";
constexpr const char* kVarKeyword = "inspect._VAR_KEYWORD";

struct Parameter {
  Object name;
  const char* kind;  ///< a path of one of the above
  Value whole;       ///< an inspect.Parameter
};

struct Signature {
  std::vector<Parameter> parameters;
  Value returned;  ///< the annotation of what is returned
};

/// Null results: this kind of callable is not known here.
class SignatureReader {
 public:
  SignatureReader(Interpreter& interpreter, bool follows_wrappers, bool skips_bound)
      : interpreter_(interpreter), follows_wrappers_(follows_wrappers), skips_bound_(skips_bound) {}

  std::optional<Signature> of(const Value& given) {
    Value callable = given;
    if (is_method(callable)) return bound(attribute(interpreter_, callable, "__func__"));
    if (as<Known>(callable) == nullptr && as<Instance>(callable) == nullptr) return std::nullopt;
    if (follows_wrappers_) callable = unwrapped(callable);
    if (callable == nullptr) return std::nullopt;
    if (is_method(callable)) return of(callable);
    for (const char* other : {"__signature__", "_partialmethod"})
      if (attribute_or_null(interpreter_, callable, other) != nullptr) return std::nullopt;
    PyObject* const object = known_object(callable);
    if (object != nullptr && PyFunction_Check(object)) return of_function(callable);
    if (object != nullptr && PyType_Check(object)) return of_class(callable);
    const auto call = shared_as<Method>(special_method(interpreter_, callable, "__call__"));
    return call == nullptr || !is_function(call->function) ? std::nullopt : bound(call->function);
  }

 private:
  static bool is_method(const Value& value) {
    return as<Method>(value) != nullptr ||
           (known_object(value) != nullptr && PyMethod_Check(known_object(value)));
  }

  static bool is_function(const Value& value) {
    return known_object(value) != nullptr && PyFunction_Check(known_object(value));
  }

  /// What decorators were put around; null: there is a circle of them.
  Value unwrapped(Value callable) {
    constexpr int kMost = 64;  // chosen, not measured: decorators around one function
    for (int count = 0; count < kMost; ++count) {
      const bool is_end = is_method(callable) ||
                          attribute_or_null(interpreter_, callable, "__signature__") != nullptr;
      const Value inner =
          is_end ? nullptr : attribute_or_null(interpreter_, callable, "__wrapped__");
      if (inner == nullptr) return callable;
      callable = inner;
    }
    return nullptr;
  }

  /// Without the parameter that a method's object is given as.
  std::optional<Signature> bound(const Value& function) {
    std::optional<Signature> all = of(function);
    if (!all || !skips_bound_) return all;
    if (all->parameters.empty()) return std::nullopt;
    const std::string_view first = all->parameters[0].kind;
    if (first == kVarKeyword || first == kKeywordOnly) return std::nullopt;
    if (first != kVarPositional) all->parameters.erase(all->parameters.begin());
    return all;
  }

  /// That of the first `__new__` or `__init__` that is written in Python.
  std::optional<Signature> of_class(const Value& value) {
    auto* const type = reinterpret_cast<PyTypeObject*>(known_object(value));
    interpreter_.assume_identity(*as<Known>(value));
    if (python::is_made_by_statement(Py_TYPE(type)) &&
        PyFunction_Check(class_entry(interpreter_, Py_TYPE(type), "__call__")))
      return std::nullopt;
    PyObject* const made_by = class_entry(interpreter_, type, "__new__");
    PyObject* const set_by = class_entry(interpreter_, type, "__init__");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
      auto* const base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
      if (Py_IS_TYPE(made_by, &PyStaticMethod_Type) && has_own(base, "__new__"))
        return bound(attribute(interpreter_, value, "__new__"));
      if (PyFunction_Check(set_by) && has_own(base, "__init__"))
        return bound(attribute(interpreter_, value, "__init__"));
    }
    return std::nullopt;
  }

  static bool has_own(PyTypeObject* type, const char* name) {
    return PyDict_GetItemString(python::class_dict(type), name) != nullptr;
  }

  std::optional<Signature> of_function(const Value& function) {
    const auto& known = *as<Known>(function);
    auto* const code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(known.object.get()));
    interpreter_.assume_identity(known);
    interpreter_.assume(
        Assumption::Kind::identity,
        interpreter_.sources().step(Source::Kind::code, path_of(interpreter_, known)),
        Object::borrow(syntax::original_code(reinterpret_cast<PyObject*>(code))));
    function_ = function;
    annotations_ = attribute(interpreter_, function, "__annotations__");
    names_ = python::elements(interpreter_.must(PyCode_GetVarnames(code)).get());
    Signature signature;
    add_positional(*code, signature);
    const auto keywords = static_cast<size_t>(code->co_argcount);
    const auto rest = keywords + static_cast<size_t>(code->co_kwonlyargcount);
    const bool takes_more = (code->co_flags & CO_VARARGS) != 0;
    if (takes_more) add(signature, names_[rest], kVarPositional, nullptr);
    for (size_t i = keywords; i < rest; ++i)
      add(signature, names_[i], kKeywordOnly, found_in("__kwdefaults__", names_[i]));
    if ((code->co_flags & CO_VARKEYWORDS) != 0)
      add(signature, names_[rest + (takes_more ? 1 : 0)], kVarKeyword, nullptr);
    signature.returned = annotation(python::string("return"));
    // Python calls the parameters of comprehensions `.0`, and shows them otherwise.
    const bool is_own = std::ranges::none_of(signature.parameters, [](const Parameter& each) {
      return text_of(each.name.get()).starts_with('.');
    });
    return is_own ? std::optional(std::move(signature)) : std::nullopt;
  }

  void add_positional(const PyCodeObject& code, Signature& signature) {
    const Value defaults = attribute(interpreter_, function_, "__defaults__");
    const std::vector<Value> given =
        is_none(defaults) ? std::vector<Value>() : elements_of(interpreter_, defaults);
    const auto count = static_cast<size_t>(code.co_argcount);
    for (size_t i = 0; i < count; ++i) {
      const bool is_given = i + given.size() >= count;
      add(signature, names_[i],
          i < static_cast<size_t>(code.co_posonlyargcount) ? kPositionalOnly : kPositionalOrKeyword,
          is_given ? given[i + given.size() - count] : nullptr);
    }
  }

  void add(Signature& signature, const Object& name, const char* kind, const Value& otherwise) {
    auto whole = std::make_shared<Instance>(constant("inspect.Parameter"));
    const auto set = [&](const char* field, const Value& value) {
      write_own_attribute(interpreter_, whole, field, value);
    };
    set("_kind", interpreter_.constant(constant(kind)));
    set("_default", otherwise != nullptr ? otherwise : empty());
    set("_annotation", annotation(name));
    set("_name", interpreter_.constant(name));
    signature.parameters.push_back({name, kind, whole});
  }

  Value annotation(const Object& name) {
    const Value found = found_in(annotations_, name);
    return found != nullptr ? found : empty();
  }

  Value found_in(const char* dict, const Object& name) {
    return found_in(attribute(interpreter_, function_, dict), name);
  }

  /// What a dict has under the name; null: nothing, or there is no dict.
  Value found_in(const Value& dict, const Object& name) {
    const Value key = interpreter_.constant(name);
    if (is_none(dict) || !contains(interpreter_, dict, key)) return nullptr;
    return subscript(interpreter_, dict, key);
  }

  Value empty() { return interpreter_.constant(constant("inspect._empty")); }

  static Object constant(const char* path) { return Object::borrow(imported(path)); }

  Interpreter& interpreter_;
  const bool follows_wrappers_, skips_bound_;
  Value function_, annotations_;  // of the function that is read
  std::vector<Object> names_;
};

/// An argument that has to be known.
bool flag(Interpreter& interpreter, const CallArguments& arguments, const char* name,
          bool otherwise) {
  const Value* given = arguments.keyword(name);
  return given == nullptr ? otherwise : truth(interpreter, *given, -1);
}

/// Whether annotations are wanted as what they are. Since Python 3.14 texts may be wanted instead.
bool wants_values(const CallArguments& arguments) {
  const Value* format = arguments.keyword("annotation_format");
  if (format == nullptr) return true;
  PyObject* const known = known_object(*format);
  return known != nullptr && PyLong_Check(known) && python::int64_of(known) == 1;
}

/// inspect._signature_from_callable(callable, sigcls=Signature, …), which all the others call
Value call_signature(Interpreter& interpreter, const CallArguments& arguments) {
  static PyObject* const type = imported("inspect.Signature");
  const Value* as_class = arguments.keyword("sigcls");
  if (arguments.positional.size() != 1 || as_class == nullptr || known_object(*as_class) != type ||
      flag(interpreter, arguments, "eval_str", false) || !wants_values(arguments))
    return nullptr;
  SignatureReader reader(interpreter, flag(interpreter, arguments, "follow_wrapper_chains", true),
                         flag(interpreter, arguments, "skip_bound_arg", true));
  const std::optional<Signature> signature = reader.of(arguments.positional[0]);
  if (!signature) return nullptr;
  const auto parameters = made_dict(Object::borrow(reinterpret_cast<PyObject*>(&PyDictProxy_Type)));
  for (const Parameter& each : signature->parameters)
    parameters->items.emplace_back(each.name, each.whole);
  auto whole = std::make_shared<Instance>(Object::borrow(type));
  write_own_attribute(interpreter, whole, "_parameters", parameters);
  write_own_attribute(interpreter, whole, "_return_annotation", signature->returned);
  return whole;
}

/// sys.getrecursionlimit()
Value call_recursion_limit(Interpreter& interpreter, const CallArguments& arguments) {
  if (!arguments.positional.empty() || !arguments.keywords.empty()) return nullptr;
  static PyObject* const function = imported("sys.getrecursionlimit");
  const Object limit = interpreter.must(PyObject_CallNoArgs(function));
  interpreter.assume(Assumption::Kind::equals, answer_path(interpreter, function), limit);
  return interpreter.constant(limit);
}

}  // namespace

std::span<const SpecialCallable> signature_callables() {
  static constexpr SpecialCallable table[] = {
      {"inspect._signature_from_callable", call_signature},
      {"sys.getrecursionlimit", call_recursion_limit},
  };
  return table;
}

}  // namespace janus::frontend
