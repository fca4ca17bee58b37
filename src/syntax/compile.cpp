// A function is compiled inside a stand-in for its surroundings in the file: a function whose
// parameters are the free variables, so that they are free again, and a class of the same name, so
// that `__x` and `super()` keep their meaning.
#include "syntax/compile.h"

#include <algorithm>

#include "python/version.h"
#include "syntax/convert.h"

namespace janus::syntax {
namespace {

using python::Object;

constexpr int kFutureFlags = 0x1FE0000;  // CO_FUTURE_*, the same numbers since 3.0
constexpr int kOnlyAst = 0x400;          // PyCF_ONLY_AST

/// Drops warnings of the compiler while it lives. It replaces the list of filters without notifying
/// `warnings`, so that warnings that were shown once are not shown again.
class QuietWarnings {
 public:
  QuietWarnings() : module_(python::import_module("warnings")) {
    filters_ = python::attribute(module_.get(), "filters");
    const Object ignore_all =
        python::tuple({python::string("ignore"), python::none(), Object::borrow(PyExc_Warning),
                       python::none(), python::integer(0)});
    python::set_attribute(module_.get(), "filters", python::list({ignore_all}).get());
  }
  ~QuietWarnings() {
    const python::ErrorScope scope;
    if (PyObject_SetAttrString(module_.get(), "filters", filters_.get()) < 0) PyErr_Clear();
  }
  QuietWarnings(const QuietWarnings&) = delete;
  QuietWarnings& operator=(const QuietWarnings&) = delete;

 private:
  Object module_, filters_;
};

Object compile(PyObject* source, const std::string& file, int flags) {
  static PyObject* const function = python::import_attribute("builtins", "compile").release();
  const QuietWarnings quiet;
  return python::call(function, {source, python::string(file).get(), python::string("exec").get(),
                                 python::integer(flags).get(), Py_True /* dont_inherit */});
}

SourceSpan span_of(PyObject* node) {
  const auto number = [&](const char* name) {
    return static_cast<int>(python::to_integer(python::attribute(node, name).get()));
  };
  return {nullptr, number("lineno"), number("col_offset"), number("end_lineno"),
          number("end_col_offset")};
}

Object make_definition(const char* type, std::vector<AstBuilder::Field> fields,
                       const SourceSpan& span) {
  if (python::kHasTypeParameters) fields.push_back({"type_params", python::list({})});
  return AstBuilder::make(type, fields, &span);
}

Object in_class(const Object& definition, const std::string& name, const SourceSpan& span) {
  return make_definition("ClassDef",
                         {{"name", python::string(name)},
                          {"bases", python::list({})},
                          {"keywords", python::list({})},
                          {"body", python::list({definition})},
                          {"decorator_list", python::list({})}},
                         span);
}

/// `global name`
Object global_declaration(const std::string& name, const SourceSpan& span) {
  return AstBuilder::make("Global", {{"names", python::list({python::string(name)})}}, &span);
}

Object in_function(const std::vector<Object>& body, const std::vector<std::string>& parameters,
                   const SourceSpan& span) {
  std::vector<Object> arguments;
  for (const std::string& name : parameters)
    arguments.push_back(AstBuilder::make("arg", {{"arg", python::string(name)}}, &span));
  const Object signature = AstBuilder::make("arguments",
                                            {{"posonlyargs", python::list({})},
                                             {"args", python::list(arguments)},
                                             {"kwonlyargs", python::list({})},
                                             {"kw_defaults", python::list({})},
                                             {"defaults", python::list({})}},
                                            nullptr);
  return make_definition("FunctionDef",
                         {{"name", python::string("_")},
                          {"args", signature},
                          {"body", python::list(body)},
                          {"decorator_list", python::list({})}},
                         span);
}

/// `import name, ...`: only that the names are imported matters.
Object imports_of(const std::vector<std::string>& names, const SourceSpan& span) {
  std::vector<Object> aliases;
  for (const std::string& name : names)
    aliases.push_back(AstBuilder::make("alias", {{"name", python::string(name)}}, &span));
  return AstBuilder::make("Import", {{"names", python::list(aliases)}}, &span);
}

bool has_type_parameters(PyObject* definition) {
  const Object parameters = python::try_attribute(definition, "type_params");
  return parameters && PyObject_Size(parameters.get()) > 0;
}

/// The code of the stand-in (class or function) within the code of a module or function.
Object only_nested_code(const Object& code) {
  const std::vector<Object> codes = nested_codes(code.get());
  TORCHJANUS_CHECK(codes.size() == 1, "compile: a wrapper has ", codes.size(), " code objects");
  return codes.front();
}

/// Whether two constants have the same class and value, signed zeros and NaN included.
bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyCode_Check(a)) return same_code(a, b);
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
      if (!same_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  if (PyFloat_CheckExact(a) || PyComplex_CheckExact(a)) return python::repr(a) == python::repr(b);
  return python::equal(a, b);
}

/// Whether two code objects have the same constants. The qualified name in a class's body may
/// differ, since it depends on the surroundings.
bool same_constants(PyObject* a, PyObject* b) {
  const Object of_a = python::attribute(a, "co_consts"), of_b = python::attribute(b, "co_consts");
  const bool is_class = (reinterpret_cast<PyCodeObject*>(a)->co_flags & CO_OPTIMIZED) == 0;
  if (!is_class) return same_constant(of_a.get(), of_b.get());
  const Object name_of_a = python::attribute(a, "co_qualname");
  const Object name_of_b = python::attribute(b, "co_qualname");
  if (PyTuple_GET_SIZE(of_a.get()) != PyTuple_GET_SIZE(of_b.get())) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(of_a.get()); ++i) {
    PyObject* one = PyTuple_GET_ITEM(of_a.get(), i);
    PyObject* other = PyTuple_GET_ITEM(of_b.get(), i);
    const bool are_names = PyUnicode_CheckExact(one) && PyUnicode_CheckExact(other) &&
                           python::equal(one, name_of_a.get()) &&
                           python::equal(other, name_of_b.get());
    if (!are_names && !same_constant(one, other)) return false;
  }
  return true;
}

}  // namespace

CodeContext context_of(PyObject* code) {
  CodeContext context;
  context.file = python::to_string(python::attribute(code, "co_filename").get());
  for (const Object& name : python::elements(python::attribute(code, "co_freevars").get()))
    context.freevars.push_back(python::to_string(name.get()));
  context.future_flags = reinterpret_cast<PyCodeObject*>(code)->co_flags & kFutureFlags;
  return context;
}

Object parse_file(PyObject* text, const std::string& file) { return compile(text, file, kOnlyAst); }

Object compile_module(PyObject* statements, const CodeContext& context) {
  const Object module = AstBuilder::make(
      "Module", {{"body", Object::borrow(statements)}, {"type_ignores", python::list({})}},
      nullptr);
  return compile(module.get(), context.file, context.future_flags);
}

std::vector<Object> compile_definition(PyObject* definition, const CodeContext& context) {
  const SourceSpan span = span_of(definition);
  const std::vector<std::string>& freevars = context.freevars;
  const bool has_class = !context.class_name.empty(), has_free = !freevars.empty();
  std::vector<Object> statements = {Object::borrow(definition)};
  if (has_class) statements = {in_class(statements.front(), context.class_name, span)};
  if (has_free) {
    // Keeps the stand-in class from becoming a variable that methods would see.
    if (has_class &&
        std::find(freevars.begin(), freevars.end(), context.class_name) == freevars.end())
      statements.insert(statements.begin(), global_declaration(context.class_name, span));
    statements = {in_function(statements, freevars, span)};
  }
  if (!context.imports.empty())
    statements.insert(statements.begin(), imports_of(context.imports, span));
  Object code = compile_module(python::list(statements).get(), context);
  if (has_free) code = only_nested_code(code);
  if (has_class) code = only_nested_code(code);
  std::vector<Object> codes = nested_codes(code.get());
  // Type parameters have a function of their own around the definition.
  if (has_type_parameters(definition) && !codes.empty())
    codes.back() = nested_codes(codes.back().get()).back();
  return codes;
}

bool same_code(PyObject* a, PyObject* b) {
  const int difference =
      reinterpret_cast<PyCodeObject*>(a)->co_flags ^ reinterpret_cast<PyCodeObject*>(b)->co_flags;
  if ((difference & ~python::kFlagsOfSurroundings) != 0) return false;
  for (const char* name : {"co_firstlineno", "co_name", "co_argcount", "co_posonlyargcount",
                           "co_kwonlyargcount", "co_names", "co_varnames", "co_cellvars",
                           "co_freevars", "co_code", "co_linetable", "co_exceptiontable"})
    if (!python::equal(python::attribute(a, name).get(), python::attribute(b, name).get()))
      return false;
  return same_constants(a, b);
}

Object replaced(PyObject* code, const std::vector<std::pair<const char*, Object>>& fields) {
  const Object keywords = python::check(PyDict_New());
  for (const auto& [name, value] : fields)
    python::check_status(PyDict_SetItemString(keywords.get(), name, value.get()));
  return python::check(PyObject_Call(python::attribute(code, "replace").get(),
                                     python::tuple({}).get(), keywords.get()));
}

std::vector<Object> nested_codes(PyObject* code) {
  std::vector<Object> result;
  for (const Object& constant : python::elements(python::attribute(code, "co_consts").get()))
    if (PyCode_Check(constant.get())) result.push_back(constant);
  return result;
}

}  // namespace janus::syntax
